"""VXM, SXM and GATHER within a tile: programs whose results come back through SRAM."""

from dataclasses import replace

import numpy as np

from hdl.arch.config import AluConfig
from hdl.arch.presets import NANO
from hdl.arch.queues import queues
from hdl.arch.timing import of
from hdl.tile import Tile
from tests.hdl.host import Host, Recorder, program
from tests.sim.emulator.support import events, lines_at, run_tile
from tests.support.pysim import run

#: Four slices on each side of the VXM: what is read in the west goes through it to the east.
CFG = replace(
    NANO, mem_words=24, icu_words=32, floorplan=(
        "mem0", "mem1", "mem2", "mem3", "vxm", "sxm0", "mem4", "mem5", "mem6", "mem7", "c2c"),
    alus=(AluConfig(features=("add", "mul"), depth=3), AluConfig(features=("add",), depth=5)))
STREAM, RESULT, ENTRY, IMMEDIATE = range(4)
WEST, EAST = range(4), range(4, 8)


class Plan:
    """Instructions by queue and cycle."""

    def __init__(self):
        self._moments = {}
        self._queues = {queue.name: queue for queue in queues(CFG)}

    def at(self, cycle, queue, op, **fields):
        """Issue ``op`` in ``cycle``; gives the cycle of its result."""
        self._moments.setdefault(queue, []).append((cycle, op, fields))
        return cycle + of(CFG, self._queues[queue], op).t_d

    def read(self, cycle, address):
        """Planes of the words at ``address`` onto the eastward streams 0 .. 3, at the VXM in
        ``cycle``."""
        for plane, i in enumerate(WEST):
            self.at(cycle - 1 - CFG.hops(f"mem{i}", "vxm"), f"mem{i}.read", "READ",
                    address=address, east_en=1, east=plane)

    @property
    def lines(self):
        return {queue: lines_at(moments) for queue, moments in self._moments.items()}


def planes_of(values):
    """Words of the western slices, plane 0 first, that carry ``values`` of 32 bits."""
    return [row.tobytes() for row in np.ascontiguousarray(values.view(np.uint8).reshape(-1, 4).T)]


def execute(plan, sram, name):
    """Words that were written, by (slice, address), after the same from the emulator.

    ``sram``: words by (slice, address).
    """
    lines, slices = plan.lines, CFG.slices("mem")
    images = {slice_name: {} for slice_name in slices}
    for (slice_name, address), word in sram.items():
        images[slice_name][address] = word
    _, result = run_tile(CFG, lines, sram=images)
    assert not result.faults[0]
    writes = [(cycle, slices[unit], address, word)
              for cycle, _, unit, address, word in events(result.writes)]
    found = {}
    tile = Tile(CFG)
    recorder = Recorder(CFG, tile)

    async def bench(ctx):
        host = Host(ctx, CFG, tile)
        words = program(CFG, **{queue.replace(".", "_"): line for queue, line in lines.items()})
        await host.load(words, sram=sram)
        start = await host.start()
        await host.finish()
        assert ctx.get(tile.errors) == 0
        assert sorted(recorder.writes) == sorted((start + cycle, *rest) for cycle, *rest in writes)
        for _, slice_name, address, _ in writes:
            found[slice_name, address] = await host.read(slice_name, address)

    run(tile, bench, background=[recorder.bench], name=name)
    assert found == {(slice_name, address): word for _, slice_name, address, word in writes}
    return found


def test_scaled_sum_of_squares_is_rotated_into_place(rng):
    values = rng.standard_normal((2, CFG.lanes)).astype(np.float32)
    plan, at = Plan(), 12
    plan.read(at, 3)
    squares = plan.at(at, "alu0", "MUL", a=STREAM, b=STREAM, b_source_last=1, keep=1, entry=1)
    plan.read(at + 1, 4)
    plan.at(at + 1, "alu1", "PASS", a=STREAM, a_source_last=1, keep=1, entry=2)
    total = plan.at(squares, "reduce", "SUM", a=RESULT, a_source=0)
    product = plan.at(total, "alu0", "MUL", a=RESULT, a_source=2, b=ENTRY, b_source=1)
    out = plan.at(product, "alu1", "SUB", a=RESULT, a_source=0, b=ENTRY, b_source=2, east_en=1,
                  target=4)
    moved = plan.at(out + CFG.hops("vxm", "sxm0"), "sxm0", "ROTATE", quad=1, amount=3, source=4,
                    source_last=1, east_en=1)
    for plane, i in enumerate(EAST):
        plan.at(moved + CFG.hops("sxm0", f"mem{i}"), f"mem{i}.write", "WRITE", address=7,
                source=plane, source_last=1)
    found = execute(plan, {(f"mem{i}", address): word for address, row in zip((3, 4), values,
                                                                             strict=True)
                           for i, word in zip(WEST, planes_of(row), strict=True)}, "vectors_sum")
    planes = np.frombuffer(b"".join(found[f"mem{i}", 7] for i in EAST), np.uint8).reshape(4, -1)
    a, b = values
    total = (a[0] * a[0] + a[1] * a[1]) + (a[2] * a[2] + a[3] * a[3])
    np.testing.assert_array_equal(planes.T.copy().view("<f4").ravel(),
                                  np.roll(total * (a * a) - b, 3))


def test_gathered_words_are_those_that_the_vxm_names(rng):
    base, words = 5, CFG.mem_words
    numbers = np.array([3, 0, words - 6, words - 5, -5, -6, 2**31 - 1, -2**31], np.int64)
    plan, sram = Plan(), {}
    for i, number in enumerate(numbers):
        at = 12 + 2 * i
        plan.read(at, i)
        put = plan.at(at, "alu0", "IADD", a=STREAM, a_source_last=1, b=IMMEDIATE, immediate=1,
                      east_en=1, target=4)
        out = plan.at(put + CFG.hops("vxm", "mem4"), "mem4.read", "GATHER", address=base, source=4,
                      source_last=1, east_en=1, east=1)
        plan.at(out + CFG.hops("mem4", "mem6"), "mem6.write", "WRITE", address=i, source=1,
                source_last=1)
        # lanes but the first carry anything
        lanes = np.array([number - 1, *rng.integers(-2**31, 2**31, CFG.lanes - 1)]).astype("<i4")
        sram |= {(f"mem{k}", i): word for k, word in zip(WEST, planes_of(lanes), strict=True)}
    table = [rng.bytes(CFG.lanes) for _ in range(words)]
    sram |= {("mem4", address): word for address, word in enumerate(table)}
    found = execute(plan, sram, "vectors_gather")
    expected = [table[base + number] if 0 <= base + number < words else bytes(CFG.lanes)
                for number in numbers.tolist()]
    assert [found["mem6", i] for i in range(len(numbers))] == expected
    assert expected.count(bytes(CFG.lanes)) == 4


def test_map_that_was_computed_permutes_what_comes_behind_it(rng):
    plan, at = Plan(), 12
    order = np.array([2, 0, 9, 3], np.float32)
    plan.read(at, 0)
    put = plan.at(at, "alu1", "TO_INT8", a=STREAM, a_source_last=1, east_en=1, target=6)
    mapped = put + CFG.hops("vxm", "sxm0")
    plan.at(mapped, "sxm0", "MAP", source=6, source_last=1, map=1)
    word = rng.bytes(CFG.lanes)
    plan.at(mapped + 2 - 1 - CFG.hops("mem1", "sxm0"), "mem1.read", "READ", address=9, east_en=1)
    out = plan.at(mapped + 2, "sxm0", "PERMUTE", source_last=1, map=1, east_en=1, target=3)
    plan.at(out + CFG.hops("sxm0", "mem5"), "mem5.write", "WRITE", address=1, source=3,
            source_last=1)
    sram = {(f"mem{i}", 0): plane for i, plane in zip(WEST, planes_of(order), strict=True)}
    found = execute(plan, sram | {("mem1", 9): word}, "vectors_map")
    assert found == {("mem5", 1): bytes([word[2], word[0], 0, word[3]])}
