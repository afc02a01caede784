"""Verilator builds and cocotb runs, on a counter."""

import re
import shlex
from types import SimpleNamespace

import pytest

from sim.build import BuildFailed, SimulationFailed, build_model, run_cocotb
from sim.build.model import BUILD_ROOT
from tests.sim.build.counter import PAIR, counter_verilog

COUNTER_TESTS = 5  # in tb_counter: two plain ones, one with three parameters
TB = "tests.sim.build.tb_counter"


@pytest.fixture(scope="module")
def counter():
    return build_model("test-counter", {"counter.v": counter_verilog()}, top="counter")


@pytest.fixture(scope="module")
def pair():
    sources = {"pair.v": PAIR, "counter.v": counter_verilog()}
    return build_model("test-pair", sources, top="pair", hier_blocks=["counter", "undefined"])


def test_all_tests_of_a_module_run_and_pass(counter, tmp_path, seed):
    run = run_cocotb(counter, TB, COUNTER_TESTS, run_dir=tmp_path, seed=seed)
    assert len(run.results) == COUNTER_TESTS
    assert all(result.message is None for result in run.results)
    assert all(result.sim_ns > 0 for result in run.results)
    assert "counts_exactly/cycles=3" in (tmp_path / "sim.log").read_text()


def test_failing_cocotb_test_is_a_failure_with_its_message(counter, tmp_path):
    with pytest.raises(SimulationFailed) as caught:
        run_cocotb(counter, TB, COUNTER_TESTS, run_dir=tmp_path, env={"EXPECTED_COUNT": "7"})
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"1 of {COUNTER_TESTS} tests of {TB} failed")
    assert "holds_while_disabled: " in message
    assert "7" in message.split("holds_while_disabled")[1]
    assert str(tmp_path / "sim.log") in message


@pytest.mark.parametrize("expected", [COUNTER_TESTS - 1, COUNTER_TESTS + 1])
def test_another_number_of_tests_than_expected_is_a_failure(counter, tmp_path, expected):
    with pytest.raises(
        SimulationFailed, match=f"ran {COUNTER_TESTS} tests, {expected} were expected"
    ):
        run_cocotb(counter, TB, expected, run_dir=tmp_path)


def test_skipped_test_does_not_count_as_run(counter, tmp_path):
    with pytest.raises(SimulationFailed, match="ran 1 tests, 2 were expected"):
        run_cocotb(counter, "tests.sim.build.tb_skipped", 2, run_dir=tmp_path)


def test_module_that_cannot_be_imported_is_a_failure(counter, tmp_path):
    with pytest.raises(SimulationFailed, match="ran 0 tests, 1 were expected"):
        run_cocotb(counter, "tests.sim.build.no_such_module", 1, run_dir=tmp_path)


def test_old_results_file_does_not_count(counter, tmp_path):
    run_cocotb(counter, TB, COUNTER_TESTS, run_dir=tmp_path)
    with pytest.raises(SimulationFailed, match="ran 0 tests"):
        run_cocotb(counter, "tests.sim.build.no_such_module", COUNTER_TESTS, run_dir=tmp_path)


def test_simulator_that_does_not_end_is_stopped(counter, tmp_path):
    with pytest.raises(SimulationFailed, match=r"still ran after 3 s"):
        run_cocotb(counter, "tests.sim.build.tb_endless", 1, run_dir=tmp_path, timeout=3)


def test_filter_of_the_callers_shell_drops_no_test(counter, tmp_path, monkeypatch):
    monkeypatch.setenv("COCOTB_TEST_FILTER", "counts_while_enabled")
    monkeypatch.setenv("WAVES", "1000:3000")  # as `make sim WAVES=1000:3000` exports it
    run_cocotb(counter, TB, COUNTER_TESTS, run_dir=tmp_path)


def test_build_under_another_make_with_its_job_server(monkeypatch):
    sources = {"counter.v": counter_verilog()}
    first = build_model("test-make", sources, top="counter")
    (first.directory / "done").unlink()
    monkeypatch.setenv("MAKEFLAGS", " -j --jobserver-auth=3,4 -- WAVES=1 CXX=false")
    monkeypatch.setenv("MAKELEVEL", "1")
    model = build_model("test-make", sources, top="counter")
    assert not model.cached
    assert "jobserver" not in (model.directory / "build.log").read_text()


def test_only_ports_are_visible(counter):
    command = (counter.directory / "build.log").read_text().splitlines()[0]
    assert "verilator" in command
    assert not [word for word in shlex.split(command) if word.startswith("--public")]
    control = (counter.directory / "control.vlt").read_text()
    visible = re.findall(r'public_flat_(r[dw]) -module "(\w+)" -var "(\w+)"', control)
    assert sorted(visible) == [
        ("rd", "counter", "count"),
        ("rw", "counter", "clk"),
        ("rw", "counter", "en"),
        ("rw", "counter", "rst"),
    ]
    assert "-Wno" not in command


def test_second_build_of_the_same_content_is_the_first(counter):
    again = build_model("test-counter", {"counter.v": counter_verilog()}, top="counter")
    assert again.cached
    assert again.directory == counter.directory
    assert counter.directory.is_relative_to(BUILD_ROOT / "verilator")


def test_interrupted_build_is_built_anew(tmp_path):
    sources = {"counter.v": counter_verilog()}
    first = build_model("test-interrupted", sources, top="counter")
    (first.directory / "done").unlink()
    first.executable.write_text("half written")
    second = build_model("test-interrupted", sources, top="counter")
    assert not second.cached
    assert second.directory == first.directory
    run_cocotb(second, TB, COUNTER_TESTS, run_dir=tmp_path)


def test_two_instances_of_a_hierarchical_block(pair, tmp_path, seed):
    run_cocotb(pair, "tests.sim.build.tb_pair", 1, run_dir=tmp_path, seed=seed)
    log = (pair.directory / "build.log").read_text()
    assert log.count("-o counter.o") == 1  # compiled once for both


def test_undefined_state_follows_the_seed(pair, tmp_path):
    values = []
    for name, seed in (("a", 1), ("b", 2), ("c", 1)):
        run = run_cocotb(pair, "tests.sim.build.tb_pair", 1, run_dir=tmp_path / name, seed=seed)
        values.append((run.directory / "undefined").read_text().split())
    first, other_seed, same_seed = values
    assert len(first) == 3  # register of the top, register and memory of a hierarchical block
    assert all(a != b for a, b in zip(first, other_seed, strict=True))
    assert first == same_seed


def test_waves_are_written_when_asked_for(tmp_path):
    sources = {"counter.v": counter_verilog()}
    model = build_model("test-waves", sources, top="counter", trace=True)
    run = run_cocotb(model, TB, COUNTER_TESTS, run_dir=tmp_path / "quiet")
    assert not list(run.directory.glob("*.vcd"))
    run = run_cocotb(model, TB, COUNTER_TESTS, run_dir=tmp_path / "waves", trace=True)
    assert "$enddefinitions" in (run.directory / "dump.vcd").read_text()


def test_waves_of_a_model_built_without_are_refused(counter, tmp_path):
    with pytest.raises(ValueError, match="must be built with trace=True"):
        run_cocotb(counter, TB, COUNTER_TESTS, run_dir=tmp_path, trace=True)


@pytest.mark.parametrize("seed", [0, 2**31])
def test_seed_out_of_range_is_refused(counter, tmp_path, seed):
    with pytest.raises(ValueError, match="Seed must be in"):
        run_cocotb(counter, TB, COUNTER_TESTS, run_dir=tmp_path, seed=seed)


def test_faulty_verilog_is_one_line_that_names_the_log(tmp_path):
    sources = {"bad.v": "module bad(input clk);\n  wire a = nowhere.b;\nendmodule\n"}
    with pytest.raises(BuildFailed) as caught:
        build_model("bad", sources, top="bad", root=tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    assert "%Error" in message
    assert "nowhere" in message
    assert "build.log" in message
    assert not list(tmp_path.glob("verilator/*/done"))


def test_a_build_that_fails_on_a_full_disk_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("sim.build.model.shutil.disk_usage", lambda path: SimpleNamespace(free=0))
    with pytest.raises(BuildFailed, match="no space is left for .*: free some and try again"):
        build_model("full", {"bad.v": "module bad(input clk);\n  nonsense\nendmodule\n"}, top="bad",
                    root=tmp_path)


def test_lint_warning_that_is_not_waived_stops_the_build(tmp_path):
    text = "module latch(input a, input b, output reg q);\n  always @* if (a) q = b;\nendmodule\n"
    with pytest.raises(BuildFailed, match="LATCH"):
        build_model("latch", {"latch.v": text}, top="latch", root=tmp_path)


def test_content_options_and_top_level_each_make_a_build_of_their_own(counter):
    sources = {"counter.v": counter_verilog() + "// a comment"}
    changed = build_model("test-counter", sources, top="counter")
    optimised = build_model("test-counter", sources, top="counter", args=["-O3"])
    assert len({counter.directory, changed.directory, optimised.directory}) == 3


def test_runtime_is_compiled_once_and_not_for_every_design(counter):
    sources = {"counter.v": counter_verilog()}
    first = build_model("test-runtime", sources, top="counter")
    (first.directory / "done").unlink()
    again = build_model("test-runtime", sources, top="counter")
    log = (again.directory / "build.log").read_text()
    assert "-o counter" in log
    assert "-c -o verilated.o" not in log


@pytest.mark.parametrize("name", ["", "a b", "../a"])
def test_build_name_is_checked(name):
    with pytest.raises(ValueError, match="Build name must consist of"):
        build_model(name, {"counter.v": counter_verilog()}, top="counter")


@pytest.mark.parametrize("file", ["counter", "../counter.v", "counter.vhd"])
def test_source_name_is_checked(file):
    with pytest.raises(ValueError, match=r"Source must be a plain file name"):
        build_model("test-name", {file: counter_verilog()}, top="counter")


def test_report_says_when_a_build_starts_and_ends(counter):
    sources = {"counter.v": counter_verilog()}
    first = build_model("test-report", sources, top="counter")
    lines = []
    build_model("test-report", sources, top="counter", report=lines.append)
    assert lines == []  # nothing was built
    (first.directory / "done").unlink()
    build_model("test-report", sources, top="counter", report=lines.append)
    assert re.fullmatch(r"building test-report with Verilator \d+\.\d+ \.\.\.", lines[0])
    assert re.fullmatch(r"built test-report in \d+\.\d s", lines[1])
