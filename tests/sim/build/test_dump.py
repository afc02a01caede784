"""Builds that dump while an output is 1."""

import pytest

from sim.build import build_model, run_cocotb
from sim.waves.vcd import Waves, number
from tests.sim.build.counter import counter_verilog

TB = "tests.sim.build.tb_counter"
TOP = """
module windowed(input clk, input rst, input en, output [7:0] count, output some);
    counter inner (.clk(clk), .rst(rst), .en(en), .count(count));
    assign some = count == 2 || count == 3 || count == 5;
endmodule
"""


@pytest.fixture(scope="module")
def model():
    sources = {"windowed.v": TOP, "counter.v": counter_verilog()}
    return build_model("test-windowed", sources, top="windowed", dump="some")


def go(model, directory, *plusargs, **options):
    run_cocotb(model, TB, 1, run_dir=directory, test_filter="counts_while_enabled",
               plusargs=plusargs, **options)


def test_dump_while_the_output_is_one(model, tmp_path):
    path = tmp_path / "some.vcd"
    go(model, tmp_path, f"+waves={path}")
    waves = Waves(path, ["windowed.clk", "windowed.inner.count"])
    counts = [number(value) for value, in waves.sample("windowed.clk", "windowed.inner.count")]
    assert counts == [2, 3, 5]
    begins = waves.cycles("windowed.clk")
    assert [later - begins[0] for later in begins] == [0, 2, 6]


def test_without_a_name_nothing_is_dumped(model, tmp_path):
    go(model, tmp_path)
    assert not list(tmp_path.glob("*.vcd"))


def test_such_a_build_cannot_dump_all(model, tmp_path):
    with pytest.raises(ValueError, match="must be built with trace=True"):
        go(model, tmp_path, trace=True)


def test_initial_values_and_results_are_those_of_other_builds(model, tmp_path):
    assert model.trace and model.dump == "some"
    # All tests of the testbench, on cocotb's own main and on ours.
    run = run_cocotb(model, TB, 5, run_dir=tmp_path, plusargs=[f"+waves={tmp_path}/all.vcd"])
    assert [result.message for result in run.results] == [None] * 5
