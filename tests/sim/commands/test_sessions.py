"""``oncycle run`` with several turns."""

import re

import pytest

from sim.commands import sessions
from tests.sim.commands.models import save_model

TURNS = ("--turn", "the", "--turn", " cat", "--turn", " had")
ZERO = "; 0 missing, 0 unplanned, 0 off-cycle, 0 wrong"


@pytest.fixture
def model(tmp_path):
    directory = tmp_path / "model"
    directory.mkdir()
    return save_model(directory)


@pytest.fixture
def play(oncycle, model):
    """Run turns; gives exit code and lines of output."""

    def go(*arguments, tiles=1):
        code, output, errors = oncycle("run", "--model", model, "--tiles", tiles, "--tokens", 1,
                                       *TURNS, *arguments)
        return code, output.splitlines(), errors

    return go


def texts(lines):
    return [line for line in lines if line.startswith("turn ")]


def test_every_turn_conforms_and_both_prefills_give_one_text(play):
    arguments = ("--engine", "emulator", "--context", 16)
    code, by_tiles, _ = play(*arguments)
    assert code == 0
    assert [line[:7] for line in texts(by_tiles)] == ["turn 1:", "turn 2:", "turn 3:"]
    assert sum(line.startswith("conformance: ") and line.endswith(ZERO) for line in by_tiles) == 3
    assert not any("K and V" in line or "instructions " in line and "bytes" in line
                   for line in by_tiles)
    code, by_host, _ = play(*arguments, "--prefill", "host")
    assert code == 0
    assert texts(by_host) == texts(by_tiles)
    assert sum(bool(re.search(r"bytes written by the host: K and V [1-9].*, tokens 64; ", line))
               for line in by_host) == 3

    def first_token(lines):
        return [int(line.rpartition(" ")[2].replace(",", "")) for line in lines if "steps" in line]

    assert len(first_token(by_host)) == 3
    assert all(host < tiles for host, tiles in zip(first_token(by_host), first_token(by_tiles),
                                                   strict=True))


def test_all_turns_and_a_larger_program_on_rtl(play):
    code, lines, errors = play("--prefill", "host", "--context", 8, "--context-limit", 16, tiles=2)
    assert code == 0, (lines, errors)
    assert sum(line.startswith("conformance: ") and line.endswith(ZERO) for line in lines) == 3
    assert sum("weights and constants 0, context" in line for line in lines) == 1
    assert sum(line == "  K and V moved by the host: those that the tiles held"
               for line in lines) == 1
    assert lines[-1].startswith("RTL at ")
    assert [line.replace("emulator, ", "") for line in errors.splitlines()
            if line.startswith("emulator")] == texts(lines)


def test_what_the_tiles_did_not_hold_fails_the_run(play, monkeypatch):
    class Doubtful(sessions.LoadedEmulator):
        def run(self, *arguments, **options):
            seen = super().run(*arguments, **options)
            for contents in seen.sram:
                contents ^= 1
            return seen

    monkeypatch.setattr(sessions, "LoadedEmulator", Doubtful)
    code, lines, _ = play("--engine", "emulator", "--context", 8, "--context-limit", 16)
    assert code == 1
    assert "  K and V moved by the host: NOT those that the tiles held" in lines


def test_a_program_file_begins_a_session_of_its_own_model_only(oncycle, model, tmp_path):
    file = tmp_path / "small.npz"
    assert oncycle("compile", "--model", model, "--tiles", 1, "--context", 8, "-o", file)[0] == 0
    arguments = ("run", "--model", model, "--program", file, "--engine", "emulator", "--tokens", 1,
                 "--prefill", "host", *TURNS)
    code, output, _ = oncycle(*arguments, "--context-limit", 16)
    assert code == 0
    assert "weights and constants 0, context" in output
    (model / "calibration.txt").write_text("had had had the " * 9)
    code, _, errors = oncycle(*arguments, "--context-limit", 16)
    assert code == 2
    assert "Program was made of another model than" in errors


@pytest.mark.slow
@pytest.mark.parametrize("prefill", ["tiles", "host"])
def test_the_trained_model_in_turns_on_four_tiles_of_rtl(oncycle, prefill):
    code, output, _ = oncycle(
        "run", "--tokens", 6, "--context", 16, "--context-limit", 64, "--prefill", prefill,
        "--turn", "Then said David", "--turn", " unto Saul, Who", "--turn", " And the king")
    assert code == 0, output
    assert output.count(ZERO) == 3
    assert output.count("weights and constants 0, context") == 1
