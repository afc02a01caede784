"""Drives a `Vxm` with issues at given cycles and collects what it writes, reads and reports."""

from types import SimpleNamespace

import numpy as np

from hdl.arch.encoding import encode
from hdl.arch.errors import Fault
from hdl.vxm import Vxm
from tests.hdl.vxm.model import delay, results
from tests.support.pysim import run

__all__ = ["check", "simulate"]

#: Cycles from a fault to its pulse.
FAULT_DELAY = 1


def planes_of(values):
    """Bytes of a quad of streams, plane by plane, as one number."""
    return int.from_bytes(values.astype("<u4").view(np.uint8).reshape(-1, 4).T.tobytes(), "little")


def values_of(number, lanes):
    """Inverse of `planes_of`."""
    planes = np.frombuffer(number.to_bytes(4 * lanes, "little"), np.uint8).reshape(4, lanes)
    return np.ascontiguousarray(planes.T).view("<u4").ravel()


def simulate(cfg, issues, rng, name=None, recorder=None):
    """Run ``issues`` on a VXM of ``cfg``; gives what `model.results` gives.

    ``recorder``: function of the component that gives one of the context, called in every cycle.
    Inputs that mean nothing carry noise.
    """
    dut = Vxm(cfg)
    units = range(len(cfg.alus) + 1)
    by_cycle = {(issue.cycle, issue.unit): issue for issue in issues}
    assert len(by_cycle) == len(issues), "two issues of one queue in one cycle"
    cycles = max(issue.cycle + delay(cfg, issue.unit, issue.op) for issue in issues) + 3
    seen = SimpleNamespace(writes={}, taps={}, faults=set())

    def member(unit, what):
        if unit == len(cfg.alus):
            return {"issue": dut.reduce, "port": dut.reduce_port,
                    "taps": {"a": dut.reduce_tap}}[what]
        if what == "taps":
            return {"a": getattr(dut, f"a_tap{unit}"), "b": getattr(dut, f"b_tap{unit}")}
        return getattr(dut, f"{'alu' if what == 'issue' else 'port'}{unit}")

    def noise(bits):
        return int.from_bytes(rng.bytes(-(-bits // 8)), "little") & (1 << bits) - 1

    def drive(ctx, unit, cycle):
        port, issue = member(unit, "issue"), by_cycle.get((cycle, unit))
        ctx.set(port.valid, issue is not None)
        ctx.set(port.step, issue.step if issue else noise(len(port.step)))
        if issue:
            kind = "reduce" if unit == len(cfg.alus) else "alu"
            ctx.set(port.word, encode(cfg, kind, issue.op, **issue.fields))
        else:
            ctx.set(port.word, noise(len(port.word)))
        for operand, tap in member(unit, "taps").items():
            quad = rng.integers(0, 2**32, cfg.lanes, np.uint32)
            if issue and operand in issue.quads:
                quad = issue.quads[operand]
                if issue.op == "FROM_INT8":     # only the first stream counts
                    quad = quad & 0xFF | rng.integers(0, 2**24, cfg.lanes, np.uint32) << 8
            ctx.set(tap.data.as_value(), planes_of(quad))
            ctx.set(tap.valid, noise(4))

    def observe(ctx, unit, cycle):
        for operand, tap in member(unit, "taps").items():
            if ctx.get(tap.en):
                seen.taps[cycle, unit, operand] = (
                    ctx.get(tap.stream), ctx.get(tap.west), ctx.get(tap.last),
                    1 << ctx.get(tap.count_log2))
        port = member(unit, "port")
        targets = tuple(ctx.get(getattr(port, d)) if ctx.get(getattr(port, f"{d}_en")) else None
                        for d in ("east", "west"))
        if targets != (None, None):
            seen.writes[cycle, unit] = (*targets, 1 << ctx.get(port.count_log2),
                                        values_of(ctx.get(port.data.as_value()), cfg.lanes))

    async def bench(ctx):
        seen.writes.clear(), seen.taps.clear(), seen.faults.clear()
        sample = recorder(dut) if recorder else lambda ctx: None
        for cycle in range(cycles):
            for unit in units:
                drive(ctx, unit, cycle)
            for unit in units:
                observe(ctx, unit, cycle)
            sample(ctx)
            faults = ctx.get(dut.faults)
            seen.faults |= {(cycle - FAULT_DELAY, f) for f in Fault if faults >> f & 1}
            await ctx.tick()

    run(dut, bench, name=name)
    return seen


def check(cfg, issues, rng, name=None):
    """Run ``issues`` and compare all that is seen with the model; returns what was seen."""
    seen, expected = simulate(cfg, issues, rng, name), results(cfg, issues)
    assert seen.taps == expected.taps
    assert seen.faults == expected.faults
    assert seen.writes.keys() == expected.writes.keys()
    for where, (east, west, count, values) in expected.writes.items():
        assert seen.writes[where][:3] == (east, west, count), where
        if values is not None:
            wanted = (1 << 8 * count) - 1      # what lies above is on no stream
            np.testing.assert_array_equal(seen.writes[where][3] & wanted, values & wanted,
                                          err_msg=str(where))
    return seen
