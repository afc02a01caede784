"""MXM against its description: random programs, the tightness of every rule, the extremes."""

import dataclasses
import itertools

import numpy as np
import pytest
from amaranth.hdl import ResetInserter, Signal

from hdl.arch.isa import OP_BITS, MxmActOp
from hdl.arch.presets import NANO
from hdl.arch.timing import rules, timing
from hdl.mxm import Mxm
from tests.hdl.mxm.harness import simulate
from tests.hdl.mxm.model import results
from tests.hdl.mxm.programs import SIZES, abc, acc, expected_taps, fill, lw, random_program
from tests.support.pysim import run
from tests.support.replay import Recorder, differing, replay


@pytest.mark.parametrize(("size", "cycles"), [("nano", 1000), ("eight", 600), ("demo", 300),
                                              ("wide", 100)])
def test_random_program(size, cycles, rng):
    cfg = SIZES[size]
    issues = random_program(cfg, rng, cycles)
    writes, taps = simulate(cfg, issues, rng)
    expected = results(cfg, issues)
    assert len(expected) > cycles // 20
    assert writes == expected
    assert taps == expected_taps(issues)


@pytest.mark.parametrize("size", ["nano", "eight", "demo", "wide"])
def test_result_appears_t_d_after_acc_and_only_then(size, rng):
    cfg = SIZES[size]
    issues, end = fill(cfg, rng)
    issue = end + rules(cfg).abc_to_acc
    writes, _ = simulate(cfg, [*issues, acc(issue, east=3)], rng)
    assert [w.cycle for w in writes] == [issue + timing(cfg)["mxm_act", "ACC"].t_d]


@pytest.mark.parametrize("size", ["nano", "eight", "demo", "wide"])
def test_acc_sees_abc_after_t_d_and_not_a_cycle_earlier(size, rng):
    cfg = SIZES[size]
    issues, end = fill(cfg, rng)
    add = abc(end, [1] * cfg.lanes, 0)
    delay = timing(cfg)["mxm_act", "ABC"].t_d
    assert rules(cfg).abc_to_acc == delay
    # all of these may issue while the sum is under way
    reads = [acc(end + i, 0, mode=2) for i in range(1, delay + 2)]
    writes, _ = simulate(cfg, [*issues, add, *reads], rng)
    values = [w.values for w in writes]
    before = results(cfg, [*issues, acc(end + 20, 0, mode=2)])[0].values
    assert before != values[-1]
    assert values == [before] * (delay - 1) + [values[-1]] * 2


@pytest.mark.parametrize("size", ["nano", "eight"])
def test_acc_may_follow_the_abc_that_would_overwrite(size, rng):
    cfg = SIZES[size]
    issues, end = fill(cfg, rng)
    read = end + 20
    before = results(cfg, [*issues, acc(read, 0, mode=2)])[0].values
    for early in (0, 1):
        overwrite = abc(read + rules(cfg).acc_to_abc - early, [1] * cfg.lanes, 0, clear=1)
        writes, _ = simulate(cfg, [*issues, overwrite, acc(read, 0, mode=2)], rng)
        assert (writes[0].values == before) == (not early)


@pytest.mark.parametrize("columns", [0, 1])
@pytest.mark.parametrize("size", ["nano", "eight"])
def test_install_sees_loads_two_cycles_old_and_no_later_ones(size, columns, rng):
    cfg = SIZES[size]
    least = rules(cfg).lw_to_install
    old, new = 1, 2
    issues = [lw(r, r, [[old] * cfg.lanes]) for r in range(cfg.lanes)]
    vector = [1 if r == 0 else 0 for r in range(cfg.lanes)]     # takes row 0
    install = cfg.lanes + 10
    sums = {}
    for distance in (least + 1, least, least - 1, least - 2, -1):
        load = lw(install - distance, 0, [[new] * cfg.lanes], columns=columns)
        program = [*issues, load, abc(install, vector, install=1, clear=1),
                   acc(install + rules(cfg).abc_to_acc, mode=2)]
        writes, _ = simulate(cfg, program, rng)
        sums[distance] = writes[0].values[0]
    assert least - 1 == -rules(cfg).install_to_lw       # the next LW may be that early
    assert sums == {least + 1: new, least: new, least - 1: old, least - 2: old, -1: old}


def test_weights_stay_until_the_next_install(rng):
    cfg = NANO
    issues, end = fill(cfg, rng)
    load = lw(end, 0, rng.integers(0, 256, (4, cfg.lanes)), count_log2=2)
    vector = rng.integers(0, 256, cfg.lanes)
    program = [*issues, load, abc(end + 5, vector, 0, clear=1),
               abc(end + 6, vector, 1, clear=1, install=1), abc(end + 7, vector, 2, clear=1)]
    program += [acc(end + 30 + i, i, mode=2) for i in range(3)]
    writes, _ = simulate(cfg, program, rng)
    assert writes == results(cfg, program)
    assert writes[0].values != writes[1].values
    assert writes[1].values == writes[2].values


@pytest.mark.parametrize(("size", "rows", "checks"), [
    ("nano", range(4), range(4)), ("eight", range(8), range(8)),
    ("wide", (46, 47), (0, 1, 2, 46, 47)),
])
def test_load_wraps_around(size, rows, checks, rng):
    cfg = dataclasses.replace(SIZES[size], accumulators=len(checks))
    block = np.zeros((cfg.lanes, cfg.lanes), int)
    issues = [lw(r, r, [[0] * cfg.lanes]) for r in range(cfg.lanes)]
    at, expected = cfg.lanes, []
    for row, count_log2, columns in itertools.product(rows, range(3), (0, 1)):
        vectors = rng.integers(-128, 128, (1 << count_log2, cfg.lanes))
        issues.append(lw(at, row, vectors & 255, columns=columns, count_log2=count_log2))
        target = block.T if columns else block
        for i, values in enumerate(vectors):
            target[(row + i) % cfg.lanes] = values
        for n, r in enumerate(checks):
            issues += [abc(at + 2 + n, np.arange(cfg.lanes) == r, n, install=n == 0, clear=1),
                       acc(at + 2 + len(checks) + rules(cfg).abc_to_acc + n, n, mode=2)]
            expected.append((block[r] & 0xFFFF).tolist())
        at += 2 + 2 * len(checks) + rules(cfg).abc_to_acc
    writes, _ = simulate(cfg, issues, rng)
    assert [w.values for w in writes] == expected


def test_count_code_three_loads_four(rng):
    cfg = NANO
    vectors = rng.integers(1, 128, (4, cfg.lanes))
    outcomes = []
    for count_log2 in (2, 3):
        issues, end = fill(cfg, rng)
        issues += [lw(end, 0, vectors, count_log2=count_log2),
                   abc(end + 2, [1] * cfg.lanes, install=1, clear=1), acc(end + 30, mode=2)]
        outcomes.append(simulate(cfg, issues, rng)[0][0].values)
    assert outcomes == [vectors.sum(axis=0).tolist()] * 2


def test_buffered_sees_keep_from_the_next_cycle(rng):
    cfg = NANO
    assert rules(cfg).keep_to_buffered == 1
    issues, end = fill(cfg, rng)
    first, second = rng.integers(1, 128, (2, cfg.lanes))
    noise = rng.integers(0, 256, cfg.lanes)
    program = [*issues, abc(end, first, 0, 3, keep=1, clear=1),
               abc(end + 1, noise, 1, 3, buffered=1, clear=1),
               # reads the entry in the cycle in which it is written: the old one
               abc(end + 2, second, 2, 3, keep=1, clear=1),
               abc(end + 3, noise, 3, 3, buffered=1, keep=1, clear=1),
               abc(end + 4, noise, 0, 3, buffered=1)]
    program += [acc(end + 30 + i, i, mode=2) for i in range(4)]
    writes, _ = simulate(cfg, program, rng)
    assert writes == results(cfg, program)
    values = [w.values for w in writes]
    assert values[2] == values[3] != values[1]


def test_consecutive_sums_into_one_accumulator(rng):
    cfg = NANO
    issues, end = fill(cfg, rng)
    program = [*issues, *(abc(end + i, rng.integers(0, 256, cfg.lanes), 1, clear=i == 0, high=i % 2)
                          for i in range(20))]
    # an ACC in the middle sees exactly those whose t_d has passed
    program += [acc(end + 20 + i, 1, mode=1 + i % 2) for i in range(12)]
    writes, _ = simulate(cfg, program, rng)
    assert writes == results(cfg, program)


def test_abc_and_acc_leave_the_other_targets_alone(rng):
    cfg = NANO
    issues, end = fill(cfg, rng)
    program = [*issues, acc(end + 20, 0, east_en=0), acc(end + 21, 1, east_en=1, east=4),
               acc(end + 22, 2, east_en=0, west_en=1, west=4),
               acc(end + 23, 3, east_en=1, west_en=1, east=4, west=0)]
    writes, _ = simulate(cfg, program, rng)
    assert [(w.east, w.west) for w in writes] == [(4, None), (None, 4), (4, 0)]
    assert writes == results(cfg, program)


@pytest.mark.parametrize("size", ["nano", "demo"])
def test_extreme_products(size, rng):
    cfg = SIZES[size]
    issues, at, expected = [], 0, []
    for weight in (-128, 127):
        issues += [lw(at + r, r, [[weight & 255] * cfg.lanes]) for r in range(cfg.lanes)]
        at += cfg.lanes + 2
        for n, (element, high) in enumerate(itertools.product((-128, 127), (0, 1))):
            issues += [abc(at + n, [element & 255] * cfg.lanes, n, install=1, clear=1, high=high),
                       *(acc(at + 4 + rules(cfg).abc_to_acc + 4 * half + n, n, mode=1 + half)
                         for half in (0, 1))]
            expected.append([cfg.lanes * weight * element * (256 if high else 1)] * cfg.lanes)
        at += 12 + rules(cfg).abc_to_acc
    writes, _ = simulate(cfg, issues, rng)
    halves = np.array([w.values for w in writes], np.uint32).view(np.int32).astype(np.int64)
    halves = halves.reshape(2, 2, 4, cfg.lanes)     # weight, half, element and limb
    assert (halves[:, 0] * 65536 + halves[:, 1]).reshape(-1, cfg.lanes).tolist() == expected


@pytest.mark.parametrize("sign", [1, -1])
def test_accumulator_fills_to_its_last_bit_and_wraps(sign, rng):
    cfg = dataclasses.replace(NANO, lanes=4, accumulator_bits=32)
    # 4 * 128 * 128 * 256 = 2**24 an ABC: 127 of them stay inside, one more reaches 2**31
    issues = [lw(r, r, [[128] * 4]) for r in range(4)]
    vector = [128] * 4 if sign > 0 else [127] * 4
    step = 4 * 256 * (128 * 128 if sign > 0 else -128 * 127)
    count = 2**31 // abs(step) + 2
    issues += [abc(6 + i, vector, 0, install=i == 0, clear=i == 0, high=1) for i in range(count)]
    delay = rules(cfg).abc_to_acc
    issues += [acc(6 + count + i, 0, mode=1) for i in range(delay)]
    writes, _ = simulate(cfg, issues, rng)
    assert writes == results(cfg, issues)
    highs = [w.values[0] >> 31 for w in writes]
    assert set(highs) == {0, 1}             # it did wrap


def test_reset_drops_what_is_under_way(rng):
    cfg = NANO
    dut, rst = Mxm(cfg), Signal()
    busy = 12

    async def bench(ctx):
        # an LW and an ABC or ACC every cycle, all fields 1
        ctx.set(dut.weight.word, (1 << len(dut.weight.word)) - 1)
        for cycle in range(busy):
            op = MxmActOp.ABC if cycle % 2 else MxmActOp.ACC
            ones = (1 << len(dut.act.word)) - (1 << OP_BITS)
            ctx.set(dut.act.word, ones | op.value)
            ctx.set(dut.act.valid, 1)
            ctx.set(dut.weight.valid, 1)
            ctx.set(rst, cycle == busy - 1)
            await ctx.tick()
        ctx.set(rst, 0)
        ctx.set(dut.act.valid, 0)
        ctx.set(dut.weight.valid, 0)
        for _ in range(timing(cfg)["mxm_act", "ABC"].t_d + timing(cfg)["mxm_act", "ACC"].t_d):
            assert not ctx.get(dut.port.east_en | dut.port.west_en)
            await ctx.tick()

    run(ResetInserter({"sync": rst})(dut), bench)


@pytest.mark.parametrize(("size", "cycles"), [
    ("demo", 600), pytest.param("double", 200, marks=pytest.mark.slow)])
def test_verilog_agrees_from_random_contents(size, cycles, rng, seed, tmp_path):
    cfg, recorders = SIZES[size], []

    def record(dut):
        recorders.append(Recorder(dut))
        return recorders[-1]

    issues = random_program(cfg, rng, cycles)
    writes, _ = simulate(cfg, issues, rng, record)
    assert len(writes) > cycles // 20
    found = replay(recorders[0], Mxm(cfg), f"mxm_{size}", tmp_path, seed)
    assert differing(recorders[0], found) == []
