import os

import pytest

from hdl.arch.config import single
from hdl.arch.presets import DEMO
from sim.bench import speed
from sim.bench.speed import largest_file, missed, summary, table, work
from sim.emulate import run_emulator

FIGURES = {
    "cycles": 1000, "rounds": 3, "emission_seconds": 5.0, "check_seconds": 0.1,
    "build_seconds": {"fast": 30.0, "stock": 60.0, "no trace": 25.0, "4 tiles": 40.0},
    "largest_file": {"fast": {"name": "a.cpp", "bytes": 1_500_000},
                     "stock": {"name": "b.cpp", "bytes": 2_500_000}},
    "cycles_per_cpu_second": {"fast": 40_000.0, "stock": 10_000.0, "no trace": 50_000.0,
                              "4 tiles": 9_000.0},
    "cycles_per_second": {"fast": 39_000.0, "stock": 9_900.0, "no trace": 49_000.0,
                          "4 tiles": 8_000.0},
    "over_stock": 4.0, "conformance_cost": 1.3,
}


def test_figures_that_meet_their_bars():
    assert missed(FIGURES) == []
    assert summary(FIGURES).endswith("all bars met")
    assert "1.50 MB a.cpp" in table(FIGURES)


@pytest.mark.parametrize(("name", "value"), [("over_stock", 2.99), ("conformance_cost", 1.51)])
def test_figure_that_misses_its_bar(name, value):
    figures = FIGURES | {name: value}
    assert missed(figures) == [name]
    assert summary(figures).endswith(f"MISSED: {name}")


def test_work_lasts_as_long_as_asked(seed):
    the_work = work(single(DEMO), 5000, seed)
    period = the_work.plan.cycles(1)
    assert 5000 <= the_work.cycles < 5000 + period
    short = work(single(DEMO), period + 1, seed)
    seen, = run_emulator(short.system, short.binary, garbage=seed)
    assert short.binary.steps == 2
    assert period < seen.events.issues["cycle"].max() < short.cycles
    assert set(seen.faults) == {0}


def test_largest_generated_file(tmp_path):
    (tmp_path / "inner").mkdir()
    for name, size in (("a.cpp", 10), ("inner/b.cpp", 20), ("c__ALL.cpp", 90), ("d.h", 99)):
        (tmp_path / name).write_bytes(bytes(size))
    assert largest_file(tmp_path) == ("b.cpp", 20)


def test_environment_is_put_back():
    before = dict(os.environ)
    with speed._environment({"ONLY": "this"}):
        assert dict(os.environ) == {"ONLY": "this"}
    assert dict(os.environ) == before
