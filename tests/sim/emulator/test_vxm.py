"""ALUs and lane reduction in time, with the cycles of docs/architecture.md; arithmetic has tests of
its own."""

from dataclasses import replace

import numpy as np
import pytest

from hdl.arch.config import AluConfig
from hdl.arch.errors import Fault
from hdl.arch.ops import Operand
from hdl.arch.presets import NANO
from hdl.arch.queues import queues
from tests.sim.emulator.support import lines_at, run_tile

#: ALUs of depth 3 and 5; levels of 4 cycles.
CFG = replace(NANO, streams=16, mem_words=256, icu_words=256, reduce_depth=4, floorplan=(
    "mem0", "mem1", "mem2", "mem3", "vxm", "mem4", "mem5", "mem6", "mem7", "c2c"),
    alus=(AluConfig(features=("add", "mul"), depth=3),
          AluConfig(features=("add", "special"), depth=5)))
STREAM, RESULT, ENTRY, IMMEDIATE, STEP = (
    {"operand": kind.value} for kind in (Operand.STREAM, Operand.RESULT, Operand.ENTRY,
                                         Operand.IMMEDIATE, Operand.STEP))


def f32(*values):
    return np.array(values, np.float32)


def bits_of(value):
    return int(np.float32(value).view(np.uint32))


class Bench:
    """Values that reach the VXM on E0 .. E3, and results that are stored as they leave it."""

    def __init__(self, cfg=CFG):
        self.cfg = cfg
        self.moments = {}
        self.content = {}
        self.results = 0

    def feed(self, cycle, values, planes=4, stream=0):
        """Let ``values`` (32-bit patterns, or bytes with one plane) be at the VXM in ``cycle``."""
        values = np.asarray(values)
        for plane in range(planes):
            name = f"mem{plane}"
            rows = self.content.setdefault(name, [])
            self._at(f"{name}.read", cycle - 1 - self.cfg.hops(name, "vxm"), "READ",
                     address=len(rows), east_en=1, east=stream + plane)
            rows.append(values.view(np.uint8).reshape(self.cfg.lanes, -1)[:, plane].tobytes())

    def alu(self, number, cycle, op, a=None, b=None, source=0, east=None, **fields):
        """Issue of an ALU; operands: see STREAM and its fellows, with ``source``."""
        given = {}
        for name, operand in (("a", a), ("b", b)):
            kind, *at = operand or (STREAM, source)
            given |= {name: kind["operand"], f"{name}_source": at[0] if at else 0}
        self._issue("alu", number, cycle, op, east, given | fields)

    def reduce(self, cycle, op, a=(STREAM, 0), east=None):
        self._issue("reduce", 0, cycle, op, east, {"a": a[0]["operand"], "a_source": a[1]})

    def _issue(self, kind, number, cycle, op, east, fields):
        queue, = (queue.name for queue in queues(self.cfg)
                  if (queue.kind, queue.unit) == (kind, number))
        if east is not None:
            fields = {"east_en": 1, "target": east} | fields
        self._at(queue, cycle, op, **fields)

    def store(self, cycle, stream, planes=4):
        """Store the planes that leave the VXM in ``cycle``; the others are taken as zero."""
        for plane in range(planes):
            name = f"mem{4 + plane}"
            self._at(f"{name}.write", cycle + self.cfg.hops(name, "vxm"), "WRITE",
                     address=self.results, source=stream + plane, source_last=1)
        self.results += 1

    def _at(self, queue, cycle, op, **fields):
        self.moments.setdefault(queue, []).append((cycle, op, fields))

    def run(self, **options):
        """What was stored, uint32 arrays (lanes,); faults but for lost values."""
        machine, result = run_tile(
            self.cfg, {name: lines_at(moments) for name, moments in self.moments.items()},
            sram={name: {0: b"".join(rows)} for name, rows in self.content.items()}, **options)
        planes = [machine.sram(0)[f"mem{4 + plane}"].astype(np.uint32) for plane in range(4)]
        words = sum(rows << 8 * plane for plane, rows in enumerate(planes))
        faults, = result.faults
        self.lost = faults.pop(Fault.STREAM_LOST, None)
        self.faults = faults
        return [words[i] for i in range(self.results)]


@pytest.mark.parametrize("number", [0, 1])
def test_result_is_on_the_streams_a_depth_behind_the_issue(number):
    bench = Bench()
    bench.feed(20, f32(1, 2, 3, 4))
    bench.alu(number, 20, "ADD", b=(IMMEDIATE,), immediate=bits_of(0.5), east=4)
    bench.store(20 + CFG.alus[number].depth, 4)
    found, = bench.run()
    assert found.view(np.float32).tolist() == [1.5, 2.5, 3.5, 4.5]
    assert bench.faults == {}


def test_operands_keep_their_order_and_immediates_fill_all_lanes():
    bench = Bench()
    bench.feed(20, f32(1, 2, 3, 4))
    bench.feed(21, f32(1, 2, 3, 4))
    bench.alu(0, 20, "SUB", b=(IMMEDIATE,), immediate=bits_of(10), east=4)
    bench.alu(0, 21, "SUB", a=(IMMEDIATE,), b=(STREAM, 0), immediate=bits_of(10), east=4)
    bench.store(23, 4)
    bench.store(24, 4)
    first, second = bench.run()
    assert first.view(np.float32).tolist() == [-9, -8, -7, -6]
    assert second.view(np.float32).tolist() == [9, 8, 7, 6]


@pytest.mark.parametrize("early", [-1, 0, 1])
def test_result_can_be_an_operand_in_its_one_cycle(early):
    """ALU 0 issues in 20; its result exists in 23."""
    bench = Bench()
    bench.feed(20, f32(1, 2, 3, 4))
    bench.alu(0, 20, "MUL", b=(STREAM, 0))
    bench.alu(1, 23 - early, "ADD", a=(RESULT, 0), b=(RESULT, 0), east=8)
    bench.store(28 - early, 8)
    found, = bench.run()
    if early:
        assert bench.faults[Fault.STREAM_INVALID].cycle == 23 - early
        assert not found.any()
    else:
        assert bench.faults == {}
        assert found.view(np.float32).tolist() == [2, 8, 18, 32]


def test_chain_back_and_forth_through_the_crossbar():
    bench = Bench()
    bench.feed(20, np.arange(4, dtype=np.int32))
    cycle, expected = 20, np.arange(4)
    for step in range(6):
        number, source = step % 2, (STREAM, 0) if step == 0 else (RESULT, 1 - step % 2)
        bench.alu(number, cycle, "IADD" if step % 3 else "ISUB", a=source, b=(IMMEDIATE,),
                  immediate=100 + step, east=4 if step == 5 else None)
        expected = expected + (100 + step if step % 3 else -100 - step)
        cycle += CFG.alus[number].depth
    bench.store(cycle, 4)
    found, = bench.run()
    assert found.view(np.int32).tolist() == expected.tolist()
    assert bench.faults == {}


def test_entry_is_read_when_the_result_exists_and_not_before():
    bench = Bench()
    bench.alu(0, 20, "PASS", a=(IMMEDIATE,), immediate=7, keep=1, entry=2)
    bench.alu(0, 30, "PASS", a=(IMMEDIATE,), immediate=9, keep=1, entry=2)
    # the second is there from 33 on; another entry and the other ALU's stay 0
    cycles = [(22, 0), (23, 7), (32, 7), (33, 9), (50, 9)]
    for cycle, _ in cycles:
        bench.alu(0, cycle, "PASS", a=(ENTRY, 2), east=4)
        bench.store(cycle + 3, 4)
    bench.alu(0, 51, "PASS", a=(ENTRY, 1), east=4)
    bench.store(54, 4)
    bench.alu(1, 60, "PASS", a=(ENTRY, 2), east=4)
    bench.store(65, 4)
    found = bench.run()
    assert [values.tolist() for values in found] == \
        [[value] * 4 for value in [value for _, value in cycles] + [0, 0]]
    assert bench.faults == {}


def test_entry_accumulates_at_the_distance_of_the_depth():
    bench = Bench()
    for i in range(5):
        bench.feed(20 + 3 * i, np.full(4, 10 + i, np.int32))
        bench.alu(0, 20 + 3 * i, "IADD", b=(ENTRY, 3) if i else (IMMEDIATE,), immediate=1, keep=1,
                  entry=3, east=4 if i == 4 else None)
    bench.store(35, 4)
    found, = bench.run()
    assert found.tolist() == [1 + 10 + 11 + 12 + 13 + 14] * 4


@pytest.mark.parametrize("number", [0, 1])
def test_select_looks_at_the_alu_before_it_in_the_ring(number):
    other = 1 - number
    depth = CFG.alus[other].depth
    bench = Bench()
    predicate = f32(0, -0.0, 1, np.nan)
    bench.feed(20, predicate)
    bench.alu(other, 20, "PASS")
    bench.feed(20 + depth, f32(1, 2, 3, 4))
    bench.alu(number, 20 + depth, "SELECT", b=(IMMEDIATE,), immediate=bits_of(-5), east=4)
    bench.store(20 + depth + CFG.alus[number].depth, 4)
    found, = bench.run()
    assert found.view(np.float32).tolist() == [-5, -5, 3, 4]
    assert bench.faults == {}


def test_select_without_a_predicate_is_invalid():
    bench = Bench()
    bench.alu(1, 20, "SELECT", a=(IMMEDIATE,), b=(STEP,), immediate=5, east=4)
    bench.run()
    assert bench.faults[Fault.STREAM_INVALID].cycle == 20


def test_step_is_an_operand():
    bench = Bench()
    bench.alu(0, 20, "PASS", a=(STEP,), east=4)
    bench.store(23, 4)
    queue = next(queue.name for queue in queues(CFG) if queue.kind == "alu")
    bench.moments[queue].insert(0, (5, "LOOP", {"count": 1}))
    bench.moments[queue][-1][2]["ends"] = 1
    found, = bench.run(first_step=1234)
    assert found.tolist() == [1234] * 4


def test_opcodes_without_b_read_no_stream_for_it():
    bench = Bench()
    bench.feed(20, f32(1, 2, 3, 4))
    bench.alu(0, 20, "PASS", b=(STREAM, 8), b_source_last=1, east=4)
    bench.store(23, 4)
    found, = bench.run()
    assert found.view(np.float32).tolist() == [1, 2, 3, 4]
    assert bench.faults == {}


def test_from_int8_takes_one_stream_and_to_int8_puts_one():
    bench = Bench()
    bench.feed(20, np.array([-128, -1, 0, 127], np.int8), planes=1, stream=2)
    bench.alu(0, 20, "FROM_INT8", source=2, east=4)
    bench.alu(1, 23, "TO_INT8", a=(RESULT, 0), east=9)
    bench.store(23, 4)
    bench.store(28, 9, planes=1)
    floats, narrow = bench.run()
    assert floats.view(np.float32).tolist() == [-128, -1, 0, 127]
    assert narrow.tolist() == [0x80, 0xFF, 0, 0x7F]
    assert bench.faults == {}


def test_to_int8_as_a_result_is_an_int32():
    bench = Bench()
    bench.feed(20, f32(-300, -1, 0.5, 1.5))
    bench.alu(0, 20, "TO_INT8")
    bench.alu(1, 23, "PASS", a=(RESULT, 0), east=4)
    bench.store(28, 4)
    found, = bench.run()
    assert found.view(np.int32).tolist() == [-128, -1, 0, 2]


def test_to_limbs_puts_two_aligned_streams_low_limb_first():
    bench = Bench()
    values = [-40000, -32639, 200, 32639.4]
    bench.feed(20, f32(*values))
    bench.alu(0, 20, "TO_LIMBS", east=7)        # E6 and E7: the low bit is ignored
    bench.alu(1, 23, "PASS", a=(RESULT, 0), east=8)
    bench.store(23, 6, planes=2)
    bench.store(28, 8)
    limbs, result = bench.run()
    low, high = limbs.astype(np.uint8).view(np.int8), (limbs >> 8).astype(np.uint8).view(np.int8)
    assert (high.astype(int) * 256 + low).tolist() == [-32639, -32639, 200, 32639]
    assert result.tolist() == limbs.tolist()
    assert bench.faults == {}


def test_opcode_that_the_alu_lacks_gives_zero_and_takes_its_operands():
    bench = Bench()
    bench.feed(20, f32(1, 2, 3, 4))
    bench.alu(1, 20, "MUL", b=(STREAM, 0), a_source_last=1, east=4)
    bench.feed(30, f32(1, 2, 3, 4))
    bench.alu(0, 30, "RECIP", a_source_last=1, east=4)
    bench.store(25, 4)
    bench.store(33, 4)
    found = bench.run()
    assert not any(values.any() for values in found)
    assert bench.faults.keys() == {Fault.ICU_WORD} and bench.faults[Fault.ICU_WORD].cycle == 20
    assert bench.lost is None


@pytest.mark.parametrize("lanes", [4, 8, 16, 48])
def test_reduction_combines_neighbours_in_a_fixed_tree(rng, lanes):
    cfg = replace(CFG, lanes=lanes)
    values = (rng.standard_normal(lanes) * 10.0 ** rng.integers(-6, 6, lanes)).astype(np.float32)

    def tree(values, combine):
        if len(values) == 1:
            return values[0]
        pairs = [values[i:i + 2] for i in range(0, len(values), 2)]
        return tree([combine(*pair) if len(pair) == 2 else pair[0] for pair in pairs], combine)

    delay = {4: 2, 8: 3, 16: 4, 48: 6}[lanes] * cfg.reduce_depth
    bench = Bench(cfg)
    for cycle, op in ((20, "SUM"), (21, "MAX"), (22, "MIN")):
        bench.feed(cycle, values)
        bench.reduce(cycle, op, east=4)
        bench.store(cycle + delay, 4)
    found = [result.view(np.float32) for result in bench.run()]
    expected = tree(list(values), lambda a, b: a + b), values.max(), values.min()
    for result, value in zip(found, expected, strict=True):
        assert (result == value).all()
    assert bench.faults == {}


def test_reduction_takes_and_gives_results():
    bench = Bench()
    bench.feed(20, f32(1, 2, 3, 4))
    bench.alu(0, 20, "PASS")
    bench.reduce(23, "SUM", a=(RESULT, 0))
    # 2 levels of 4 cycles; the reduction unit is the one behind the two ALUs
    bench.alu(0, 31, "PASS", a=(RESULT, 2), east=4)
    bench.store(34, 4)
    found, = bench.run()
    assert found.view(np.float32).tolist() == [10] * 4
    assert bench.faults == {}


def test_result_goes_both_ways_under_one_number():
    bench = Bench()
    bench.alu(0, 20, "PASS", a=(IMMEDIATE,), immediate=0x04030201, east=8, west_en=1)
    bench.store(23, 8)
    bench.moments["mem0.write"] = [(23 + 4, "WRITE", {"source": 9, "source_west": 1,
                                                      "address": 77})]
    found, = bench.run()
    assert found.tolist() == [0x04030201] * 4
    # the westward ones are lost, E8 .. E11 were all taken
    assert bench.faults == {}
