"""A packet kept in memory, to be checked before it is used, or said again.

Timing: a byte of the replay is on ``out`` in every second cycle at most.
"""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from .signatures import packet_signature

__all__ = ["PacketStore"]


class PacketStore(wiring.Component):
    """Memory of one packet.

    Parameters
    ----------
    size : int
        Bytes.
    tail : int
        Bytes at the end that a replay leaves out.

    Members
    -------
    clear : In(1)
        Forget the packet.
    put, data : In(1), In(8)
        Append a byte.
    count : Out
        Bytes of the packet.
    full : Out(1)
        There is no room for another byte, which would be dropped.
    play : In(1)
        Begin to put the packet on ``out``: more than ``tail`` bytes.
    out : Out(packet_signature())
    """

    def __init__(self, size, tail=0):
        self._size = size
        self._tail = tail
        super().__init__({"clear": In(1), "put": In(1), "data": In(8),
                          "count": Out(bits_for(size)), "full": Out(1), "play": In(1),
                          "out": Out(packet_signature())})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=8, depth=self._size, init=[])
        write, read = memory.write_port(), memory.read_port()
        at = Signal.like(self.count)
        m.d.comb += [
            self.full.eq(self.count == self._size),
            write.en.eq(self.put & ~self.full), write.addr.eq(self.count),
            write.data.eq(self.data),
            read.en.eq(1), read.addr.eq(at),
            self.out.payload.data.eq(read.data),
            self.out.payload.last.eq(at + (self._tail + 1) == self.count),
        ]
        with m.If(write.en):
            m.d.sync += self.count.eq(self.count + 1)
        with m.If(self.clear):
            m.d.sync += self.count.eq(0)
        with m.FSM():
            with m.State("idle"):
                m.d.sync += at.eq(0)
                with m.If(self.play):
                    m.next = "read"
            with m.State("read"):
                m.next = "show"
            with m.State("show"):
                m.d.comb += self.out.valid.eq(1)
                with m.If(self.out.ready):
                    m.d.sync += at.eq(at + 1)
                    m.next = "read"
                    with m.If(self.out.payload.last):
                        m.next = "idle"
        return m
