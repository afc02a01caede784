from dataclasses import replace
from itertools import combinations

import pytest
from amaranth import ResetInserter, Signal

from hdl.arch.errors import Fault
from hdl.arch.presets import NANO
from hdl.stream import StreamStage
from tests.support.pysim import run

#: Taps, ports, streams, the directions that end here.
SHAPES = {
    "mem": ((1,), (1,), 8, ()),
    "mxm": ((4, 1), (4,), 8, ("west",)),
    "c2c": ((4, 4), (4, 4), 8, ()),
    "last": ((1, 1), (1, 4), 8, ("east",)),
    "few_streams": ((4, 1), (4, 1), 4, ()),
    "odd_streams": ((4, 1), (4, 1), 12, ("east",)),
    "no_unit": ((), (), 8, ()),
    "alone": ((1,), (1,), 8, ("east", "west")),
}
DIRECTIONS = ("east", "west")


def streams_of(first, count):
    """Streams that an access of 1, 2 or 4 aligned streams names."""
    first -= first % count
    return range(first, first + count)


def step(arriving, taps, ports, ends):
    """One cycle at a position, from the rules: (vectors for each tap, what moves on, faults)."""
    faults = set()
    taken, cleared = [], []
    for tap in taps:
        named = [(tap["direction"], s) for s in streams_of(tap["stream"], tap["count"])]
        if not tap["en"]:
            named = []
        taken.append([arriving.get(stream) for stream in named])
        if None in taken[-1]:
            faults.add(Fault.STREAM_INVALID)
        cleared.append(set(named if tap["last"] else ()))
    written = []
    for port in ports:
        count = port["count"]
        written.append({(d, s): port["data"][i] for d in DIRECTIONS if port[d] is not None
                        for i, s in enumerate(streams_of(port[d], count))})
    if any(a & b for a, b in combinations(cleared, 2)) or \
            any(a.keys() & b.keys() for a, b in combinations(written, 2)):
        faults.add(Fault.STREAM_CONFLICT)
    stays = {s: v for s, v in arriving.items() if not any(s in c for c in cleared)}
    moving = dict(stays)
    for w in written:
        if w.keys() & stays.keys():
            faults.add(Fault.STREAM_OVERWRITE)
        for s, v in w.items():
            moving[s] = None if s in moving and s not in stays else v   # None: undefined
    if any(direction in ends for direction, _ in moving):
        faults.add(Fault.STREAM_LOST)
    return taken, moving, faults


def random_cycle(rng, cfg, taps, ports, density):
    arriving = {(d, s): int(rng.integers(1 << 8 * cfg.lanes)) for d in DIRECTIONS
                for s in range(cfg.streams) if rng.random() < density}
    return (arriving,
            [{"en": rng.random() < 0.7, "direction": DIRECTIONS[rng.integers(2)],
              "stream": int(rng.integers(cfg.streams)), "last": rng.random() < 0.7,
              "count": 1 if width == 1 else int(rng.choice([1, 2, 4])), "width": width}
             for width in taps],
            [{**{d: int(rng.integers(cfg.streams)) if rng.random() < 0.4 else None
                 for d in DIRECTIONS},
              "count": int(rng.choice([1, 2, 4])) if width == 4 else 1,
              "data": [int(rng.integers(1 << 8 * cfg.lanes)) for _ in range(width)]}
             for width in ports])


def drive(ctx, dut, cfg, arriving, taps, ports):
    size = 8 * cfg.lanes
    for d in DIRECTIONS:
        streams = getattr(dut, f"in_{d}")
        vectors = {s: v for (direction, s), v in arriving.items() if direction == d}
        ctx.set(streams.data, sum(v << size * s for s, v in vectors.items()))
        ctx.set(streams.valid, sum(1 << s for s in vectors))
    for i, tap in enumerate(taps):
        port = getattr(dut, f"tap{i}")
        ctx.set(port.en, tap["en"])
        ctx.set(port.west, tap["direction"] == "west")
        ctx.set(port.stream, tap["stream"])
        ctx.set(port.last, tap["last"])
        if tap["width"] == 4:
            ctx.set(port.count_log2, tap["count"].bit_length() - 1)
    for i, values in enumerate(ports):
        port = getattr(dut, f"port{i}")
        for d in DIRECTIONS:
            ctx.set(getattr(port, f"{d}_en"), values[d] is not None)
            ctx.set(getattr(port, d), values[d] or 0)
        if len(values["data"]) == 4:
            ctx.set(port.count_log2, values["count"].bit_length() - 1)
        ctx.set(port.data.as_value(), sum(v << size * j for j, v in enumerate(values["data"])))


def check_taken(ctx, dut, taps, taken):
    for i, (tap, vectors) in enumerate(zip(taps, taken, strict=True)):
        port = getattr(dut, f"tap{i}")
        for j, vector in enumerate(vectors):
            assert (ctx.get(port.valid) >> j & 1) == (vector is not None), (tap, j)
            assert ctx.get(port.data[j]) == (vector or 0), (tap, j)


def check_moved(ctx, dut, cfg, moving, ends):
    size = 8 * cfg.lanes
    for d in DIRECTIONS:
        if d in ends:
            assert not hasattr(dut, f"out_{d}")
            continue
        out = getattr(dut, f"out_{d}")
        expected = {s: v for (direction, s), v in moving.items() if direction == d}
        assert ctx.get(out.valid) == sum(1 << s for s in expected)
        for s, v in expected.items():
            assert v is None or ctx.get(out.data) >> size * s & (1 << size) - 1 == v


@pytest.mark.parametrize("shape", SHAPES)
def test_stage_follows_the_rules(shape, rng):
    taps, ports, streams, ends = SHAPES[shape]
    cfg = replace(NANO, streams=streams)
    dut = StreamStage(cfg, taps, ports, last_east="east" in ends, last_west="west" in ends)
    seen = set()

    async def bench(ctx):
        for cycle in range(150):
            stimulus = random_cycle(rng, cfg, taps, ports, 0.05 if cycle % 2 else 0.7)
            drive(ctx, dut, cfg, *stimulus)
            taken, moving, faults = step(*stimulus, ends)
            check_taken(ctx, dut, stimulus[1], taken)
            await ctx.tick()
            check_moved(ctx, dut, cfg, moving, ends)
            assert ctx.get(dut.faults) == sum(1 << fault for fault in faults)
            seen.update(faults)

    run(dut, bench, name=f"stream_{shape}")
    possible = {Fault.STREAM_INVALID, Fault.STREAM_OVERWRITE} if taps else set()
    possible |= {Fault.STREAM_LOST} if ends else set()
    possible |= {Fault.STREAM_CONFLICT} if max(len(taps), len(ports)) > 1 else set()
    assert seen == possible


def test_reset_clears_valid():
    dut = StreamStage(NANO, (), ())
    reset = Signal()

    async def bench(ctx):
        ctx.set(dut.in_east.valid, 0xFF)
        await ctx.tick()
        assert ctx.get(dut.out_east.valid) == 0xFF
        ctx.set(reset, 1)
        await ctx.tick()
        assert ctx.get(dut.out_east.valid) == 0

    run(ResetInserter(reset)(dut), bench)
