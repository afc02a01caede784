"""The bench of collectives: its rows, its bar, and the bound below them."""

from dataclasses import replace

import numpy as np
import pytest

from compiler.collectives import COLLECTIVES, lower_bound
from hdl.arch.config import all_to_all
from sim.bench import collectives as bench
from sim.collectives import expected, operands
from sim.errors import UsageError
from sim.rtl.fit import link_latencies


@pytest.mark.parametrize("topology", bench.TOPOLOGIES)
def test_rows_are_right_and_not_below_the_bound(topology):
    for collective in COLLECTIVES:
        for vectors in (1, 6):
            rows = [row for row, _ in bench.measure((topology, 4, collective, vectors, 1))]
            assert sum(row["chosen"] for row in rows) == 1
            for row in rows:
                assert row["problems"] == []
                assert row["bound"]["cycles"] <= row["cycles"]


@pytest.mark.parametrize("topology,tiles", [("all_to_all", 2), ("all_to_all", 8), ("ring", 4),
                                            ("ring", 16), ("dragonfly", 16)])
def test_every_system_is_a_part_of_the_machine_of_the_rtl(topology, tiles):
    system = bench.system_of(topology, tiles)
    part = bench.part_of(bench.MACHINE, system)
    assert link_latencies(bench.MACHINE, part) == [16] * len(bench.MACHINE.links)
    assert [(link.source, link.target) for link in part.links] == \
        [(link.source, link.target) for link in system.links]


def test_the_bound_is_that_of_the_longest_way_or_of_the_wires():
    system = bench.system_of("all_to_all", 4)
    # READ, mem4 is one hop from the C2C, 4 planes of 2 flits, latency, RECV behind the arrival, on
    # the stream one cycle later, one hop, WRITE one cycle later, and the cycle behind that
    one = lower_bound(system, "all_gather", 4)
    assert one == (1 + 1 + 4 * 2 + 16 + 1 + 1 + 1 + 1 + 1, 1, 4 * 64, 1, "latency")
    many = lower_bound(system, "all_gather", 64)
    assert many.binds == "bandwidth" and many.vectors == 16
    assert many.cycles == one.cycles + 15 * 8
    assert lower_bound(bench.system_of("ring", 8), "all_reduce", 1).hops == 4
    slow = all_to_all(system.tile, 4, 50)
    assert lower_bound(slow, "all_gather", 4).cycles == one.cycles + 50 - 16


def _row(vectors, algorithm, cycles, chosen):
    return {"topology": "ring", "tiles": 4, "collective": "all_reduce", "vectors": vectors,
            "algorithm": algorithm, "cycles": cycles, "chosen": chosen}


def test_a_choice_that_is_beaten_is_counted_and_named():
    rows = [_row(1, "ring", 50, True), _row(1, "one_shot", 50, False),
            _row(2, "ring", 70, True), _row(2, "one_shot", 69, False)]
    share, beaten = bench.share_of_best(rows)
    assert share == 0.5
    assert beaten == ["4 tiles, ring, all_reduce of 2: ring takes 70 cycles, one_shot 69"]


def test_the_bench_fails_below_its_bar(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(bench, "OUTPUT", tmp_path)
    arguments = ["--tiles", "4", "--topologies", "ring", "--vectors", "1", "--rtl", "none"]
    assert bench.main(arguments) == 0
    assert "3 cells (at least 95%); 0 wrong" in capsys.readouterr().out
    assert (tmp_path / "collectives.json").exists()
    monkeypatch.setitem(bench.BARS, "chosen_is_best", 1.01)
    assert bench.main(arguments) == 1


def test_a_wrong_result_is_a_problem(monkeypatch):
    def off(collective, data):
        good = expected(collective, data)
        return [*good[:-1], good[-1] + 1]

    monkeypatch.setattr(bench, "expected", off)
    rows = bench.measure(("ring", 4, "all_reduce", 1, 1))
    assert all(row["problems"] == ["the result is not NumPy's"] for row, _ in rows)


def test_what_the_bench_has_not_is_refused():
    with pytest.raises(UsageError, match="Topologies must be among all_to_all, ring, dragonfly"):
        bench.main(["--topologies", "torus"])
    with pytest.raises(UsageError, match="Numbers must be separated by commas, not 'x'"):
        bench.main(["--tiles", "x"])


def test_sums_of_operands_wrap_as_int32(rng):
    system = replace(bench.system_of("ring", 4))
    data = operands(system, "all_reduce", 3, rng)
    want = sum(vectors.astype(np.int64) for vectors in data).astype(np.int32)
    np.testing.assert_array_equal(expected("all_reduce", data)[2], want)
