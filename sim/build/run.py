"""Running a cocotb module on a built model, and believing only the results file."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from sim.build.errors import SimulationFailed
from sim.build.model import BUILD_ROOT, Model
from sim.build.runner import VerilatorRunner
from sim.build.verilator import find_verilator

__all__ = ["MAX_SEED", "Run", "TestResult", "run_cocotb"]

#: Largest seed that Verilator takes.
MAX_SEED = 2**31 - 1

#: Characters of a failing test's message that are shown; the log has all of it.
_MAX_MESSAGE = 300


@dataclass(frozen=True)
class TestResult:
    """One cocotb test: `message` is None if it passed, otherwise the first line of its failure."""

    __test__ = False  # the name is no test class

    name: str
    seconds: float
    sim_ns: float
    message: str | None


@dataclass(frozen=True)
class Run:
    """A run in which every expected test passed.

    Attributes
    ----------
    results : tuple of TestResult
        In order of execution; skipped tests are not among them.
    directory : Path
        Where it ran: ``sim.log``, ``results.xml``, ``dump.vcd`` if traced, what the tests wrote.
    """

    results: tuple[TestResult, ...]
    directory: Path


def run_cocotb(
    model: Model,
    test_module: str,
    expected_tests: int,
    *,
    run_dir: Path,
    seed: int = 1,
    env: Mapping[str, str] | None = None,
    plusargs: Sequence[str] = (),
    test_filter: str | None = None,
    trace: bool = False,
    live: bool = False,
    timeout: float | None = None,
) -> Run:
    """Run all tests of a cocotb module and check that they ran and passed.

    Parameters
    ----------
    model : Model
        From :func:`sim.build.build_model`.
    test_module : str
        Importable name, for example ``tests.sim.build.tb_counter``.
    expected_tests : int
        How many tests must run (parametrised ones count each); fewer or more is a failure.
    run_dir : Path
        Working directory of the simulation, made if it is missing.
    seed : int
        1 .. 2**31 - 1.  Seeds cocotb and the initial contents of every register and memory that
        the Verilog leaves undefined.
    env : mapping of str to str, optional
        Environment variables for the tests.
    plusargs : sequence of str
        Further ``+name=value`` arguments of the simulator.
    test_filter : str, optional
        Regular expression; only tests whose full name matches are run.
    trace : bool
        Write ``dump.vcd``; the model must have been built for it.
    live : bool
        Show the simulator's output as it comes, instead of writing ``sim.log``.
    timeout : float, optional
        Seconds of real time after which the simulator is killed.

    Returns
    -------
    Run

    Raises
    ------
    SimulationFailed
        If a test failed, the number of tests differs, or the simulator crashed or was killed.
    """
    if not 1 <= seed <= MAX_SEED:
        raise ValueError(f"Seed must be in 1..{MAX_SEED}, not {seed!r}")
    if trace and (not model.trace or model.dump):
        raise ValueError(f"Model {model.name!r} must be built with trace=True to write waves")
    run_dir = Path(run_dir).resolve()
    run_dir.mkdir(parents=True, exist_ok=True)
    log = None if live else run_dir / "sim.log"
    results_file = run_dir / "results.xml"
    python_path = [str(BUILD_ROOT.parent), *sys.path]
    runner = VerilatorRunner(find_verilator())
    runner.timeout = timeout
    try:
        runner.test(
            test_module=test_module,
            hdl_toplevel=model.top,
            hdl_toplevel_lang="verilog",
            build_dir=model.directory,
            test_dir=run_dir,
            results_xml=str(results_file),
            seed=seed,
            plusargs=["+verilator+rand+reset+2", f"+verilator+seed+{seed}", *plusargs],
            extra_env={**(env or {}), "PYTHONPATH": ":".join(python_path)},
            test_filter=test_filter,
            waves=trace,
            log_file=log,
        )
    except subprocess.TimeoutExpired:
        raise SimulationFailed(
            f"{test_module} still ran after {timeout} s and was stopped{_see(log)}"
        ) from None
    results = _read_results(results_file) if results_file.is_file() else ()
    failures = [result for result in results if result.message is not None]
    if failures:
        first = failures[0]
        raise SimulationFailed(
            f"{len(failures)} of {len(results)} tests of {test_module} failed, "
            f"{first.name}: {first.message}{_see(log)}"
        )
    if len(results) != expected_tests:
        raise SimulationFailed(
            f"{test_module} ran {len(results)} tests, {expected_tests} were expected{_see(log)}"
        )
    if runner.returncode != 0:
        raise SimulationFailed(
            f"the simulator ended with code {runner.returncode} in {test_module}{_see(log)}"
        )
    return Run(results, run_dir)


def _see(log):
    return "" if log is None else f" (see {log})"


def _read_results(results_file):
    """Tests that ran, from cocotb's results file."""
    results = []
    for case in ElementTree.parse(results_file).getroot().iter("testcase"):
        if case.find("skipped") is not None:
            continue
        fault = case.find("failure")
        if fault is None:
            fault = case.find("error")
        properties = {item.get("name"): item.get("value") for item in case.iter("property")}
        message = None
        if fault is not None:
            text = fault.get("error_msg") or fault.get("message") or fault.text or "no message"
            message = text.strip().partition("\n")[0][:_MAX_MESSAGE]
        results.append(
            TestResult(
                name=f"{case.get('classname')}.{case.get('name')}",
                seconds=float(case.get("time", "0")),
                sim_ns=float(properties.get("sim_time_duration", "0")),
                message=message,
            )
        )
    return tuple(results)
