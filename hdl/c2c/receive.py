"""Receiving end of one link: flits, joined to vectors, in a FIFO.

Timing, for 2 flits a vector::

    cycle     a-1     a       a+1     r >= a+1
    rx        low     high    .       .
    arrived   0       1       0       .
    take      .       .       .       1        heads valid in the same cycle
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl.c2c.transmit import QUAD
from hdl.rotate import rotate_left
from hdl.signatures import FlitSignature

__all__ = ["LinkReceiver"]


class LinkReceiver(wiring.Component):
    """FIFO of one link, of which up to four vectors are read at once.

    Parameters
    ----------
    lanes : int
        Bytes of a vector.
    width : int
        Bytes of a flit.
    depth : int
        Vectors the FIFO holds; a power of two, at least 4.

    Members
    -------
    rx : In(FlitSignature)
        Flits of whole vectors, lowest lane first; what is behind the last lane is ignored.
    arrived : Out(1)
        In the cycle of the last flit of a vector, if there is room for it.
    vector : Out(8 * lanes)
        That vector.
    overflow : Out(1)
        In the cycle of the last flit of a vector, if there is none: the vector is dropped.
    take, quad : In(1)
        Take the oldest vector, or the four oldest.
    heads : Out(4 * 8 * lanes)
        The four oldest vectors in the FIFO, the oldest lowest; what is not there is undefined.
    underflow : Out(1)
        In the cycle of ``take``: fewer vectors than it asks for had arrived before.  Nothing is
        taken.

    Reset empties it.
    """

    def __init__(self, *, lanes, width, depth):
        self._lanes = lanes
        self._width = width
        self._depth = depth
        super().__init__({
            "rx": In(FlitSignature(width)), "arrived": Out(1), "vector": Out(8 * lanes),
            "overflow": Out(1), "take": In(1), "quad": In(1), "heads": Out(QUAD * 8 * lanes),
            "underflow": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        complete = self._join(m)
        count = Signal(range(self._depth + 1))
        full = count == self._depth
        few = count < Mux(self.quad, QUAD, 1)
        m.d.comb += [
            self.arrived.eq(complete & ~full),
            self.overflow.eq(complete & full),
            self.underflow.eq(self.take & few),
        ]
        taken = Signal(range(QUAD + 1))
        with m.If(self.take & ~few):
            m.d.comb += taken.eq(Mux(self.quad, QUAD, 1))
        m.d.sync += count.eq(count + self.arrived - taken)
        self._store(m, taken)
        return m

    def _join(self, m):
        """Whether the flit of this cycle completes ``vector``."""
        flit = 8 * self._width
        flits = -(-self._lanes // self._width)
        if flits == 1:
            m.d.comb += self.vector.eq(self.rx.data)
            return self.rx.valid
        number = Signal(range(flits))
        last = Signal()
        before = Signal((flits - 1) * flit, reset_less=True)
        joined = Cat(before, self.rx.data)
        m.d.comb += [last.eq(number == flits - 1), self.vector.eq(joined)]
        with m.If(self.rx.valid):
            m.d.sync += [before.eq(joined >> flit), number.eq(Mux(last, 0, number + 1))]
        return self.rx.valid & last

    def _store(self, m, taken):
        """Four banks: the n-th vector is in bank ``n % 4``, so that four in a row differ."""
        size, rows = 8 * self._lanes, self._depth // QUAD
        head = Signal(exact_log2(self._depth))
        tail = Signal(exact_log2(self._depth))
        m.d.sync += [head.eq(head + taken), tail.eq(tail + self.arrived)]
        banks = []
        for i in range(QUAD):
            # one row would leave the ports without an address
            bank = memory.Memory(shape=size, depth=max(rows, 2), init=[])
            m.submodules[f"bank_{i}"] = bank
            write, read = bank.write_port(), bank.read_port(domain="comb")
            m.d.comb += [
                write.addr.eq(tail[2:]),
                write.data.eq(self.vector),
                write.en.eq(self.arrived & (tail[:2] == i)),
                # banks below that of the oldest vector hold the next row's
                read.addr.eq((head[2:] + (head[:2] > i))[:exact_log2(rows)]),
            ]
            banks.append(read.data)
        # the bank of the oldest vector to place 0
        m.d.comb += self.heads.eq(rotate_left(m, "heads", banks, -head[:2]))
