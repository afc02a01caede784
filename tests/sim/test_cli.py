"""The frame of the command line: errors, exit codes."""

import errno
import subprocess
import sys
from types import SimpleNamespace

import pytest

from compiler.errors import ProgramError
from hdl.arch.binary import BinaryError
from sim.build import SimulationFailed
from sim.cli import COMMANDS, main
from sim.conformance import ConformanceError
from sim.errors import UsageError


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command whose body is a function; gives exit code, output, errors."""

    def go(body, *arguments):
        command = SimpleNamespace(HELP="does something", run=body,
                                  add_arguments=lambda parser: parser.add_argument("--n", type=int))
        monkeypatch.setitem(sys.modules, "fake_command", command)
        code = main(["fake", *arguments], {"fake": "fake_command"})
        return (code, *capsys.readouterr())

    return go


@pytest.mark.parametrize("code", [0, 1])
def test_exit_code_is_that_of_the_command(run, code):
    assert run(lambda options: code) == (code, "", "")


def test_options_reach_the_command(run):
    def body(options):
        print(options.n + 1)
        return 0

    assert run(body, "--n", "4") == (0, "5\n", "")


@pytest.mark.parametrize("cls", [UsageError, ProgramError, BinaryError, SimulationFailed,
                                 ConformanceError])
def test_user_error_is_one_line(run, cls):
    def body(options):
        raise cls("the first line\n  and the second")

    assert run(body) == (2, "", "oncycle fake: the first line and the second\n")


def test_missing_file_is_one_line(run, tmp_path):
    def body(options):
        open(tmp_path / "absent")

    assert run(body) == (2, "", f"oncycle fake: {tmp_path}/absent: No such file or directory\n")


def test_a_full_disk_says_what_to_do(run):
    def body(options):
        raise OSError(errno.ENOSPC, "No space left on device")

    assert run(body)[2] == "oncycle fake: No space left on device: free some where build and the " \
        "output lie\n"


@pytest.mark.parametrize(("error", "message"), [
    (MemoryError(), "Not enough memory on this computer"),
    (MemoryError("Unable to allocate 8 TiB"),
     "Not enough memory on this computer (Unable to allocate 8 TiB)"),
    (UsageError("x" * 1000), "x" * 500 + " ..."),
])
def test_other_errors_of_one_line(run, error, message):
    def body(options):
        raise error

    assert run(body) == (2, "", f"oncycle fake: {message}\n")


def test_a_wrong_option_is_one_line(run, capsys):
    with pytest.raises(SystemExit) as caught:
        run(lambda options: 0, "--n", "x")
    assert caught.value.code == 2
    assert capsys.readouterr().err == \
        "oncycle fake: argument --n: invalid int value: 'x' (see oncycle fake --help)\n"


def test_fault_of_ours_keeps_its_traceback(run):
    def body(options):
        raise KeyError("internal")

    with pytest.raises(KeyError):
        run(body)


def test_interrupt_is_one_line(run):
    def body(options):
        raise KeyboardInterrupt

    assert run(body) == (130, "", "oncycle fake: interrupted\n")


def test_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["nonsense"])
    assert caught.value.code == 2
    assert "nonsense" in capsys.readouterr().err


def test_every_command_has_help():
    done = subprocess.run([sys.executable, "-m", "sim", "--help"], capture_output=True, text=True,
                          check=True)
    for name in COMMANDS:
        assert name in done.stdout
