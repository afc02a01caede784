from collections import namedtuple
from dataclasses import replace

import numpy as np
import pytest

from hdl.arch.encoding import encode
from hdl.arch.presets import NANO
from hdl.arch.timing import rules, timing
from hdl.sxm import Sxm
from tests.support.pysim import run
from tests.support.replay import Recorder, replay

CONFIGS = {lanes: replace(NANO, lanes=lanes) for lanes in (4, 8, 16, 48)}

#: One instruction: ``planes`` is what the streams carry, an array (4, lanes) of bytes.
Issue = namedtuple("Issue", "cycle op fields planes")
#: What is written: targets, and as many planes as streams.
Write = namedtuple("Write", "east west planes")


def move(cycle, op, planes, **fields):
    base = {"source": 0, "source_west": 0, "source_last": 0}
    if op != "MAP":
        base |= {"quad": 0, "east_en": 1, "west_en": 0, "target": 0}
    return Issue(cycle, op, base | fields, np.asarray(planes, np.uint8))


def expected(cfg, issues):
    """({cycle: Write}, {cycle: (stream, west, last, streams)}) from the rules, in NumPy."""
    writes, taps, maps = {}, {}, {}
    for issue in sorted(issues):
        values = issue.fields
        count = 4 if values.get("quad") else 1
        taps[issue.cycle] = (values["source"], values["source_west"], values["source_last"], count)
        if issue.op == "MAP":
            maps.setdefault(values["map"], []).append((issue.cycle, issue.planes[0]))
            continue
        lane = np.arange(cfg.lanes)
        if issue.op == "PERMUTE":
            source = [numbers for cycle, numbers in maps[values["map"]]
                      if cycle + rules(cfg).map_to_permute <= issue.cycle][-1].astype(int)
        else:
            amount = values["amount"]
            source = {"SHIFT": lane - amount, "ROTATE": (lane - amount) % cfg.lanes,
                      "DISTRIBUTE": np.full(cfg.lanes, amount)}[issue.op]
        there = (0 <= source) & (source < cfg.lanes)
        planes = np.where(there, issue.planes[:count, source * there], 0)
        targets = [values["target"] if values[f"{d}_en"] else None for d in ("east", "west")]
        if targets != [None, None]:
            at = issue.cycle + timing(cfg)["sxm", issue.op].t_d
            writes[at] = Write(*targets, planes.tolist())
    return writes, taps


def simulate(cfg, issues, rng, name="sxm", record=None):
    """What `expected` gives, from an `Sxm`; inputs that mean nothing carry noise.

    ``record``: function of the component that gives a `Recorder`.
    """
    dut, by_cycle = Sxm(cfg), {issue.cycle: issue for issue in issues}
    recorder = record(dut) if record else None
    assert len(by_cycle) == len(issues)
    writes, taps = {}, {}

    def noise(bits):
        return int.from_bytes(rng.bytes(-(-bits // 8)), "little") & (1 << bits) - 1

    async def bench(ctx):
        writes.clear(), taps.clear()
        for cycle in range(max(by_cycle) + 5):
            issue = by_cycle.get(cycle)
            ctx.set(dut.issue.valid, issue is not None)
            ctx.set(dut.issue.word, encode(cfg, "sxm", issue.op, **issue.fields) if issue
                    else noise(len(dut.issue.word)))
            planes = rng.integers(0, 256, (4, cfg.lanes), np.uint8)
            if issue:
                planes[:len(issue.planes)] = issue.planes
            ctx.set(dut.tap.data.as_value(), int.from_bytes(planes.tobytes(), "little"))
            if ctx.get(dut.tap.en):
                taps[cycle] = (ctx.get(dut.tap.stream), ctx.get(dut.tap.west),
                               ctx.get(dut.tap.last), 1 << ctx.get(dut.tap.count_log2))
            port = dut.port
            targets = [ctx.get(getattr(port, d)) if ctx.get(getattr(port, f"{d}_en")) else None
                       for d in ("east", "west")]
            if targets != [None, None]:
                written = ctx.get(port.data.as_value()).to_bytes(4 * cfg.lanes, "little")
                found = np.frombuffer(written, np.uint8).reshape(4, cfg.lanes)
                writes[cycle] = Write(*targets, found[:1 << ctx.get(port.count_log2)].tolist())
            assert ctx.get(dut.faults) == 0
            if recorder:
                recorder.sample(ctx)
            await ctx.tick()

    run(dut, bench, name=name)
    return writes, taps


def check(cfg, issues, rng, name="sxm"):
    found = simulate(cfg, issues, rng, name)
    assert found == expected(cfg, issues)
    return found[0]


def planes_of(rng, cfg, count=4):
    return rng.integers(0, 256, (count, cfg.lanes), np.uint8)


@pytest.mark.parametrize("lanes", CONFIGS)
@pytest.mark.parametrize("op", ["SHIFT", "ROTATE", "DISTRIBUTE"])
def test_every_amount(lanes, op, rng):
    cfg = CONFIGS[lanes]
    amounts = range(1 << (lanes - 1).bit_length())      # for 48 lanes also amounts of no lane
    issues = [move(i, op, planes_of(rng, cfg), quad=i % 2, amount=int(amount))
              for i, amount in enumerate([*amounts, *amounts])]
    assert len(check(cfg, issues, rng)) == len(issues)


@pytest.mark.parametrize("lanes", CONFIGS)
def test_permutations_and_numbers_of_no_lane(lanes, rng):
    cfg, issues = CONFIGS[lanes], []
    numbers = [rng.permutation(lanes), np.arange(lanes)[::-1], rng.integers(0, lanes, lanes),
               rng.integers(0, 256, lanes), np.full(lanes, 255), np.full(lanes, lanes),
               np.arange(lanes) + lanes - 1]
    for i, lane_numbers in enumerate(numbers):
        issues += [move(4 * i, "MAP", [lane_numbers], map=i % 2),
                   move(4 * i + 2, "PERMUTE", planes_of(rng, cfg), map=i % 2, quad=1),
                   move(4 * i + 3, "PERMUTE", planes_of(rng, cfg), map=i % 2)]
    check(cfg, issues, rng)


def test_map_is_used_from_the_distance_of_the_rules_on(rng):
    cfg, lane = NANO, np.arange(NANO.lanes)
    distance = rules(cfg).map_to_permute
    planes = np.arange(1, 1 + cfg.lanes).reshape(1, -1)
    for later in (distance - 1, distance):
        issues = [move(0, "MAP", [lane], map=1), move(10, "MAP", [lane[::-1]], map=1),
                  move(10 + later, "PERMUTE", planes, map=1)]
        (write,) = check(cfg, issues, rng).values()
        assert write.planes == [[1, 2, 3, 4] if later < distance else [4, 3, 2, 1]]


def test_map_registers_are_independent(rng):
    cfg, lane = NANO, np.arange(NANO.lanes)
    planes = np.arange(1, 1 + cfg.lanes).reshape(1, -1)
    issues = [move(0, "MAP", [lane], map=0), move(1, "MAP", [lane[::-1]], map=1),
              move(3, "PERMUTE", planes, map=0), move(4, "PERMUTE", planes, map=1)]
    assert [write.planes for write in check(cfg, issues, rng).values()] == [[[1, 2, 3, 4]],
                                                                           [[4, 3, 2, 1]]]


@pytest.mark.parametrize("op", ["SHIFT", "ROTATE", "DISTRIBUTE", "PERMUTE"])
def test_delay_is_that_of_the_table(op, rng):
    cfg = NANO
    options = {} if op == "PERMUTE" else {"amount": 1}
    issues = [move(0, "MAP", planes_of(rng, cfg), map=0),
              move(7, op, planes_of(rng, cfg), target=5, west_en=1, **options)]
    assert list(simulate(cfg, issues, rng)[0]) == [7 + timing(cfg)["sxm", op].t_d]


def random_program(cfg, rng, cycles):
    lanes = cfg.lanes
    issues = [move(i, "MAP", planes_of(rng, cfg), map=i) for i in range(2)]
    for cycle in range(4, cycles):
        op = str(rng.choice(["SHIFT", "ROTATE", "DISTRIBUTE", "MAP", "PERMUTE", "NOP"]))
        if op == "NOP":
            continue
        fields = {"source": int(rng.integers(cfg.streams)), "source_west": int(rng.integers(2)),
                  "source_last": int(rng.integers(2))}
        if op in ("MAP", "PERMUTE"):
            fields["map"] = int(rng.integers(2))
        else:
            fields["amount"] = int(rng.integers(lanes))
        if op != "MAP":
            fields |= {"quad": int(rng.integers(2)), "east_en": int(rng.integers(2)),
                       "west_en": int(rng.integers(2)), "target": int(rng.integers(cfg.streams))}
        planes = planes_of(rng, cfg)
        if op == "MAP":
            planes[0] = rng.integers(0, 2 * lanes, lanes)
        issues.append(move(cycle, op, planes, **fields))
    return issues


@pytest.mark.parametrize("lanes", [4, 8])
def test_random_programs(lanes, rng):
    cfg = CONFIGS[lanes]
    check(cfg, random_program(cfg, rng, 200), rng)


def test_verilog_does_the_same(rng, seed, tmp_path):
    cfg, recorders = CONFIGS[48], []

    def record(dut):
        recorders.append(Recorder(dut))
        return recorders[-1]

    writes, _ = simulate(cfg, random_program(cfg, rng, 200), rng, record=record)
    expected = recorders[0].outputs
    found = replay(recorders[0], Sxm(cfg), "sxm_48", tmp_path, seed)
    live = {"tap": expected["tap__en"],
            "port": [a | b for a, b in zip(expected["port__east_en"], expected["port__west_en"],
                                           strict=True)]}
    assert sum(live["port"]) == len(writes) > 50
    for name, values in expected.items():
        counts = live.get(name.partition("__")[0]) if not name.endswith("en") else None
        for cycle, value in enumerate(values):
            assert found[name][cycle] == value or counts and not counts[cycle], (name, cycle)
