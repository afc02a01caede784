"""Requests over a line that loses and changes bytes: each is executed once, and answered."""

import os
from abc import ABC, abstractmethod

from hdl.arch.bridge import LAST_SEQUENCE, Result
from sim.bridge.frames import FrameReader, frame
from sim.bridge.records import split_answer

__all__ = ["BridgeError", "RequestLink", "SerialLink"]

#: Bytes that begin anew: sequence number and nonce.
_NONCE_BYTES = 2
#: Bytes of an answer that no record returns: filling and trailer.
_ANSWER_BYTES = 7
#: Bytes that a frame has beside its body, and by how much escapes lengthen it at most.
_BESIDE, _LONGER = 4, 2

#: Answers' worth of bytes behind which what comes cannot be left from earlier requests.
_MOST = 100


class BridgeError(RuntimeError):
    """A bridge that does not answer, or refuses."""


class RequestLink(ABC):
    """What carries requests to a bridge and answers back.

    Attributes
    ----------
    name : str
        Of the other end, for messages.
    """

    name: str

    @abstractmethod
    async def begin(self):
        """Begin anew, whatever was before: a load that broke off, or another program."""

    @abstractmethod
    async def ask(self, records, returned):
        """Have a request executed.

        Parameters
        ----------
        records : bytes
        returned : int
            Bytes that its records return, at most.

        Returns
        -------
        (bytes, sim.bridge.records.Trailer)
            What they returned, filled up with zeros.

        Raises
        ------
        BridgeError
            If no answer comes.
        """


class SerialLink(RequestLink):
    """The host's end of the sequence numbers of `hdl.arch.bridge`.

    Parameters
    ----------
    stream : sim.bridge.stream.ByteStream
    attempts : int
        How often a frame is sent before it is given up.

    Attributes
    ----------
    requests : int
        Answered so far.
    repeats : int
        Frames that were sent again.
    """

    def __init__(self, stream, attempts=16):
        self.name = stream.name
        self.requests = 0
        self.repeats = 0
        self._stream = stream
        self._attempts = attempts
        self._reader = FrameReader()
        self._next = None

    @property
    def damaged(self):
        """Answers that did not come as they were sent."""
        return self._reader.damaged

    async def begin(self):
        """See `RequestLink`."""
        nonce = os.urandom(_NONCE_BYTES)
        self._next = 0
        await self._send(nonce, 0, lambda trailer: trailer.result is Result.OK
                         and trailer.count == int.from_bytes(nonce, "little"))
        self._next = 1

    async def ask(self, records, returned):
        """See `RequestLink`."""
        answer = await self._send(records, returned, lambda trailer: True)
        self._next = 1 if self._next == LAST_SEQUENCE else self._next + 1
        self.requests += 1
        if answer[1].result is Result.SEQUENCE:
            raise BridgeError(f"Bridge at {self.name} was reset, or another program uses it: begin "
                              "again, one at a time")
        return answer

    async def _send(self, body, returned, accepted):
        """Send a body with the next number until its answer comes."""
        stream, reader = self._stream, self._reader
        heard, framed = reader.heard, False
        sent = frame(bytes([self._next]) + body)
        longest = _LONGER * (returned + _ANSWER_BYTES) + _BESIDE
        limit = stream.patience + stream.byte_time * (len(sent) + longest)
        for attempt in range(self._attempts):
            self.repeats += attempt > 0
            await stream.write(sent)
            damaged, before = reader.damaged, reader.heard
            while received := await stream.read(limit):
                bodies = reader.feed(received)
                framed |= bool(bodies)
                for answer in filter(_is_answer, bodies):
                    returns, trailer = split_answer(answer[1:])
                    if trailer.result is Result.DAMAGED:
                        damaged = -1
                    elif answer[0] == self._next and accepted(trailer):
                        return returns, trailer
                # The request or its answer was damaged, or this is no bridge: say it again.
                if reader.damaged != damaged or reader.heard - before > _MOST * longest:
                    break
        raise BridgeError(self._silence(reader.heard != heard, framed))

    def _silence(self, heard, framed):
        if framed:
            return (f"Line to {self.name} is too bad: {self._attempts} attempts failed, use a "
                    "lower rate")
        if heard:
            return f"What comes from {self.name} is no answer of a bridge: check the rate"
        return (f"Nothing answers at {self.name}: check that the board is on, has a bridge, and "
                "that the rate is its")


def _is_answer(body):
    """Whether a body has a number, whole words and a trailer."""
    return len(body) > 4 and len(body) % 4 == 1 and body[-4] < len(Result)
