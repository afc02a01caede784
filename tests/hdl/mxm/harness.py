"""Drives an `Mxm` with issues at given cycles and collects what it writes and reads."""

import numpy as np

from hdl.arch import isa
from hdl.arch.encoding import encode
from hdl.mxm import Mxm
from tests.hdl.mxm.model import Write
from tests.support.pysim import run

__all__ = ["simulate"]

_KIND = {"LW": "mxm_weight", "ABC": "mxm_act", "ACC": "mxm_act"}


def simulate(cfg, issues, rng, record=None):
    """Run ``issues`` on an MXM of ``cfg``.

    Parameters
    ----------
    record : function of the component, optional
        Gives a `Recorder` that samples every cycle.

    Returns
    -------
    writes : list of Write
        What it wrote, by cycle.
    taps : dict of (str, int) to (stream, west, last, count_log2)
        What it read, by the member's name and cycle.

    Inputs that mean nothing carry noise.
    """
    dut = Mxm(cfg)
    recorder = record(dut) if record else None
    cycles = max(issue.cycle for issue in issues) + 12
    by_cycle = {(_KIND[issue.op], issue.cycle): issue for issue in issues}
    assert len(by_cycle) == len(issues), "two issues of one queue in one cycle"
    writes, taps = [], {}

    def noise(bits):
        return int.from_bytes(rng.bytes(-(-bits // 8)), "little") & (1 << bits) - 1

    def drive(ctx, port, tap, kind, cycle):
        width = len(tap.valid)
        issue = by_cycle.get((kind, cycle))
        vectors = rng.integers(0, 256, (width, cfg.lanes))
        indices = {index.name: noise(bits) for index, bits in
                   zip(isa.KINDS[kind].indices, isa.index_bits(cfg, kind), strict=True)}
        word = noise(isa.word_bits(cfg, kind))
        if issue:
            # the bases in the word are not what counts
            word = encode(cfg, kind, issue.op, **issue.fields, **indices)
            indices.update(issue.index)
            if issue.vectors is not None:
                vectors[:len(issue.vectors)] = issue.vectors
        ctx.set(port.valid, issue is not None)
        ctx.set(port.word, word)
        for name, value in indices.items():
            ctx.set(port.index[name], value)
        for i, vector in enumerate(vectors):
            ctx.set(tap.data[i], int.from_bytes(bytes(vector.tolist()), "little"))
        ctx.set(tap.valid, noise(width))

    def observe(ctx, cycle):
        assert ctx.get(dut.faults) == 0
        for name in ("weight_tap", "act_tap"):
            tap = getattr(dut, name)
            if ctx.get(tap.en):
                count_log2 = ctx.get(tap.count_log2) if name == "weight_tap" else 0
                taps[name, cycle] = (ctx.get(tap.stream), ctx.get(tap.west), ctx.get(tap.last),
                                     count_log2)
        port = dut.port
        east = ctx.get(port.east) if ctx.get(port.east_en) else None
        west = ctx.get(port.west) if ctx.get(port.west_en) else None
        if (east, west) != (None, None):
            assert ctx.get(port.count_log2) == 2
            planes = [ctx.get(port.data[p]).to_bytes(cfg.lanes, "little")
                      for p in range(4)]
            values = np.frombuffer(bytes(b for lane in zip(*planes, strict=True) for b in lane),
                                   "<u4")
            writes.append(Write(cycle, east, west, values.tolist()))

    async def bench(ctx):
        writes.clear()
        taps.clear()
        for cycle in range(cycles):
            drive(ctx, dut.weight, dut.weight_tap, "mxm_weight", cycle)
            drive(ctx, dut.act, dut.act_tap, "mxm_act", cycle)
            observe(ctx, cycle)
            if recorder:
                recorder.sample(ctx)
            await ctx.tick()

    run(dut, bench)
    return writes, taps
