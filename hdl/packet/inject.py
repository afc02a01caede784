"""Injector: the messages that a tile sends on one connection, cut into packets.

Timing, with ``f`` flits a vector and a free link, for a message that needs no request; its last
vector is sent by a SEND issued in ``s``::

    cycle     s          s+1           s+2       s+3     ..
    tile      SEND       first flit    ..
    packet               ask, take     header    first flit of the packet
                                       on the wire

With a request, for a POST issued in ``p``: it is on the wire in ``p + 2``; an ACK that arrives in
``a`` has the header of the first packet on the wire in ``a + 2``, if its vectors are there.
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hdl.arch.isa import POST_BITS
from hdl.arch.packets import POSTS, NetworkFault, PacketKind, header_layout
from hdl.signatures import FlitSignature, PostSignature

from .signatures import SourceSignature

__all__ = ["Injector"]


class Injector(wiring.Component):
    """Sending side of a connection.

    Parameters
    ----------
    network : PacketNetwork

    Members
    -------
    link, target : In
        Of its headers.
    chunk : In
        Vectors that a packet carries at most.
    handshake : In(1)
        Whether a message is requested before it goes.
    tx : In(FlitSignature)
        What the tile sends, into the outbox.
    post : In(PostSignature)
        Messages, in the order of what the tile sends.
    acked : In(1)
        An ACK of this connection arrives.
    source : Out(SourceSignature)
        REQUEST and DATA packets.  A packet of DATA can go as soon as the first flit of its last
        vector comes, since the others are never behind.
    faults : Out(3)
        ``OUTBOX``, ``POSTS``, ``LENGTH`` of `NetworkFault` in this cycle; what does not fit is
        dropped.

    The next message is requested as soon as the one before is acknowledged, so while it goes.
    """

    def __init__(self, network):
        self._network = network
        header = header_layout(network)
        super().__init__({
            "link": In(header["link"].shape), "target": In(header["target"].shape),
            "chunk": In(bits_for(network.fifo)), "handshake": In(1),
            "tx": In(FlitSignature(network.width)), "post": In(PostSignature()), "acked": In(1),
            "source": Out(SourceSignature(network)), "faults": Out(NetworkFault.BUFFER.value)})

    def elaborate(self, platform):
        m = Module()
        network, source = self._network, self.source
        self._messages(m)
        rest = Signal(range(network.fifo * network.flits + 1))  # of the packet that is going
        started = Signal(range(network.outbox + 2))     # vectors that came and no packet has
        first, pop = Signal(), Signal()
        flit = self._outbox(m, first, pop)
        there = Signal.like(started)
        sent, left = Signal(POST_BITS), Signal(POST_BITS)
        size = Signal.like(self.chunk)
        last, data_asks, goes = Signal(), Signal(), Signal()
        header = Signal(header_layout(network))
        m.d.comb += [
            there.eq(started + first),
            left.eq(self._vectors - sent),
            last.eq(left <= self.chunk),
            size.eq(Mux(last, left, self.chunk)),
            data_asks.eq(self._allowed & (there >= size)),
            source.ask.eq((rest == 0) & (self._requests | data_asks)),
            header.link.eq(self.link), header.target.eq(self.target),
            source.length.eq(1),
            header.kind.eq(PacketKind.REQUEST), header.vectors.eq(self._wanted),
            source.flit.eq(Mux(rest == 0, header.as_value(), flit)),
            pop.eq(source.take & (rest != 0)),
            self._requested.eq(source.take & (rest == 0) & self._requests),
            goes.eq(source.take & (rest == 0) & ~self._requests),
            self._finished.eq(goes & last),
        ]
        with m.If(~self._requests):
            m.d.comb += [header.kind.eq(PacketKind.DATA), header.vectors.eq(size),
                         header.last.eq(last), source.length.eq(size * network.flits + 1)]
        m.d.sync += started.eq(there - Mux(goes, size, 0))
        with m.If(goes):
            m.d.sync += [rest.eq(size * network.flits), sent.eq(Mux(last, 0, sent + size))]
        with m.Elif(pop):
            m.d.sync += rest.eq(rest - 1)
        return m

    def _messages(self, m):
        """The announced messages: one is sent, one requested, others wait.

        Numbers of messages count modulo twice `POSTS`: announced, requested, acknowledged and
        finished ones.
        """
        m.submodules.posts = posts = Memory(shape=POST_BITS, depth=POSTS, init=[])
        write = posts.write_port()
        asked, current = (posts.read_port(domain="comb") for _ in range(2))
        made, requested, granted, done = (Signal(range(2 * POSTS), name=name) for name in
                                          ("made", "requested", "granted", "done"))
        self._vectors, self._wanted = current.data, asked.data
        self._requests, self._allowed = Signal(), Signal()
        self._requested, self._finished = Signal(), Signal()
        full, good = Signal(), Signal()
        long = self.handshake & (self.post.vectors > self._network.fifo)
        m.d.comb += [
            full.eq((made - done)[:len(made)] == POSTS),
            good.eq(self.post.valid & ~full & ~long),
            write.en.eq(good), write.addr.eq(made), write.data.eq(self.post.vectors),
            asked.addr.eq(requested), current.addr.eq(done),
            self._requests.eq(self.handshake & (requested != made) & (requested == granted)),
            self._allowed.eq(done != Mux(self.handshake, granted, made)),
            self.faults[NetworkFault.POSTS].eq(self.post.valid & full),
            self.faults[NetworkFault.LENGTH].eq(self.post.valid & long),
        ]
        m.d.sync += [made.eq(made + good), requested.eq(requested + self._requested),
                     granted.eq(granted + self.acked), done.eq(done + self._finished)]

    def _outbox(self, m, first, pop):
        """The FIFO of flits; returns the oldest.  ``first``: the first of a vector comes."""
        network, depth = self._network, self._network.outbox
        m.submodules.outbox = outbox = Memory(shape=8 * network.width, depth=depth, init=[])
        write, read = outbox.write_port(), outbox.read_port(domain="comb")
        count, number = Signal(range(depth + 1)), Signal(range(max(network.flits, 2)))
        head, tail = Signal(range(depth)), Signal(range(depth))
        push, full = Signal(), Signal()
        m.d.comb += [
            full.eq(count == depth),
            push.eq(self.tx.valid & ~full),
            first.eq(push & (number == 0)),
            write.en.eq(push), write.addr.eq(tail), write.data.eq(self.tx.data),
            read.addr.eq(head),
            self.faults[NetworkFault.OUTBOX].eq(self.tx.valid & full),
        ]
        m.d.sync += count.eq(count + push - pop)
        with m.If(push):
            m.d.sync += [number.eq(Mux(number == network.flits - 1, 0, number + 1)),
                         tail.eq(Mux(tail == depth - 1, 0, tail + 1))]
        with m.If(pop):
            m.d.sync += head.eq(Mux(head == depth - 1, 0, head + 1))
        return read.data
