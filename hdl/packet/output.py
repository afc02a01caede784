"""Output of a router: round robin among the packets that want one physical link, with credits.

Timing of a packet of ``l`` flits that is granted in ``c``::

    cycle       c        c+1       ..   c+l-1       c+l
    source      take     take           take        next grant
    tx          .        header         flit l-2    flit l-1
"""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hdl.signatures import FlitSignature

from .signatures import SourceSignature

__all__ = ["PacketOutput"]


class PacketOutput(wiring.Component):
    """Arbiter and sender of a physical link.

    Parameters
    ----------
    network : PacketNetwork
    through : tuple of bool
        For each source, whether its packets come from another physical link.

    Members
    -------
    source<i> : In(SourceSignature)
        Packets for this link.
    tx : Out(FlitSignature)
        The link: registered.
    credit : In(1)
        The far end has freed the room that one credit stands for.
    credits : In
        Credits at reset, each good for a flit or, where ``network.passes``, for a packet.
    start : In
        Source that is looked at first behind reset.

    A packet is granted when the far end has room for all of it.  In a ring (``network.passes``)
    one that comes from this tile must leave room for another packet there: so never does a last
    free place of the ring fill up, and some packet of those that pass can always move on.  Of the
    sources whose packets may go the first from the one behind the last granted is next.
    """

    def __init__(self, network, through):
        self._network = network
        self._through = through
        super().__init__({
            **{f"source{i}": In(SourceSignature(network)) for i in range(len(through))},
            "tx": Out(FlitSignature(network.width)), "credit": In(1),
            "credits": In(bits_for(network.depth)), "start": In(range(len(through)))})

    def elaborate(self, platform):
        m = Module()
        network, count = self._network, len(self._through)
        sources = [getattr(self, f"source{i}") for i in range(count)]
        used = Signal(bits_for(network.depth))      # credits that are out
        may, chosen, going = Signal(count), Signal(count), Signal(count)
        takes, costs, length = Signal(count), Signal.like(used), Signal.like(sources[0].length)
        rest = Signal.like(length)      # flits of the packet that is going
        for i, source in enumerate(sources):
            need = source.length
            if network.passes:
                need = 1 if self._through[i] else network.slots_to_enter
            m.d.comb += [may[i].eq(source.ask & (used + need <= self.credits)),
                         source.take.eq(takes[i])]
        self._choose(m, may, chosen, rest == 0)
        m.d.comb += [
            takes.eq(Mux(rest == 0, chosen, going)),
            length.eq(self._of(sources, chosen, "length")),
            costs.eq(chosen.any() if network.passes else length),
        ]
        with m.If(rest != 0):
            m.d.sync += rest.eq(rest - 1)
        with m.Elif(chosen.any()):
            m.d.sync += [rest.eq(length - 1), going.eq(chosen)]
        m.d.sync += [used.eq(used + costs - self.credit), self.tx.valid.eq(takes.any()),
                     self.tx.data.eq(self._of(sources, takes, "flit"))]
        return m

    @staticmethod
    def _of(sources, which, name):
        """That member of the source whose bit is set; 0 for none."""
        values = [getattr(source, name) for source in sources]
        return reduce(or_, (Mux(which[i], value, 0) for i, value in enumerate(values)))

    def _choose(self, m, may, chosen, free):
        """Set the bit of the source to grant, if the link is ``free``."""
        count = len(may)
        fresh, pointer, first = Signal(init=1), Signal(range(count)), Signal(range(count))
        behind, among = Signal(count), Signal(count)
        m.d.comb += [
            first.eq(Mux(fresh, self.start, pointer)),
            behind.eq(may & Cat(first <= i for i in range(count))),
            among.eq(Mux(behind.any(), behind, may)),
            chosen.eq(Mux(free, among & -among, 0)),
        ]
        with m.If(chosen.any()):
            m.d.sync += fresh.eq(0)
        for i in range(count):
            with m.If(chosen[i]):
                m.d.sync += pointer.eq((i + 1) % count)
