"""The VXM by random and directed programs, against its model."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import ClockDomain, Module

from hdl.arch.config import TileConfig
from hdl.arch.encoding import encode
from hdl.arch.errors import Fault
from hdl.arch.isa import KINDS
from hdl.arch.presets import FPGA, NANO
from hdl.vxm import Vxm
from hdl.vxm.decode import ROWS
from tests.hdl.vxm.harness import check, simulate
from tests.hdl.vxm.model import ENTRY, IMMEDIATE, RESULT, STEP, STREAM, delay
from tests.hdl.vxm.programs import CONFIGS, PATTERNS, available, issue, random_program
from tests.support.pysim import run
from tests.support.replay import Recorder, replay

ONE, TWO = 0x3F800000, 0x40000000


@pytest.mark.parametrize("name", CONFIGS)
def test_random_programs_do_what_the_model_says(name, rng):
    cfg = CONFIGS[name]
    for part in range(2):
        issues = random_program(cfg, rng, 120, legal=1 - 0.1 * part)
        seen = check(cfg, issues, rng, name=f"vxm_{name}")
        assert part == bool(seen.faults)
        assert len(seen.writes) > 100


def test_every_opcode_has_a_row():
    assert ROWS.keys() == KINDS["alu"].formats.keys()


@pytest.mark.parametrize("name", CONFIGS)
def test_delay_of_every_opcode_is_that_of_the_table(name, rng):
    cfg = CONFIGS[name]
    issues, cycle = [], 0
    for unit in range(len(cfg.alus) + 1):
        for op in available(cfg, unit):
            # in the ring before it: what SELECT needs
            before = (unit - 1) % len(cfg.alus)
            if op == "SELECT":
                issues.append(issue(cfg, cycle, before, "PASS", a=IMMEDIATE, east_en=0))
                cycle += delay(cfg, before, "PASS")
            issues.append(issue(cfg, cycle, unit, op, quad_a=[ONE] * 4, quad_b=[TWO] * 4))
            cycle += delay(cfg, unit, op) + 1
    seen = simulate(cfg, issues, rng)
    written = [i for i in issues if i.fields["east_en"]]
    assert sorted(seen.writes) == sorted((i.cycle + delay(cfg, i.unit, i.op), i.unit)
                                         for i in written)
    assert not seen.faults


def test_corner_values_of_every_opcode(rng):
    cfg, issues, unit = CONFIGS["one"], [], 0
    for op in available(cfg, unit):
        if op == "SELECT":
            continue
        a, b = rng.choice(PATTERNS, (2, 20, cfg.lanes))
        issues += [issue(cfg, len(issues) + i, unit, op, quad_a=a[i], quad_b=b[i])
                   for i in range(len(a))]
    check(cfg, issues, rng)


@pytest.mark.parametrize("name", ["fpga", "depths"])
def test_chain_over_the_crossbar_without_a_cycle_between(name, rng):
    cfg = CONFIGS[name]
    quad = rng.choice(PATTERNS, cfg.lanes)
    units = [*range(len(cfg.alus)), 0, len(cfg.alus), len(cfg.alus) - 1]
    issues, cycle = [issue(cfg, 0, 0, "PASS", quad_a=quad)], delay(cfg, 0, "PASS")
    for before, unit in zip([0, *units], units, strict=False):
        op = "MAX" if unit == len(cfg.alus) else "PASS"
        issues.append(issue(cfg, cycle, unit, op, a=RESULT, a_source=before))
        cycle += delay(cfg, unit, op)
    seen = check(cfg, issues, rng)
    assert not seen.faults
    assert len(seen.writes) == len(issues)


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_results_exist_in_one_cycle_only(shift, rng):
    cfg = NANO
    at = delay(cfg, 0, "PASS")
    issues = [issue(cfg, 0, 0, "PASS", quad_a=PATTERNS[:4]),
              issue(cfg, at + shift, 1, "PASS", a=RESULT, a_source=0)]
    assert check(cfg, issues, rng).faults == (
        {(at + shift, Fault.STREAM_INVALID)} if shift else set())


@pytest.mark.parametrize("name", CONFIGS)
def test_entry_is_there_from_the_result_on(name, rng):
    cfg = CONFIGS[name]
    at = delay(cfg, 0, "PASS")
    old, new, other = (rng.choice(PATTERNS, cfg.lanes) for _ in range(3))
    issues = [issue(cfg, 0, 0, "PASS", quad_a=old, keep=1, entry=2),
              issue(cfg, 20, 0, "PASS", quad_a=other, keep=1, entry=1),
              issue(cfg, 21, 0, "PASS", quad_a=new, keep=1, entry=2),
              *(issue(cfg, 21 + at + later, 0, "PASS", a=ENTRY, a_source=2, target=4)
                for later in (-1, 0, 1, 2, 40))]
    seen = check(cfg, issues, rng)
    for later, value in ((-1, old), (0, new), (1, new), (2, new), (40, new)):
        np.testing.assert_array_equal(seen.writes[21 + 2 * at + later, 0][3], value)


def test_sum_in_an_entry_at_the_pace_of_the_delay(rng):
    cfg = NANO
    at = delay(cfg, 0, "ADD")
    rows = rng.standard_normal((6, cfg.lanes)).astype(np.float32)
    issues = [issue(cfg, 0, 0, "PASS", quad_a=rows[0].view(np.uint32), keep=1, entry=3)]
    issues += [issue(cfg, i * at, 0, "ADD", quad_a=row.view(np.uint32), b=ENTRY, b_source=3,
                     keep=1, entry=3) for i, row in enumerate(rows[1:], 1)]
    seen = check(cfg, issues, rng)
    total = rows[0]
    for row in rows[1:]:
        total = row + total
    np.testing.assert_array_equal(seen.writes[6 * at, 0][3].view(np.float32), total)


PREDICATES = [0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x3F800000, 0x7FC00000, 0xFF800000,
              0x40000000]


@pytest.mark.parametrize("name", ["nano", "fpga", "one"])
def test_select_goes_by_the_alu_before_it_in_the_ring(name, rng):
    cfg, issues = CONFIGS[name], []
    for unit in range(len(cfg.alus)):
        if "SELECT" not in available(cfg, unit):
            continue
        before = (unit - 1) % len(cfg.alus)
        for half in (PREDICATES[:4], PREDICATES[4:]):
            cycle = 30 * len(issues)
            issues += [issue(cfg, cycle, before, "PASS", quad_a=half),
                       issue(cfg, cycle + delay(cfg, before, "PASS"), unit, "SELECT",
                             quad_a=[1, 2, 3, 4], quad_b=[5, 6, 7, 8])]
    seen = check(cfg, issues, rng)
    assert not seen.faults
    chosen = [seen.writes[i.cycle + delay(cfg, i.unit, "SELECT"), i.unit][3].tolist()
              for i in issues if i.op == "SELECT"]
    assert chosen[:2] == [[5, 6, 3, 4], [1, 2, 3, 4]]


def test_select_without_a_predicate_is_a_fault(rng):
    issues = [issue(NANO, 3, 1, "SELECT", quad_a=[1] * 4, quad_b=[2] * 4)]
    assert check(NANO, issues, rng).faults == {(3, Fault.STREAM_INVALID)}


def test_operands_that_do_not_exist_are_zero_and_a_fault(rng):
    cfg = CONFIGS["one"]        # 12 streams, two results
    assert cfg.streams == 12
    issues = [issue(cfg, 0, 0, "IADD", quad_a=[7] * 4, a_source=12, b=IMMEDIATE, immediate=5),
              issue(cfg, 1, 1, "MAX", a=STREAM, a_source=15),
              issue(cfg, 2, 0, "PASS", a=RESULT, a_source=2),
              issue(cfg, 20, 0, "PASS", a=RESULT, a_source=1)]
    seen = check(cfg, issues, rng)
    assert seen.faults == {(cycle, Fault.STREAM_INVALID) for cycle in (0, 1, 2, 20)}
    assert not seen.taps
    written = [values.tolist() for _, (*_, values) in sorted(seen.writes.items())]
    assert sorted(written) == [[0] * 4] * 3 + [[5] * 4]


def test_results_of_one_and_two_streams(rng):
    cfg = NANO
    values = np.array([-32639, -129, 127, 300], np.float32).view(np.uint32)
    issues = [issue(cfg, 0, 0, "TO_LIMBS", quad_a=values, keep=1, target=5, west_en=1),
              issue(cfg, 1, 0, "TO_INT8", quad_a=values, keep=1, entry=1, target=5),
              issue(cfg, 20, 0, "PASS", a=ENTRY, a_source=0),
              issue(cfg, 21, 0, "PASS", a=ENTRY, a_source=1)]
    seen = check(cfg, issues, rng)
    d = delay(cfg, 0, "PASS")
    assert [seen.writes[cycle + d, 0][:3] for cycle in (0, 1)] == [(5, 5, 2), (5, None, 1)]
    assert seen.writes[20 + d, 0][3].tolist() == [0x8181, 0xFF7F, 0x007F, 0x012C]
    assert seen.writes[21 + d, 0][3].view(np.int32).tolist() == [-128, -128, 127, 127]


def test_operand_b_of_an_opcode_without_it_is_ignored(rng):
    cfg = NANO
    issues = [issue(cfg, 0, 0, "PASS", quad_a=[1] * 4, b=STREAM, b_source_last=1),
              issue(cfg, 1, 0, "FROM_INT8", quad_a=[2] * 4, b=RESULT, b_source=1)]
    seen = check(cfg, issues, rng)
    assert not seen.faults
    assert [operand for _, _, operand in seen.taps] == ["a", "a"]


def test_lacking_feature_gives_zero_and_a_fault(rng):
    cfg = FPGA
    issues = [issue(cfg, 0, 0, "ADD", quad_a=[ONE] * 4, quad_b=[ONE] * 4, keep=1),
              issue(cfg, 1, 1, "MUL", quad_a=[ONE] * 4, quad_b=[ONE] * 4),
              issue(cfg, 2, 1, "EXP2", quad_a=[ONE] * 4),
              issue(cfg, 9, 0, "PASS", a=ENTRY)]
    seen = check(cfg, issues, rng)
    assert seen.faults == {(cycle, Fault.ICU_WORD) for cycle in (0, 1, 2)}
    assert all(not values.any() for *_, values in seen.writes.values())


def test_step_and_immediate_are_in_every_lane(rng):
    cfg = NANO
    issues = [issue(cfg, 0, 0, "IADD", a=STEP, step=0xFFFFF, b=IMMEDIATE, immediate=0xFFFFFFFF),
              issue(cfg, 1, 2, "SUM", a=STEP, step=3)]
    seen = check(cfg, issues, rng)
    assert seen.writes[delay(cfg, 0, "IADD"), 0][3].tolist() == [0xFFFFE] * 4


def test_lanes_beyond_a_superlane(rng, monkeypatch):
    monkeypatch.setattr(TileConfig, "superlane", 4)
    cfg = replace(CONFIGS["one"], lanes=8)
    seen = check(cfg, random_program(cfg, rng, 60), rng)
    assert len(seen.writes) > 30


def test_reset_clears_what_is_under_way():
    cfg = NANO
    dut = Vxm(cfg)
    words = [encode(cfg, "alu", "ADD", a=IMMEDIATE, b=IMMEDIATE, east_en=1, west_en=1),
             encode(cfg, "reduce", "SUM", a=STEP, east_en=1, west_en=1)]
    ports = [(dut.alu0, dut.port0, words[0]), (dut.alu1, dut.port1, words[0]),
             (dut.reduce, dut.reduce_port, words[1])]
    longest = delay(cfg, len(cfg.alus), "SUM")
    written = []

    async def bench(ctx):
        for reset in (0, 1):
            for queue, _, word in ports:
                ctx.set(queue.valid, 1)
                ctx.set(queue.word, word)
            await ctx.tick().repeat(longest)
            for queue, *_ in ports:
                ctx.set(queue.valid, 0)
            if reset:
                ctx.set(resets.rst, 1)
                await ctx.tick()
                ctx.set(resets.rst, 0)
            written.append(0)
            for _ in range(longest + 2):
                written[-1] += sum(ctx.get(en) for _, port, _ in ports
                                   for en in (port.east_en, port.west_en))
                await ctx.tick()

    resets = ClockDomain("sync")
    top = Module()
    top.domains += resets
    top.submodules.dut = dut
    run(top, bench)
    assert written[0] > 0 and written[1] == 0


def test_verilog_does_the_same(rng, seed, tmp_path):
    cfg, recorders = NANO, []

    def recorder(dut):
        recorders[:] = [Recorder(dut)]
        return recorders[0].sample

    # every entry is written before it is read; nothing undefined is read
    issues = [issue(cfg, i, alu, "PASS", a=IMMEDIATE, immediate=i, keep=1, entry=i, east_en=0)
              for i in range(4) for alu in range(2)]
    start = 4 + delay(cfg, 0, "PASS")
    issues += [replace(i, cycle=i.cycle + start) for i in random_program(cfg, rng, 100, legal=1)]
    simulate(cfg, issues, rng, recorder=recorder)
    found = replay(recorders[0], Vxm(cfg), "vxm_nano", tmp_path, seed)
    expected = recorders[0].outputs
    for name, values in expected.items():
        port = name.partition("__")[0]
        if name.endswith("__data"):
            used = [a or b for a, b in zip(expected[f"{port}__east_en"],
                                           expected[f"{port}__west_en"], strict=True)]
            assert sum(used) > 10
        else:
            used = [True] * len(values)
        assert [v for v, u in zip(found[name], used, strict=True) if u] == \
            [v for v, u in zip(values, used, strict=True) if u], name
