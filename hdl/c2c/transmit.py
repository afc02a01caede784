"""Sending end of one link: vectors, cut into flits.

Timing, for 2 flits a vector and a quad that starts in cycle ``k``::

    cycle     k       k+1     k+2     k+3   ..   k+8     k+9
    start     1       .       .       .          1       .
    busy      0       1       1       1          0       1
    tx        .       v0 low  v0 high v1 low     v3 high next
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.signatures import FlitSignature

__all__ = ["QUAD", "LinkTransmitter"]

QUAD = 4        #: vectors that a SEND or RECV moves at most


class LinkTransmitter(wiring.Component):
    """Serialiser of one link.

    Parameters
    ----------
    lanes : int
        Bytes of a vector.
    width : int
        Bytes of a flit.

    Members
    -------
    start : In(1)
        Send ``vectors`` from the next cycle on; only while ``busy`` is 0.
    quad : In(1)
        All four vectors, otherwise only the first.
    vectors : In(4 * 8 * lanes)
        Vector 0 lowest.
    busy : Out(1)
        More than the flit of this cycle is still to go: a start in this cycle is too early.
    tx : Out(FlitSignature)
        ``ceil(lanes / width)`` flits for each vector without a gap, lowest lane first; behind the
        last lane come zeros.  Reset ends it.
    """

    def __init__(self, *, lanes, width):
        self._lanes = lanes
        self._width = width
        super().__init__({
            "start": In(1), "quad": In(1), "vectors": In(QUAD * 8 * lanes), "busy": Out(1),
            "tx": Out(FlitSignature(width)),
        })

    def elaborate(self, platform):
        m = Module()
        size, flit = 8 * self._lanes, 8 * self._width
        flits = -(-self._lanes // self._width)
        padding = Const(0, flits * flit - size)
        rest = Signal(QUAD * flits * flit, reset_less=True)
        count = Signal(range(QUAD * flits + 1))
        with m.If(self.start):
            m.d.sync += [
                rest.eq(Cat((self.vectors.word_select(i, size), padding) for i in range(QUAD))),
                count.eq(Mux(self.quad, QUAD * flits, flits)),
            ]
        with m.Elif(count != 0):
            m.d.sync += [rest.eq(rest >> flit), count.eq(count - 1)]
        m.d.comb += [
            self.busy.eq(count > 1),
            self.tx.valid.eq(count != 0),
            self.tx.data.eq(rest),
        ]
        return m
