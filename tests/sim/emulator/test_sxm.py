"""Movement of lanes, with the cycles of docs/architecture.md."""

from dataclasses import replace

import pytest

from hdl.arch.errors import Fault
from hdl.arch.presets import NANO
from hdl.arch.queues import queues
from tests.sim.emulator.support import lines_at, run_tile

FLOORPLAN = ("mem0", "mem1", "mem2", "mem3", "sxm0", "mem4", "mem5", "mem6", "mem7", "vxm", "c2c")
CONFIGS = {lanes: replace(NANO, lanes=lanes, streams=16, floorplan=FLOORPLAN)
           for lanes in (4, 8, 16, 48)}
T_D = 2


class Bench:
    """Vectors that reach sxm0 on E0 .. E3, and what leaves it on E8 .. E11."""

    def __init__(self, cfg):
        self.cfg = cfg
        self.moments = {}
        self.content = {}
        self.stored = []

    def feed(self, cycle, vector, plane=0):
        name = f"mem{plane}"
        rows = self.content.setdefault(name, [])
        self._at(f"{name}.read", cycle - 1 - self.cfg.hops(name, "sxm0"), "READ",
                 address=len(rows), east_en=1, east=plane)
        rows.append(bytes(vector))

    def issue(self, cycle, op, **fields):
        """Issue on E0 (or the quad); the results go to E8 and are stored, but for MAP."""
        queue, = (queue.name for queue in queues(self.cfg) if queue.kind == "sxm")
        if op != "MAP":
            fields |= {"east_en": 1, "target": 8}
            for plane in range(4 if fields.get("quad") else 1):
                self._at(f"mem{4 + plane}.write", cycle + T_D + 1 + plane, "WRITE",
                         address=32 + len(self.stored), source=8 + plane, source_last=1)
                self.stored.append(f"mem{4 + plane}")
        self._at(queue, cycle, op, source_last=1, **fields)

    def _at(self, queue, cycle, op, **fields):
        self.moments.setdefault(queue, []).append((cycle, op, fields))

    def run(self, **options):
        """The stored vectors as lists of ints."""
        machine, result = run_tile(
            self.cfg, {name: lines_at(moments) for name, moments in self.moments.items()},
            sram={name: {0: b"".join(rows)} for name, rows in self.content.items()}, **options)
        self.faults, = result.faults
        return [machine.sram(0)[name][32 + i].tolist() for i, name in enumerate(self.stored)]


@pytest.mark.parametrize("lanes", CONFIGS)
def test_moves_of_one_stream(lanes):
    bench = Bench(CONFIGS[lanes])
    vector = [100 + i for i in range(lanes)]
    amounts = (0, 1, 3, lanes - 1)
    cycle = 20
    expected = []
    for amount in amounts:
        for op in ("SHIFT", "ROTATE", "DISTRIBUTE"):
            bench.feed(cycle, vector)
            bench.issue(cycle, op, amount=amount)
            cycle += 1
        expected += [[0] * amount + vector[:lanes - amount],
                     vector[lanes - amount:] + vector[:lanes - amount], [vector[amount]] * lanes]
    assert bench.run() == expected
    assert bench.faults == {}


def test_quad_moves_four_streams_alike():
    bench = Bench(CONFIGS[4])
    for plane in range(4):
        bench.feed(20, [10 * plane + i for i in range(4)], plane)
    bench.issue(20, "ROTATE", quad=1, amount=1)
    assert bench.run() == [[10 * plane + i for i in (3, 0, 1, 2)] for plane in range(4)]
    assert bench.faults == {}


@pytest.mark.parametrize("lanes", CONFIGS)
def test_permute_takes_what_the_map_names_and_zero_where_it_names_no_lane(rng, lanes):
    bench = Bench(CONFIGS[lanes])
    vector = rng.integers(1, 256, lanes).tolist()
    numbers = rng.integers(0, lanes, lanes).tolist()
    numbers[0], numbers[2] = 255, lanes
    bench.feed(20, numbers)
    bench.issue(20, "MAP", map=1)
    bench.feed(22, vector)
    bench.issue(22, "PERMUTE", map=1)
    found, = bench.run()
    assert found == [0 if n >= lanes else vector[n] for n in numbers]
    assert bench.faults == {}


def test_permute_one_cycle_behind_the_map_uses_the_map_before():
    bench = Bench(CONFIGS[4])
    for cycle, numbers in ((20, [3, 2, 1, 0]), (30, [0, 0, 0, 0]), (32, [1, 1, 1, 1])):
        bench.feed(cycle, numbers)
        bench.issue(cycle, "MAP")
    # map 1 is another; 31: the first; 33 of the second one's; 34: the third
    for cycle in (29, 31, 33, 34):
        bench.feed(cycle, [10, 11, 12, 13])
        bench.issue(cycle, "PERMUTE")
    bench.feed(35, [10, 11, 12, 13])
    bench.issue(35, "PERMUTE", map=1)
    found = bench.run()
    assert found[:4] == [[13, 12, 11, 10], [13, 12, 11, 10], [10] * 4, [11] * 4]
    assert found[4] == [10] * 4         # zeros: nothing was ever kept there


def test_operand_that_is_not_there_is_a_fault():
    bench = Bench(CONFIGS[4])
    bench.issue(20, "SHIFT")
    bench.run()
    assert bench.faults == {Fault.STREAM_INVALID: (20, "sxm0 E0")}
