"""The command line as a user calls it, in this process."""

import pytest

from sim import compiling
from sim.cli import main


@pytest.fixture
def oncycle(capsys, tmp_path, monkeypatch):
    """Run ``oncycle`` with arguments; gives exit code, output, errors.

    Compiled programs are kept apart from the checkout's.
    """
    monkeypatch.setattr(compiling, "PROGRAMS", tmp_path / "kept")

    def go(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stopped:       # wrong arguments
            code = stopped.code
        return (code, *capsys.readouterr())

    return go


@pytest.fixture
def refusal(oncycle):
    """Run ``oncycle`` with what it must refuse; gives the one line that says why."""

    def go(*arguments):
        code, output, errors = oncycle(*arguments)
        lines = [line for line in errors.splitlines()
                 if not line.startswith(("compiling ", "  ", "compiled: "))]
        assert (code, output, len(lines)) == (2, "", 1), (code, output, errors)
        assert lines[0].startswith("oncycle")
        return lines[0].partition(": ")[2]

    return go
