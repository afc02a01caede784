"""``oncycle check``."""

import copy

import pytest

from compiler import program as program_file
from sim.cli import main
from sim.commands.check import check_program
from tests.sim.commands.programs import save_copy, save_matvec

ZERO = "0 missing, 0 unplanned, 0 off-cycle, 0 wrong"


@pytest.fixture
def run(capsys):
    """Run ``oncycle check``; gives exit code, lines of output, text of errors."""

    def go(*arguments):
        code = main(["check", *map(str, arguments)])
        output, errors = capsys.readouterr()
        return code, output.splitlines(), errors

    return go


@pytest.mark.parametrize("make", [save_matvec, save_copy])
def test_compiled_program_conforms_on_emulator_and_rtl(run, rng, tmp_path, make):
    program = make(rng, tmp_path / "p.npz")
    code, lines, _ = run(tmp_path / "p.npz", "--steps", 3, "--first-step", 2, "--seeds", 2)
    assert code == 0
    assert len(lines) == 2      # one for each seed
    for line in lines:
        assert line.startswith("conformance: ")
        assert line.endswith(ZERO)
    assert lines[0] == lines[1]
    issues = 3 * sum(_issues(region) for region in program.plan.root.children)
    assert f"{issues:,} of {issues:,} planned instructions" in lines[0]


def _issues(region):
    """Issues of one run of a region."""
    return len(region.issues) + sum((child.count or 1) * _issues(child)
                                    for child in region.children)


def test_runs_back_to_back(rng, tmp_path):
    program = save_matvec(rng, tmp_path / "p.npz")
    reports, speed = check_program(program, [(0, 1), (5, 2), (1, 1)])
    assert len(reports) == 3
    assert all(report.ok for report in reports)
    assert speed[0] > 0


@pytest.mark.parametrize(("engine", "pair"), [("emulator", "plan and emulator")])
def test_changed_program_is_reported_with_exit_code_1(run, rng, tmp_path, engine, pair):
    program = save_copy(rng, tmp_path / "p.npz")
    mutant = copy.deepcopy(program)
    words = mutant.binary.tiles[1].words["mem2.read"]
    number = next(i for i, word in enumerate(words) if word & 31 == 4)
    words[number] ^= 1 << 16        # the lowest bit of its address
    program_file.save(mutant, tmp_path / "mutant.npz")
    code, lines, _ = run(tmp_path / "mutant.npz", "--engine", engine)
    assert code == 1
    assert not lines[0].endswith(ZERO)
    assert lines[1].startswith(f"first difference of {pair}: tile 1, mem2.read, cycle ")
    assert ", READ: expected " in lines[1]


@pytest.mark.parametrize(("arguments", "message"), [
    (["absent.npz"], "absent.npz does not exist"),
    (["p.npz", "--steps", "0"], "must be a whole number of at least 1, not '0'"),
    (["p.npz", "--first-step", "-1"], "must be a whole number of at least 0, not '-1'"),
    (["broken.npz"], "compile it again"),
])
def test_bad_input_is_one_line(run, rng, tmp_path, monkeypatch, arguments, message, capsys):
    monkeypatch.chdir(tmp_path)
    save_copy(rng, tmp_path / "p.npz")
    (tmp_path / "broken.npz").write_bytes((tmp_path / "p.npz").read_bytes()[:-100])
    try:
        code, lines, errors = run(*arguments)
    except SystemExit as error:     # argparse: usage, then one line
        code, lines, errors = error.code, [], capsys.readouterr().err.splitlines()[-1]
    assert code == 2
    assert not lines
    assert message in errors
    assert errors.count("\n") <= 1
