"""A serial line: 8 bits, lowest first, no parity, one stop bit.

Timing, for a divisor of ``n``: a start bit (0), 8 bits of data and a stop bit (1), ``n`` cycles
each.  The receiver looks at the middle of a bit.
"""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from hdl.arch.bridge import MIN_DIVISOR

__all__ = ["UartReceiver", "UartTransmitter"]

#: Start bit, data, stop bit.
_BITS = 10


def _check(divisor):
    if not isinstance(divisor, int) or divisor < MIN_DIVISOR:
        raise ValueError(f"Divisor must be a whole number of at least {MIN_DIVISOR} cycles a bit, "
                         f"not {divisor!r}")


class UartReceiver(wiring.Component):
    """From the line to bytes, which cannot wait.

    Parameters
    ----------
    divisor : int
        Cycles of a bit, at least `MIN_DIVISOR`.

    Members
    -------
    line : In(1)
        1 while idle; need not be synchronous.
    data : Out(8)
    valid : Out(1)
        In one cycle for each byte: ``data`` is the byte.  One whose stop bit is 0 is dropped.
    """

    def __init__(self, divisor):
        _check(divisor)
        self._divisor = divisor
        super().__init__({"line": In(1, init=1), "data": Out(8), "valid": Out(1)})

    def elaborate(self, platform):
        m = Module()
        line = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.line, line, init=1)
        timer = Signal(range(self._divisor))
        left = Signal(range(_BITS))
        m.d.sync += [self.valid.eq(0), timer.eq(timer - 1)]
        with m.FSM():
            with m.State("idle"):
                m.d.sync += [timer.eq(self._divisor // 2 - 1), left.eq(_BITS - 1)]
                with m.If(~line):
                    m.next = "bits"
            with m.State("bits"):
                with m.If(timer == 0):
                    m.d.sync += [timer.eq(self._divisor - 1), left.eq(left - 1)]
                    with m.If(left == 0):
                        m.d.sync += self.valid.eq(line)
                        m.next = "idle"         # half a bit early, for a sender that is faster
                        with m.If(~line):
                            m.next = "wait"
                    with m.Elif(left == _BITS - 1):
                        with m.If(line):        # too short for a start bit
                            m.next = "idle"
                    with m.Else():
                        m.d.sync += self.data.eq(Cat(self.data[1:], line))
            with m.State("wait"):
                with m.If(line):
                    m.next = "idle"
        return m


class UartTransmitter(wiring.Component):
    """From bytes to the line.

    Parameters
    ----------
    divisor : int
        Cycles of a bit, at least `MIN_DIVISOR`.

    Members
    -------
    bytes : In(stream.Signature(8))
    line : Out(1)
        1 while idle.
    """

    def __init__(self, divisor):
        _check(divisor)
        self._divisor = divisor
        super().__init__({"bytes": In(stream.Signature(8)), "line": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        timer = Signal(range(self._divisor))
        left = Signal(range(_BITS + 1))
        bits = Signal(_BITS - 1, reset_less=True)
        m.d.comb += self.bytes.ready.eq(left == 0)
        with m.If(self.bytes.ready):
            with m.If(self.bytes.valid):
                m.d.sync += [self.line.eq(0), bits.eq(Cat(self.bytes.payload, 1)),
                             left.eq(_BITS), timer.eq(self._divisor - 1)]
        with m.Elif(timer == 0):
            m.d.sync += [self.line.eq(bits[0]), bits.eq(Cat(bits[1:], 1)), left.eq(left - 1),
                         timer.eq(self._divisor - 1)]
        with m.Else():
            m.d.sync += timer.eq(timer - 1)
        return m
