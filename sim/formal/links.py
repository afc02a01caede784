"""Benches of the links: both ends of one, and what a tile puts on them and when."""

from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.lib import data

from hdl.arch import isa
from hdl.arch.errors import Fault
from hdl.arch.presets import NANO
from hdl.c2c import C2c
from hdl.c2c.receive import LinkReceiver
from hdl.c2c.transmit import LinkTransmitter
from sim.formal.bench import inputs
from sim.formal.twins import twins

__all__ = ["other_data", "planned", "received", "transmitted"]

_PORT = NANO.ports[0]
_LANES = NANO.lanes
_VECTOR, _FLIT = 8 * _LANES, 8 * _PORT.bytes
_FLITS = _PORT.flits(_LANES)
_QUAD = 4
#: Vectors are numbered modulo this, which is more than a FIFO holds.
_NUMBERS = 4 * _PORT.fifo


def other_data(bench, mutation=None):
    """Two C2Cs with the same issues and arrivals of different flits, streams and FIFOs."""
    copies, _ = twins(
        bench, lambda: C2c(NANO), mutation=mutation,
        data=("*data", "*.rest", "*.before", "received_*"),
        partly={"arrivals": lambda arrivals, _: Cat(one.valid for one in arrivals)})
    bench.cover("flits_differ", copies[0].tx0.valid & (copies[0].tx0.data != copies[1].tx0.data))
    bench.cover("vectors_differ", copies[0].port0.east_en & (
        Value.cast(copies[0].port0.data) != Value.cast(copies[1].port0.data)))


def received(bench, mutation=None):
    """A receiver, and one vector that arrives: any one, by its number.

    The n-th vector that arrives, if there is room, is the n-th that is taken; it is at its place of
    `LinkReceiver.heads` as long as it is in the FIFO, and what is taken or dropped is told.
    """
    link = LinkReceiver(lanes=_LANES, width=_PORT.bytes, depth=_PORT.fifo)
    registers, _ = bench.place("link", link, mutation)
    inputs(bench, link)
    m = bench.m
    number = bench.constant(range(_NUMBERS), "number")
    arrivals, taken = (Signal(range(_NUMBERS), name=f"spec_{name}") for name in
                       ("arrivals", "taken"))
    part = Signal(range(_FLITS), name="spec_part")
    parts = [Signal(_FLIT, name=f"spec_part_{i}", reset_less=True) for i in range(_FLITS - 1)]
    tag, vector = Signal(_VECTOR, name="spec_tag", reset_less=True), Cat(*parts, link.rx.data)
    held, place = Signal(range(_NUMBERS), name="spec_held"), Signal(range(_NUMBERS), name="place")
    asked, complete = Signal(3, name="spec_asked"), Signal(name="spec_complete")
    m.d.comb += [
        held.eq(arrivals - taken), place.eq(number - taken), asked.eq(Mux(link.quad, _QUAD, 1)),
        complete.eq(link.rx.valid & (part == _FLITS - 1))]
    room, enough = held < _PORT.fifo, held >= asked
    with m.If(link.rx.valid):
        m.d.sync += part.eq(Mux(complete, 0, part + 1))
        for i, flit in enumerate(parts):
            with m.If(part == i):
                m.d.sync += flit.eq(link.rx.data)
    with m.If(complete & room):
        m.d.sync += arrivals.eq(arrivals + 1)
        with m.If(arrivals == number):
            m.d.sync += tag.eq(vector)
    with m.If(link.take & enough):
        m.d.sync += taken.eq(taken + asked)
    bench.check("arrived", link.arrived == (complete & room))
    bench.check("overflow", link.overflow == (complete & ~room))
    bench.check("underflow", link.underflow == (link.take & ~enough))
    bench.check("vector", ~complete | (link.vector == vector))
    bench.check("heads", (place >= held) | (link.heads.word_select(place, _VECTOR) == tag))
    bench.check("register_held", held <= _PORT.fifo)
    bench.check("register_count", registers["count"] == held)
    bench.check("register_head", registers["head"] == taken[:len(registers["head"])])
    bench.check("register_tail", registers["tail"] == arrivals[:len(registers["tail"])])
    bench.check("register_number", registers["number"] == part)
    for i, flit in enumerate(parts):
        for parts_there in range(i + 1, _FLITS):
            have = registers["before"].word_select(_FLITS - 1 - parts_there + i, _FLIT)
            bench.check(f"register_before_{parts_there}_{i}",
                        (part != parts_there) | (have == flit))
    bench.cover("full", held == _PORT.fifo)
    bench.cover("overflow", link.overflow)
    bench.cover("four_taken", link.take & link.quad & ~link.underflow)
    bench.cover("taken_while_one_arrives", link.take & ~link.underflow & link.arrived)


class _Sent:
    """What a link sends: vectors from the cycle behind their start on, flit by flit."""

    def __init__(self, m, name, width, *, start, quad, vectors):
        flits = -(-_LANES // width)
        size = 8 * width
        self.going = Signal(name=f"spec_{name}_going")
        self.flit = Signal(range(_QUAD * flits), name=f"spec_{name}_flit")
        self.kept = Signal(_QUAD * _VECTOR, name=f"spec_{name}_kept", reset_less=True)
        self.quad = Signal(name=f"spec_{name}_quad", reset_less=True)
        self.last = Signal(range(_QUAD * flits), name=f"spec_{name}_last")
        self.data = Signal(size, name=f"spec_{name}_data")
        fill = Const(0, flits * size - _VECTOR)
        self.flits = Cat((self.kept.word_select(i, _VECTOR), fill) for i in range(_QUAD))
        m.d.comb += [self.last.eq(Mux(self.quad, _QUAD * flits, flits) - 1),
                     self.data.eq(self.flits.word_select(self.flit, size))]
        with m.If(start):
            m.d.sync += [self.going.eq(1), self.flit.eq(0), self.kept.eq(vectors),
                         self.quad.eq(quad)]
        with m.Elif(self.going):
            m.d.sync += [self.going.eq(self.flit != self.last), self.flit.eq(self.flit + 1)]

    @property
    def busy(self):
        """A start in this cycle would be too early."""
        return self.going & (self.flit != self.last)

    def compare(self, bench, name, tx, registers, path=""):
        """Check the wire, and relate the transmitter's registers."""
        bench.check(f"{name}_valid", tx.valid == self.going)
        bench.check(f"{name}_data", ~self.going | (tx.data == self.data))
        count, rest = registers[f"{path}count"], registers[f"{path}rest"]
        bench.check(f"{name}_register_count",
                    count == Mux(self.going, self.last - self.flit + 1, 0))
        bench.check(f"{name}_register_flit", ~self.going | (self.flit <= self.last))
        size = len(self.data)
        bench.check(f"{name}_register_rest", ~self.going | (
            rest == self.flits >> self.flit * size))


def transmitted(bench, mutation=None):
    """A transmitter: every flit of what is started, once, in order, without a gap."""
    link = LinkTransmitter(lanes=_LANES, width=_PORT.bytes)
    registers, _ = bench.place("link", link, mutation)
    inputs(bench, link)
    sent = _Sent(bench.m, "tx", _PORT.bytes, start=link.start, quad=link.quad,
                 vectors=link.vectors)
    bench.assume(~link.start | ~sent.busy)
    bench.check("busy", link.busy == sent.busy)
    sent.compare(bench, "tx", link.tx, registers)
    bench.cover("four", sent.going & sent.quad & (sent.flit == _QUAD * _FLITS - 1))
    bench.cover("behind_each_other", link.start & sent.going)


def planned(bench, mutation=None):
    """All links of a tile: who sends what from which cycle on, and which faults come of it.

    SENDs by link, then RECVs and FORWARDs by link, start where all their links are idle and none
    of them starts something in this cycle; what starts is on the wire in the next cycle.
    """
    unit = C2c(NANO, trace=False)
    registers, wires = bench.place("links", unit, mutation)
    inputs(bench, unit)
    m, links = bench.m, range(len(NANO.ports) + 1)
    wanted = [_send(unit, k) for k in links] + [_receive(bench, unit, wires, k) for k in links]
    starts = [[Signal(name=f"spec_start_{k}_{i}") for i in range(len(wanted))] for k in links]
    vectors = [Signal(_QUAD * _VECTOR, name=f"spec_vectors_{k}") for k in links]
    sent = [_Sent(m, f"tx{k}", NANO.port(k).bytes, start=Cat(starts[k]).any(),
                  quad=Cat(start & want[1] for start, want in
                           zip(starts[k], wanted, strict=True)).any(),
                  vectors=vectors[k])
            for k in links]
    refused = []
    for i, (asks, _, moved) in enumerate(wanted):
        hindered = Signal(name=f"spec_hindered_{i}")
        m.d.comb += hindered.eq(Cat(asks[k] & (sent[k].busy | Cat(starts[k][:i]).any())
                                    for k in links).any())
        for k in links:
            m.d.comb += starts[k][i].eq(asks[k] & ~hindered)
            with m.If(starts[k][i]):
                m.d.comb += vectors[k].eq(moved)
        refused.append(hindered)
    busy = Signal(name="spec_link_busy")
    m.d.sync += busy.eq(Cat(refused).any())
    few, underflow = [], Signal(name="spec_underflow")
    for k in links:
        asked = Mux(wanted[len(links) + k][1], _QUAD, 1)
        few.append(getattr(unit, f"recv{k}").valid & (registers[f"receiver_{k}.count"] < asked))
    m.d.sync += underflow.eq(Cat(few).any())
    bench.check("fifo_underflow", unit.faults[Fault.FIFO_UNDERFLOW] == underflow)
    bench.check("link_busy", unit.faults[Fault.LINK_BUSY] == busy)
    for k in links:
        sent[k].compare(bench, f"tx{k}", getattr(unit, f"tx{k}"), registers, f"transmitter_{k}.")
    bench.cover("refused", busy)
    bench.cover("two_links", starts[0][0] & starts[1][0])
    bench.cover("passed_on", starts[0][3] & (vectors[0] != 0))


def _fields(kind, op, word):
    layout = isa.layout(NANO, kind, op)
    return data.View(layout, word[:layout.size])


def _send(unit, k):
    """Links that the SEND of link ``k`` asks for, whether it is a quad, and its vectors."""
    issue = getattr(unit, f"send{k}")
    send = _fields("send", isa.SendOp.SEND, issue.word)
    return (Mux(issue.valid, send.links, 0), send.quad,
            Value.cast(getattr(unit, f"tap{k}").data))


def _receive(bench, unit, wires, k):
    """The same of what its receive queue passes on, and a check of what a RECV puts on streams."""
    m, issue, port = bench.m, getattr(unit, f"recv{k}"), getattr(unit, f"port{k}")
    recv = _fields("recv", isa.RecvOp.RECV, issue.word)
    forward = _fields("recv", isa.RecvOp.FORWARD, issue.word)
    is_recv = issue.valid & (recv.op == isa.RecvOp.RECV)
    quad = Signal(name=f"spec_quad_{k}")
    taken = Signal(_QUAD * _VECTOR, name=f"spec_taken_{k}")
    m.d.comb += [quad.eq(is_recv & recv.quad),
                 taken.eq(Mux(wires[f"receiver_{k}.underflow"], 0, wires[f"receiver_{k}.heads"]))]
    puts = [Signal(name=f"spec_{name}_{k}") for name in ("east", "west")]
    put = Signal.like(taken, name=f"spec_put_{k}", reset_less=True)
    m.d.sync += [puts[0].eq(is_recv & recv.east_en), puts[1].eq(is_recv & recv.west_en),
                 put.eq(taken)]
    bench.check(f"recv{k}_streams", Cat(port.east_en, port.west_en) == Cat(puts))
    bench.check(f"recv{k}_vectors", ~Cat(puts).any() | (Value.cast(port.data) == put))
    asks = Mux(issue.valid, Mux(is_recv, recv.links, forward.links), 0)
    return asks, quad, taken
