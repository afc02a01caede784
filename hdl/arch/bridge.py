"""What a host says to a tile over a byte stream: frames, records, answers.

Records.  A request is a row of records, executed in order; one is laid out, lowest byte first, as

    ``op`` (1 byte), ``length`` (2), ``select``, ``address``, ``data`` (``length`` bytes)

``op`` is a `hdl.arch.host.HostOp` or a `BridgeOp`; ``select``, ``address`` and ``data`` are those
of `host.command_layout`, each in whole bytes; ``data`` is filled up with zeros.  A byte of 0 in
place of an ``op`` is skipped.  A START counts its ``time`` from the cycle in which the tile gets
it: whoever is behind a serial line cannot know the cycle counter in time.

Answers.  An answer is what its records returned, in their order (READ: one row of SRAM; see also
`BridgeOp`), zeros up to a multiple of 4 bytes, and at its end `trailer_layout`: a `Result` and the
number of records executed.  The record behind those is at fault unless the result is OK; it and
all behind it are without effect.

Frames carry requests and answers over a line that may lose or change bytes:

    FLAG, body, CRC (2 bytes, high byte first), FLAG

The CRC is CRC-16/CCITT-FALSE (polynomial 0x1021, start 0xFFFF) of the body.  Within body and CRC a
byte that equals FLAG or ESCAPE is sent as ESCAPE and itself ^ FLIP.  Empty frames mean nothing.

Sequence.  The first byte of a body is a sequence number.  A request's is 1 to 255 and then 1 again;
the answer has the same.  The bridge executes a request of the number that it expects, sends the
answer of the last one again when it gets that number once more, and refuses any other
(`Result.SEQUENCE`, with the expected number as count).  Number 0 with two bytes behind it begins
anew: the bridge then expects 1, and answers with number 0 and those two bytes as count.  A frame
that is damaged or longer than the buffer is answered with `Result.DAMAGED`, and number 0.  What
arrives while the bridge executes or answers is lost.
"""

from amaranth.hdl import Shape, unsigned
from amaranth.lib import data, enum

from .errors import Fault
from .host import TIME_BITS, command_layout
from .queues import queues

__all__ = ["BAUD", "BUFFER", "ESCAPE", "FLAG", "FLIP", "LAST_SEQUENCE", "MIN_DIVISOR", "VERSION",
           "BridgeOp", "Result", "command_bytes", "header_bytes", "identity_layout", "size_of",
           "status_layout", "trailer_layout"]

#: Of everything on this page.
VERSION = 1
FLAG, ESCAPE, FLIP = 0x7E, 0x7D, 0x20
LAST_SEQUENCE = 255
#: Bytes of a request with its CRC, and of an answer, that a bridge holds unless told otherwise.
BUFFER = 2048
#: Bits a second of a serial line unless told otherwise, at both ends.
BAUD = 1_000_000
#: Least cycles of a bit on a serial line: 8 bits, lowest first, no parity, one stop bit.
MIN_DIVISOR = 4


class BridgeOp(enum.Enum, shape=unsigned(8)):
    """Records that the bridge itself acts on.

    ``STATUS``
        Returns `status_layout`.
    ``IDENTITY``
        Returns `identity_layout`.
    ``TAKE``
        ``data``: how many flits of the host link at most.  Returns the number of flits taken (2
        bytes) and those flits, the oldest first.
    ``PUT``
        ``data``: bytes for the host link, in whole flits, the last filled up with zeros.
    """
    STATUS = 8
    IDENTITY = 9
    TAKE = 10
    PUT = 11


class Result(enum.Enum, shape=unsigned(8)):
    """How a request ended."""
    OK = 0
    UNKNOWN = 1         #: no such op
    CUT = 2             #: the request ends within a record
    LONG = 3            #: more data than a command has
    RUNNING = 4         #: the tile is running; then only CLEAR and `BridgeOp` are allowed
    ROOM = 5            #: the answer would not fit into the buffer
    DAMAGED = 6         #: CRC, framing or size of a frame
    SEQUENCE = 7        #: neither the expected number nor the one before


#: End of an answer, 4 bytes.
trailer_layout = data.StructLayout({"result": Result, "zero": unsigned(8), "count": unsigned(16)})


def size_of(layout):
    """Bytes of a layout."""
    return -(-Shape.cast(layout).width // 8)


def command_bytes(cfg):
    """Bytes of each field of `host.command_layout`, by name."""
    return {name: size_of(field.shape) for name, field in command_layout(cfg)}


def header_bytes(cfg):
    """Bytes of a record before its data."""
    sizes = command_bytes(cfg)
    return sizes["op"] + 2 + sizes["select"] + sizes["address"]


def identity_layout():
    """What a bridge is: protocol version, bytes of its buffers, ``TileConfig.digest``."""
    return data.StructLayout({"version": unsigned(8), "zero": unsigned(8), "buffer": unsigned(16),
                              "digest": unsigned(64)})


def status_layout(cfg):
    """State of a tile and its bridge, every field in whole bytes.

    ``cycle`` now; ``start`` of the last START and ``stopped``, when the tile was last seen to halt:
    times of the tile's counter.  ``waiting``: flits from the host link.  ``lost``: some found no
    room, since the last CLEAR.  ``errors``, ``running``, ``halted``: see `hdl.tile.Tile`.
    """
    fields = {"cycle": TIME_BITS, "start": TIME_BITS, "stopped": TIME_BITS, "waiting": 16,
              "errors": len(Fault), "running": 1, "lost": 1, "halted": len(queues(cfg))}
    return data.StructLayout({name: unsigned(-(-width // 8) * 8)
                              for name, width in fields.items()})
