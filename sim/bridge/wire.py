"""A simulated serial line: the host's end, in cocotb, with or without noise."""

from collections import deque

from cocotb import start_soon
from cocotb.triggers import Event, FallingEdge, First, Timer

from sim.bridge.stream import ByteStream

__all__ = ["Noise", "Wire"]

#: Start bit, data, stop bit.
_BITS = 10


class Noise:
    """Damage to bytes on a line, one way.

    Parameters
    ----------
    rng : numpy.random.Generator, optional
        None: no noise.
    flips, drops : float
        Probability that one of the ten bits of a byte is flipped, and that a byte does not come.

    Attributes
    ----------
    done : int
        Bytes flipped or dropped so far.
    """

    def __init__(self, rng=None, flips=0.0, drops=0.0):
        self.done = 0
        self._rng = rng
        self._flips = flips
        self._drops = drops

    def bits(self, byte):
        """The ten bits of a byte as they come through, lowest first; none if it is dropped."""
        bits = byte << 1 | 1 << _BITS - 1
        chance = 1.0 if self._rng is None else self._rng.random()
        if chance >= self._flips + self._drops:
            return bits
        self.done += 1
        return bits ^ 1 << int(self._rng.integers(_BITS)) if chance < self._flips else None


class Wire(ByteStream):
    """Drives ``rx`` and watches ``tx`` of a `hdl.bridge.SerialTile`; times are in cycles.

    Parameters
    ----------
    dut : cocotb handle
        Has ``clk``, ``rx`` and ``tx``.
    divisor : int
        Cycles of a bit.
    period : int
        Of the clock, in ns.
    to_board, from_board : Noise, optional

    Attributes
    ----------
    sent, received : int
        Bytes, with those that noise took.
    """

    name = "the simulation"

    def __init__(self, dut, divisor, period, to_board=None, from_board=None):
        self.byte_time = _BITS * divisor
        self.patience = 20 * self.byte_time
        self.sent = self.received = 0
        self._dut = dut
        self._period = period
        self._bit = divisor * period
        self._noise = {"to": to_board or Noise(), "from": from_board or Noise()}
        self._come = deque()
        self._event = Event()
        dut.rx.value = 1
        start_soon(self._listen())

    async def write(self, data):
        """See `ByteStream`."""
        for byte in data:
            self.sent += 1
            bits = self._noise["to"].bits(byte)
            if bits is not None:
                await self._drive(bits)

    async def _drive(self, bits):
        await FallingEdge(self._dut.clk)        # so that no bit changes on an edge that samples it
        for number in range(_BITS):
            self._dut.rx.value = bits >> number & 1
            await Timer(self._bit, "ns")
        self._dut.rx.value = 1      # whatever noise made of the stop bit

    async def read(self, limit):
        """See `ByteStream`."""
        if not self._come:
            self._event.clear()
            await First(self._event.wait(), Timer(max(1, int(limit)) * self._period, "ns"))
        found = bytes(self._come)
        self._come.clear()
        return found

    async def _listen(self):
        """Bytes from the board; one without a stop bit is dropped, as by any receiver."""
        while True:
            await FallingEdge(self._dut.tx)
            await Timer(self._bit // 2, "ns")
            bits = 0
            for number in range(_BITS):
                bits |= int(self._dut.tx.value) << number
                if number < _BITS - 1:
                    await Timer(self._bit, "ns")
            self.received += 1
            bits = self._noise["from"].bits(bits >> 1 & 255) if bits & 1 << _BITS - 1 else None
            if bits is not None and not bits & 1 and bits >> _BITS - 1:
                self._come.append(bits >> 1 & 255)
                self._event.set()
