from dataclasses import replace

import numpy as np
import pytest

from sim.bench import configs
from sim.bench.configs import configuration, run_configuration, sizes
from sim.emulate import run_emulator
from sim.products import compile_product, result_of

#: Of the bench's configurations: two tiles, eight lanes, one with vxm.
FEW = (1, 3, 9)


@pytest.mark.parametrize("number", FEW)
def test_random_configuration_conforms(number, seed, tmp_path):
    lanes = configuration(seed, number)[0].tile.lanes
    shapes = [(2 * lanes + 1, lanes + 1), (lanes - 1, 2 * lanes + 1), (1, 1), (lanes, lanes)]
    result = run_configuration(seed, number, shapes, run_dir=tmp_path)
    assert result.problems == []
    assert result.products == len(shapes)
    assert result.issues > 100 and result.writes > 20
    assert (result.arrivals > 0) == (result.system.tiles > 1)


def test_configurations_are_the_ones_promised(seed):
    found = [configuration(seed, number) for number in range(30)]
    tiles = [system.tile for system, _ in found]
    assert [sum(cfg.lanes == lanes for cfg in tiles) for lanes in (4, 8, 16)] == [18, 8, 4]
    assert sum("vxm" in cfg.floorplan for cfg in tiles) == sum(vxm for _, vxm in found) == 6
    assert {system.tiles for system, _ in found} == {1, 2, 3}
    assert len({cfg.floorplan for cfg in tiles}) > 20
    assert len({cfg.streams for cfg in tiles}) > 2
    assert len({cfg.accumulators for cfg in tiles}) > 4
    assert any(len({port.bytes for port in cfg.ports}) > 1 for cfg in tiles)
    assert all(len({link.latency for link in system.links}) > 1
               for system, _ in found if system.tiles == 3)
    assert {len(cfg.slices("mxm")) for cfg in tiles} == {1, 2}


def test_configurations_depend_on_seed_and_number_alone(seed):
    assert configuration(seed, 7) == configuration(seed, 7)
    assert configuration(seed, 7) != configuration(seed + 1, 7) != configuration(seed + 1, 8)


def test_sizes_are_around_the_lanes():
    assert len(set(sizes(4))) == 25
    assert {k for k, _ in sizes(8)} == {n for _, n in sizes(8)} == {1, 7, 8, 9, 17}


@pytest.mark.parametrize("number", range(5))
def test_products_on_the_emulator_are_exact(number, seed, rng):
    system, _ = configuration(seed, number)
    k, n = 2 * system.tile.lanes + 1, 2 * system.tile.lanes + 1
    program, exact = compile_product(system, k, n, rng)
    emulator, = run_emulator(system, program.binary, garbage=seed)
    np.testing.assert_array_equal(result_of(program, emulator.sram, n), exact)


@pytest.fixture
def compared(seed, rng):
    """Compare a good run, changed by a function, with the emulator's; the problems found."""
    system, vxm = configuration(seed, 1)
    program, exact = compile_product(system, 5, 9, rng)

    def go(change=lambda seen: seen, expected=exact):
        seen, = run_emulator(system, program.binary, garbage=seed)
        result = configs.Result(1, system, vxm)
        configs._compare(result, seed, (5, 9), program, expected, 10_000, change(seen))
        return result.problems

    return go, exact


def test_equal_runs_have_no_problem(compared):
    go, _ = compared
    assert go() == []


def test_wrong_result_is_seen(compared):
    go, exact = compared
    assert [problem.rpartition(": ")[2] for problem in go(expected=exact + 1)] == [
        "the emulator's result is not the product", "the RTL's result is not the product"]


def test_different_run_is_seen(compared):
    go, _ = compared

    def late(seen):
        writes = seen.events.writes.copy()
        writes["cycle"][-1] += 1
        return replace(seen, events=seen.events._replace(writes=writes))

    assert "0 missing, 0 unplanned, 1 off-cycle, 0 wrong" in go(late)[0]


def test_main_fails_where_a_configuration_fails(monkeypatch, tmp_path, capsys, seed):
    def failing(seed, number, report=None):
        system, vxm = configuration(seed, number)
        return configs.Result(number, system, vxm, problems=["bad"] if number == 2 else [])

    monkeypatch.setattr(configs, "run_configuration", failing)
    output = tmp_path / "configs.json"
    arguments = ["--output", str(output), "--seed", str(seed)]
    assert configs.main(["--count", "2", *arguments]) == 0
    assert configs.main(["--count", "3", *arguments]) == 1
    assert "FAILED: configurations 2" in capsys.readouterr().out.splitlines()[-1]
    assert '"failed": 1' in output.read_text()
