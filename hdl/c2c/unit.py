"""C2C: the links of a tile, the host's among them.

Timing, for a link of ``latency`` cycles and ``f`` flits a vector::

    cycle      k             k+1            ..   k+f            k+(j+1)*f+latency
    SEND       streams read  first flit          last flit      vector j enters the far FIFO
    FORWARD    FIFO read     first flit          last flit      vector 0
    RECV       FIFO read     on the streams
               links: as a SEND of the same vectors in k
"""

from functools import reduce
from operator import or_
from types import SimpleNamespace

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.arch.errors import Fault
from hdl.arch.isa import RecvOp, SendOp
from hdl.arch.queues import link_names
from hdl.arch.trace import arrival_layout
from hdl.c2c.messages import announce, message_members
from hdl.c2c.receive import LinkReceiver
from hdl.c2c.transmit import QUAD, LinkTransmitter
from hdl.emit import once
from hdl.signatures import FAULT_BITS, FlitSignature, IssueSignature, ReadTap, WritePort, fields

__all__ = ["C2c"]


class C2c(wiring.Component):
    """All links of a tile.

    Parameters
    ----------
    cfg : TileConfig
    trace : bool
        Whether ``arrivals`` exists.

    Members
    -------
    send<k>, recv<k> : In(IssueSignature)
        Issues of the two queues of link ``k``; the host is the last link.
    tap<k> : Out(ReadTap)
        Streams that a SEND takes, in the cycle of its issue.
    port<k> : Out(WritePort)
        What a RECV puts, one cycle after its issue.
    tx<k>, rx<k> : Out, In(FlitSignature)
        The link itself.
    faults : Out(FAULT_BITS)
        ``LINK_BUSY``, ``FIFO_UNDERFLOW``, ``FIFO_OVERFLOW``: one cycle later.
    arrivals : Out(ArrayLayout(arrival_layout))
        Vector that enters the FIFO of each link in this cycle.
    post<k> : Out(PostSignature)
        With ``cfg.sync``, for each link but the host's: a POST in the cycle of its issue.  Of two
        to one link in one cycle the lower queue's counts, the other is ``LINK_BUSY``.
    taken<k> : Out(3)
        With ``cfg.sync``, likewise: vectors that leave the FIFO in this cycle.

    SENDs in the order of their links, and behind them FORWARDs and RECVs, start on the links they
    name if all of these are idle and taken by none before.  Otherwise nothing is sent; the streams
    are read, and vectors are taken from the FIFO and put on streams, all the same.  A RECV or
    FORWARD that asks for more vectors than there are takes none and moves zeros.  Reset stops the
    links and empties the FIFOs.
    """

    def __init__(self, cfg, *, trace=True):
        self._cfg = cfg
        self._trace = trace
        self._links = len(link_names(cfg))
        members = {"faults": Out(FAULT_BITS)}
        for k in range(self._links):
            members |= {
                f"send{k}": In(IssueSignature(cfg, "send")),
                f"recv{k}": In(IssueSignature(cfg, "recv")),
                f"tap{k}": Out(ReadTap(cfg, QUAD)),
                f"port{k}": Out(WritePort(cfg, QUAD)),
                f"tx{k}": Out(FlitSignature(cfg.port(k).bytes)),
                f"rx{k}": In(FlitSignature(cfg.port(k).bytes)),
            }
        if cfg.sync:
            members |= message_members(cfg)
        if trace:
            members["arrivals"] = Out(data.ArrayLayout(arrival_layout(cfg), self._links))
        super().__init__(members)

    def _of(self, name, k):
        return getattr(self, f"{name}{k}")

    def _ported(self, name):
        """That member of every link but the host's."""
        return [self._of(name, k) for k in range(len(self._cfg.ports))]

    def elaborate(self, platform):
        m = Module()
        links = range(self._links)
        receivers = [self._receiver(m, k, platform) for k in links]
        sends = [self._send(m, k) for k in links]
        forwards = [self._receive(m, k, receivers[k]) for k in links]
        transmitters = [self._transmitter(m, k, platform) for k in links]
        refused = self._start(m, [*sends, *forwards], transmitters)
        if self._cfg.sync:
            sends = [self._of("send", k) for k in links]
            refused = Cat(refused, announce(m, self._cfg, sends, self._ported("post")))
            for receiver, taken in zip(receivers, self._ported("taken"), strict=False):
                takes = receiver.take & ~receiver.underflow
                m.d.comb += taken.eq(Mux(takes, Mux(receiver.quad, QUAD, 1), 0))
        m.d.sync += [
            self.faults[Fault.LINK_BUSY].eq(refused.any()),
            self.faults[Fault.FIFO_UNDERFLOW].eq(Cat(r.underflow for r in receivers).any()),
            self.faults[Fault.FIFO_OVERFLOW].eq(Cat(r.overflow for r in receivers).any()),
        ]
        return m

    def _receiver(self, m, k, platform):
        port = self._cfg.port(k)
        receiver = once(platform, f"link_receiver_{port.bytes}_{port.fifo}", LinkReceiver,
                        lanes=self._cfg.lanes, width=port.bytes, depth=port.fifo)
        m.submodules[f"receiver_{k}"] = receiver
        wiring.connect(m, wiring.flipped(self._of("rx", k)), receiver.rx)
        if self._trace:
            m.d.comb += [
                self.arrivals[k].valid.eq(receiver.arrived),
                self.arrivals[k].data.eq(receiver.vector),
            ]
        return receiver

    def _transmitter(self, m, k, platform):
        width = self._cfg.port(k).bytes
        transmitter = once(platform, f"link_transmitter_{width}", LinkTransmitter,
                           lanes=self._cfg.lanes, width=width)
        m.submodules[f"transmitter_{k}"] = transmitter
        wiring.connect(m, transmitter.tx, wiring.flipped(self._of("tx", k)))
        return transmitter

    def _send(self, m, k):
        """What the send queue of link ``k`` wants to start."""
        issue, tap = self._of("send", k), self._of("tap", k)
        send = fields(self._cfg, "send", SendOp.SEND, issue.word)
        valid = issue.valid
        if self._cfg.sync:
            valid = Signal(name=f"is_send_{k}")
            m.d.comb += valid.eq(issue.valid & (send.op == SendOp.SEND))
        m.d.comb += [
            tap.en.eq(valid),
            tap.stream.eq(send.source),
            tap.west.eq(send.source_west),
            tap.last.eq(send.source_last),
            tap.count_log2.eq(Mux(send.quad, 2, 0)),
        ]
        return SimpleNamespace(valid=valid, links=send.links, quad=send.quad,
                               vectors=Value.cast(tap.data))

    def _receive(self, m, k, receiver):
        """RECV of link ``k``; returns what it, or its FORWARD, wants to start."""
        issue, port = self._of("recv", k), self._of("port", k)
        recv = fields(self._cfg, "recv", RecvOp.RECV, issue.word)
        forward = fields(self._cfg, "recv", RecvOp.FORWARD, issue.word)
        is_recv = Signal(name=f"is_recv_{k}")
        vectors = Signal(QUAD * 8 * self._cfg.lanes, name=f"vectors_{k}")
        held = Signal.like(vectors, name=f"received_{k}", reset_less=True)
        m.d.comb += [
            is_recv.eq(issue.valid & (recv.op == RecvOp.RECV)),
            receiver.take.eq(issue.valid),
            receiver.quad.eq(is_recv & recv.quad),
            vectors.eq(Mux(receiver.underflow, 0, receiver.heads)),
            Value.cast(port.data).eq(held),
        ]
        m.d.sync += [port.east_en.eq(is_recv & recv.east_en),
                     port.west_en.eq(is_recv & recv.west_en)]
        with m.If(is_recv):
            m.d.sync += [held.eq(vectors), port.count_log2.eq(Mux(recv.quad, 2, 0)),
                         port.east.eq(recv.east), port.west.eq(recv.west)]
        return SimpleNamespace(valid=issue.valid, links=Mux(is_recv, recv.links, forward.links),
                               quad=receiver.quad, vectors=vectors)

    def _start(self, m, wishes, transmitters):
        """Start what may start; returns a bit for every wish that is refused."""
        busy = Cat(transmitter.busy for transmitter in transmitters)
        # One signal for each: bits of one vector that depend on each other look like a loop.
        refusals, starts = [], []
        for i, wish in enumerate(wishes):
            refused = Signal(name=f"refused_{i}")
            start = Signal(self._links, name=f"start_{i}")
            taken = Signal(self._links, name=f"taken_{i}")
            m.d.comb += [
                refused.eq(wish.valid & (wish.links & busy).any()),
                start.eq(Mux(wish.valid & ~refused, wish.links, 0)),
                taken.eq(busy | start),
            ]
            busy = taken
            refusals.append(refused)
            starts.append(start)
        for k, transmitter in enumerate(transmitters):
            # at most one of the wishes starts on this link
            mine = list(zip(starts, wishes, strict=True))
            m.d.comb += [
                transmitter.start.eq(Cat(start[k] for start, _ in mine).any()),
                transmitter.quad.eq(reduce(or_, (start[k] & wish.quad for start, wish in mine))),
                transmitter.vectors.eq(reduce(or_, (
                    Mux(start[k], wish.vectors, 0) for start, wish in mine))),
            ]
        return Cat(refusals)
