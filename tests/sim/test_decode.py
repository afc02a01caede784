"""The whole machine: text on 1, 2 and 4 tiles in RTL, as planned and as the plain model has it."""

import pytest

from sim.cli import main
from sim.compiling import ROOT

LLAMA = ("--model", str(ROOT / "models" / "llama-mini" / "model.bin"))


@pytest.mark.parametrize("options", [
    pytest.param((), id="gemma4-mini"),
    pytest.param((*LLAMA, "--engine", "emulator"), id="llama-mini-emulator"),
    pytest.param(LLAMA, id="llama-mini", marks=pytest.mark.slow),
])
def test_tiles_decode_the_plain_models_text_with_every_event_on_its_cycle(capsys, options):
    code = main(["check", "--tiles", "1,2,4", "--tokens", "8", "--seeds", "1", *options])
    out = capsys.readouterr().out
    assert code == 0, out
    lines = [line for line in out.splitlines() if line.startswith("conformance: ")]
    assert len(lines) == 6      # two texts on three tile counts
    assert all(line.endswith("; 0 missing, 0 unplanned, 0 off-cycle, 0 wrong") for line in lines)
    assert out.count("tokens equal the plain model's, logits equal the plain model's") == 6
    assert out.rstrip().endswith("check: all equal")


def test_more_text_than_the_context_holds_is_one_line(capsys):
    assert main(["run", "--tokens", "200", "--engine", "emulator"]) == 2
    assert "the context has 128: ask for fewer or raise --context" in capsys.readouterr().err


def test_no_tokens_is_one_line(capsys):
    assert main(["run", "--tokens", "0", "--engine", "emulator"]) == 2
    assert capsys.readouterr().err == "oncycle run: Tokens must be at least 1, not 0\n"


def test_characters_outside_the_vocabulary_are_named(capsys):
    assert main(["run", "--prompt", "Then ☃", "--engine", "emulator"]) == 2
    assert "character '☃' at offset 5 is outside the model's vocabulary" in capsys.readouterr().err


def test_a_missing_model_is_one_line(capsys, tmp_path):
    assert main(["run", "--model", str(tmp_path / "none"), "--engine", "emulator"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("oncycle run: ") and err.count("\n") == 1


def test_tiles_that_do_not_divide_the_heads(capsys):
    assert main(["check", "--tiles", "3", "--tokens", "2", "--seeds", "1",
                 "--engine", "emulator"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("check: all equal")


def test_a_tile_count_the_machine_does_not_have_is_one_line(capsys):
    assert main(["run", "--tiles", "5", "--engine", "emulator"]) == 2
    assert capsys.readouterr().err == "oncycle run: Tiles must be 1 to 4, not 5\n"
