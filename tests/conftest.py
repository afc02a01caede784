"""Fixtures and reporting shared by all tests."""

from pathlib import Path

import numpy as np
import pytest

#: Used when no --seed is given, so that a plain run is the same every time.
DEFAULT_SEED = 1


def pytest_addoption(parser):
    parser.addoption(
        "--seed",
        type=int,
        default=DEFAULT_SEED,
        help="seed of the `seed` and `rng` fixtures (default: %(default)s)",
    )


@pytest.fixture
def seed(request):
    """Seed of this run: 1 .. 2**31 - 1, so that Verilator takes it too."""
    value = request.config.getoption("--seed")
    if not 1 <= value < 2**31:
        raise pytest.UsageError(f"--seed must be in 1..{2**31 - 1}, not {value}")
    return value


@pytest.fixture
def rng(seed):
    """Random generator, new for every test: a test gives the same alone and in company."""
    return np.random.default_rng(seed)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """A run of everything must have found a test in every test file."""
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    collected = {item.path for item in items}
    unseen = sorted(set(Path(__file__).parent.rglob("test_*.py")) - collected)
    if unseen:
        raise pytest.UsageError(f"no test was found in {', '.join(map(str, unseen))}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed and "seed" in getattr(item, "fixturenames", ()):
        chosen = item.config.getoption("--seed")
        report.sections.append(("seed", f"repeat with: --seed {chosen}"))
    return report


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    kinds = ("skipped", "xfailed", "xpassed", "deselected")
    counts = ", ".join(f"{len(terminalreporter.stats.get(kind, []))} {kind}" for kind in kinds)
    terminalreporter.write_line(f"not run or excused: {counts}")
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and config.option.keyword:
        terminalreporter.write_line(f"no test has {config.option.keyword!r} in its name: choose "
                                    "another word (make test K=word)")
