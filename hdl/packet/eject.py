"""Ejector: what arrives for a tile on one connection.

Timing of the last packet of a message, whose ``d`` flits of data follow its header in ``c``; the
last vector is in the tile's FIFO in ``a = c + d``::

    cycle     c         c+1         ..    a                 max(c + 1, a - 3) = n
    packet    header    data              last flit
    notify                                                  1

A RECV behind the release in ``n`` issues in ``n + NOTIFY_TO_ISSUE``, so in ``a + 1`` at the
earliest: the notification comes as early as it can.  A REQUEST that arrives in ``r`` and finds room
has its ACK on the wire in ``r + 2``.
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hdl.arch.packets import PacketKind, header_layout
from hdl.arch.timing import NOTIFY_TO_ISSUE
from hdl.signatures import FlitSignature

from .signatures import DeliverySignature, SourceSignature

__all__ = ["Ejector"]


class Ejector(wiring.Component):
    """Receiving side of a connection.

    Parameters
    ----------
    network : PacketNetwork

    Members
    -------
    link, target : In
        Of the connection, and of its ACKs: the tile that sends on it.
    handshake : In(1)
        Whether messages are requested.
    local : In(DeliverySignature)
        From the physical link that the connection arrives on, among others.
    taken : In(3)
        Vectors that the tile takes from its FIFO in this cycle.
    rx : Out(FlitSignature)
        To the tile, in the cycle of the delivery.
    notify : Out(1)
        A message is there, or will be when a queue released by this takes it: registered.
    source : Out(SourceSignature)
        ACK packets: once the FIFO has room for the whole message.
    """

    def __init__(self, network):
        self._network = network
        header = header_layout(network)
        super().__init__({
            "link": In(header["link"].shape), "target": In(header["target"].shape),
            "handshake": In(1), "local": In(DeliverySignature(network)), "taken": In(3),
            "rx": Out(FlitSignature(network.width)), "notify": Out(1),
            "source": Out(SourceSignature(network))})

    def elaborate(self, platform):
        m = Module()
        network, local = self._network, self.local
        header = data.View(header_layout(network), local.flit[:network.header_bits])
        begins = Signal()
        m.d.comb += begins.eq(local.valid & local.head & (header.link == self.link))
        self._data(m, header, begins)
        self._requests(m, header, begins)
        return m

    def _data(self, m, header, begins):
        network, local = self._network, self.local
        mine, final = Signal(), Signal()        # what the flits on their way belong to
        rest = Signal(range(network.largest(network.fifo)))     # of data behind this cycle
        left = Signal.like(rest)
        ends = Signal()
        m.d.comb += [self.rx.valid.eq(local.valid & ~local.head & mine),
                     self.rx.data.eq(local.flit), left.eq(rest - 1), ends.eq(final)]
        starts = Signal()
        m.d.comb += starts.eq(begins & (header.kind == PacketKind.DATA))
        with m.If(starts):
            m.d.comb += [left.eq(header.vectors * network.flits), ends.eq(header.last)]
        with m.If(local.valid & local.head):
            m.d.sync += [mine.eq(starts), final.eq(header.last)]
        with m.If(starts | self.rx.valid):
            m.d.sync += rest.eq(left)
        m.d.sync += self.notify.eq(ends & Mux(starts, left <= NOTIFY_TO_ISSUE,
                                              self.rx.valid & (left == NOTIFY_TO_ISSUE)))

    def _requests(self, m, header, begins):
        """One REQUEST at most is pending: the next comes behind its ACK."""
        fifo = self._network.fifo
        source = self.source
        pending, wanted = Signal(), Signal(bits_for(fifo))
        reserved = Signal(bits_for(fifo))       # vectors on their way or in the FIFO
        ack = Signal(header_layout(self._network))
        m.d.comb += [
            ack.kind.eq(PacketKind.ACK), ack.link.eq(self.link), ack.target.eq(self.target),
            source.ask.eq(pending & (reserved + wanted <= fifo)),
            source.length.eq(1), source.flit.eq(ack.as_value()),
        ]
        with m.If(begins & (header.kind == PacketKind.REQUEST)):
            m.d.sync += [pending.eq(1), wanted.eq(header.vectors)]
        with m.Elif(source.take):
            m.d.sync += pending.eq(0)
        with m.If(self.handshake):
            m.d.sync += reserved.eq(reserved - self.taken + Mux(source.take, wanted, 0))
