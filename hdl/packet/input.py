"""Input of a router: the buffer behind a physical link.

Timing of a header that arrives in ``c`` at an empty buffer and finds its output free::

    cycle       c                    c+1            c+2
    rx          header               flit           flit
    out         ask, take, credit    on the wire, as each flit a cycle behind

The buffer is only written where the flit cannot go on in the cycle of its arrival.
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hdl.arch.packets import PacketKind, header_layout
from hdl.signatures import FlitSignature

from .signatures import DeliverySignature, SourceSignature

__all__ = ["PacketInput"]


class PacketInput(wiring.Component):
    """Buffer of a physical link, and what becomes of its packets.

    Parameters
    ----------
    network : PacketNetwork

    Members
    -------
    here : In
        Number of this tile.
    rx : In(FlitSignature)
        The link; flits of a packet come without a gap.
    through : Out(SourceSignature)
        The packet at the head, if it is for another tile.
    target : Out
        That tile.
    local : Out(DeliverySignature)
        The packet at the head, if it is for this tile.
    credit : Out(1)
        Room for a flit has become free or, where ``network.passes``, that of a packet.
    fault : Out(1)
        A flit came that there is no room for, or was taken and is not there.
    """

    def __init__(self, network):
        self._network = network
        super().__init__({
            "here": In(bits_for(network.system.tiles - 1)), "rx": In(FlitSignature(network.width)),
            "through": Out(SourceSignature(network)),
            "target": Out(bits_for(network.system.tiles - 1)),
            "local": Out(DeliverySignature(network)), "credit": Out(1), "fault": Out(1)})

    def elaborate(self, platform):
        m = Module()
        network, through, local = self._network, self.through, self.local
        there, take = Signal(), Signal()
        flit = Signal(8 * network.width)
        self._buffer(m, there, flit, take)

        header = data.View(header_layout(network), flit[:network.header_bits])
        rest = Signal(range(network.largest(network.fifo)))     # of the packet at the head
        following = Signal.like(rest)                           # of one that begins
        head, mine, stays = Signal(), Signal(), Signal()
        m.d.comb += [
            following.eq(Mux(header.kind == PacketKind.DATA, header.vectors * network.flits, 0)),
            head.eq(there & (rest == 0)),
            mine.eq(Mux(rest == 0, header.target == self.here, stays)),
            local.valid.eq(there & mine), local.head.eq(head), local.flit.eq(flit),
            through.ask.eq(head & ~mine), through.length.eq(following + 1), through.flit.eq(flit),
            self.target.eq(header.target),
            take.eq(local.valid | through.take),
        ]
        with m.If(take):
            m.d.sync += rest.eq(Mux(rest == 0, following, rest - 1))
            with m.If(rest == 0):
                m.d.sync += stays.eq(mine)
        if network.passes:
            m.d.comb += self.credit.eq(take & Mux(rest == 0, following == 0, rest == 1))
        else:
            m.d.comb += self.credit.eq(take)
        return m

    def _buffer(self, m, there, flit, take):
        """A FIFO through which a flit can fall in the cycle of its arrival."""
        network, rx = self._network, self.rx
        m.submodules.flits = flits = Memory(shape=8 * network.width, depth=network.depth, init=[])
        write, read = flits.write_port(), flits.read_port(domain="comb")
        count = Signal(range(network.depth + 1))
        first, last = Signal(range(network.depth)), Signal(range(network.depth))
        empty, push, pop = Signal(), Signal(), Signal()
        m.d.comb += [
            empty.eq(count == 0),
            there.eq(~empty | rx.valid),
            flit.eq(Mux(empty, rx.data, read.data)),
            push.eq(rx.valid & ~(empty & take)),
            pop.eq(take & ~empty),
            write.en.eq(push), write.addr.eq(last), write.data.eq(rx.data), read.addr.eq(first),
            self.fault.eq(push & (count == network.depth) | take & ~there),
        ]
        m.d.sync += count.eq(count + push - pop)
        for pointer, moves in ((last, push), (first, pop)):
            with m.If(moves):
                m.d.sync += pointer.eq(Mux(pointer == network.depth - 1, 0, pointer + 1))
