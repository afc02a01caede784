"""Drives a `C2c` whose links lead back to itself, and collects all that is seen of it."""

from hdl.arch import isa
from hdl.arch.encoding import encode
from hdl.arch.errors import Fault
from hdl.arch.queues import link_names
from hdl.c2c import C2c
from tests.hdl.c2c.model import Trace
from tests.support.pysim import run

__all__ = ["simulate"]

FAULT_DELAY = 1     # `faults` comes one cycle behind the cause


class _Bench:
    def __init__(self, cfg, issues, wires, cycles, rng):
        self.cfg, self.wires, self.cycles, self.rng = cfg, wires, cycles, rng
        self.dut, self.recorder = C2c(cfg), None
        self.links = range(len(link_names(cfg)))
        self.issues = {("send" if i.op == "SEND" else "recv", i.link, i.cycle): i for i in issues}
        assert len(self.issues) == len(issues), "two issues of one queue in one cycle"

    def noise(self, bits):
        return int.from_bytes(self.rng.bytes(-(-bits // 8)), "little") & (1 << bits) - 1

    def number(self, vector):
        return int.from_bytes(vector, "little")

    def drive(self, ctx, cycle):
        for k in self.links:
            for kind in ("send", "recv"):
                port = getattr(self.dut, f"{kind}{k}")
                issue = self.issues.get((kind, k, cycle))
                ctx.set(port.valid, issue is not None)
                ctx.set(port.word, encode(self.cfg, kind, issue.op, **issue.fields) if issue else
                        self.noise(isa.word_bits(self.cfg, kind)))
            issue, tap = self.issues.get(("send", k, cycle)), getattr(self.dut, f"tap{k}")
            for i in range(4):
                vector = issue.vectors[i] if issue and i < len(issue.vectors) else \
                    self.rng.bytes(self.cfg.lanes)
                ctx.set(tap.data[i], self.number(vector))

    def wire(self, ctx, cycle):
        driven = {target: self.trace.flits.get((cycle - latency, k))
                  for k, (target, latency) in self.wires.items()}
        for k in self.links:
            flit, rx = driven.get(k), getattr(self.dut, f"rx{k}")
            ctx.set(rx.valid, flit is not None)
            ctx.set(rx.data, self.noise(len(rx.data)) if flit is None else self.number(flit))

    def observe(self, ctx, cycle):
        trace, size = self.trace, self.cfg.lanes
        for k in self.links:
            tap, port, tx = (getattr(self.dut, f"{name}{k}") for name in ("tap", "port", "tx"))
            if ctx.get(tap.en):
                trace.taps[cycle, k] = (ctx.get(tap.stream), ctx.get(tap.west), ctx.get(tap.last),
                                        1 << ctx.get(tap.count_log2))
            targets = tuple(ctx.get(stream) if ctx.get(en) else None for stream, en in
                            ((port.east, port.east_en), (port.west, port.west_en)))
            if targets != (None, None):
                count = 1 << ctx.get(port.count_log2)
                trace.writes[cycle, k] = (*targets, [
                    ctx.get(port.data[i]).to_bytes(size, "little")
                    for i in range(count)])
            if ctx.get(tx.valid):
                trace.flits[cycle, k] = ctx.get(tx.data).to_bytes(self.cfg.port(k).bytes, "little")
        faults = ctx.get(self.dut.faults)
        trace.faults |= {(cycle - FAULT_DELAY, fault) for fault in Fault if faults >> fault & 1}

    def observe_arrivals(self, ctx, cycle):
        for k in self.links:
            if ctx.get(self.dut.arrivals[k].valid):
                self.trace.arrivals[cycle, k] = \
                    ctx.get(self.dut.arrivals[k].data).to_bytes(self.cfg.lanes, "little")

    async def bench(self, ctx):
        self.trace = Trace()
        for cycle in range(self.cycles):
            self.drive(ctx, cycle)
            self.observe(ctx, cycle)
            self.wire(ctx, cycle)
            self.observe_arrivals(ctx, cycle)
            if self.recorder:
                self.recorder.sample(ctx)
            await ctx.tick()


def simulate(cfg, issues, wires, rng, cycles, record=None):
    """`Trace` of ``issues`` on a C2c of ``cfg`` with ``wires`` as `expected` has them.

    Inputs that mean nothing carry noise.  ``record``, a function of the component, gives a
    `Recorder` that samples every cycle.
    """
    bench = _Bench(cfg, issues, wires, cycles, rng)
    bench.recorder = record(bench.dut) if record else None
    run(bench.dut, bench.bench)
    return bench.trace
