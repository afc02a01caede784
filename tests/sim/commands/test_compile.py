"""``oncycle compile``, and running what it wrote."""

import errno
import re

import pytest

from compiler import program as program_file
from sim.commands import compile as command
from sim.compiling import machine
from tests.sim.commands.models import save_model
from tests.sim.commands.programs import save_copy


@pytest.fixture
def model(tmp_path):
    return save_model(tmp_path / "model")


def test_program_is_written_and_its_costs_are_said(oncycle, model, tmp_path):
    path = tmp_path / "p.npz"
    code, output, _ = oncycle("compile", "--model", model, "--tiles", 2, "--context", 16,
                              "-o", path)
    program = program_file.load(path)
    assert code == 0
    assert program.system == machine().restrict(2)
    cycles = program.plan.cycles(1)
    assert output.startswith(f"{path}: {cycles:,} cycles a token on 2 tiles, context 16; ")
    assert program.bounds.line(cycles) in output
    assert not list(tmp_path.glob("*.partial"))


def test_a_program_runs_like_the_model_it_was_made_of(oncycle, model, tmp_path):
    path = tmp_path / "p.npz"
    oncycle("compile", "--model", model, "--tiles", 2, "--context", 16, "-o", path)
    common = ("run", "--model", model, "--prompt", "the", "--tokens", 3, "--engine", "emulator")
    first = oncycle(*common, "--program", path)
    second = oncycle(*common, "--tiles", 2, "--context", 16)
    assert first[0] == 0
    assert first[:2] == second[:2]
    assert "0 missing, 0 unplanned, 0 off-cycle, 0 wrong" in first[1]
    assert oncycle("check", path, "--engine", "emulator", "--steps", 2)[0] == 0
    assert "# tile 1 mxm0.act" in oncycle("disasm", path, "--tile", 1)[1]


def test_a_damaged_kept_program_is_made_anew(oncycle, model, tmp_path):
    arguments = ("compile", "--model", model, "--tiles", 1, "--context", 16, "-o")
    oncycle(*arguments, tmp_path / "a.npz")
    kept, = (tmp_path / "kept").iterdir()
    kept.write_bytes(kept.read_bytes()[:1000])
    assert oncycle(*arguments, tmp_path / "b.npz")[0] == 0
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes() \
        == kept.read_bytes()


def test_the_calibration_text_may_be_another(oncycle, refusal, model, tmp_path):
    def compiled(name, *options):
        path = tmp_path / f"{name}.npz"
        assert oncycle("compile", "--model", model, "--tiles", 1, "--context", 16, *options,
                       "-o", path)[0] == 0
        return path.read_bytes()

    own = compiled("own")
    text = (model / "calibration.txt").rename(tmp_path / "moved.txt")
    assert compiled("moved", "--calibration", text) == own
    text.write_text("a bee " * 20)
    assert compiled("changed", "--calibration", text) != own
    assert f"{model}/calibration.txt: no such file; put a text like" in refusal(
        "compile", "--model", model)
    assert f"{tmp_path}/none.txt: no such file" in refusal(
        "compile", "--model", model, "--calibration", tmp_path / "none.txt")
    assert f"{tmp_path}: Is a directory" in refusal(
        "compile", "--model", model, "--calibration", tmp_path)


def test_a_program_that_cannot_be_kept_is_written_all_the_same(oncycle, model, tmp_path):
    (tmp_path / "kept").write_text("a file where a directory should be")
    code, _, errors = oncycle("compile", "--model", model, "--tiles", 1, "--context", 16, "-o",
                              tmp_path / "p.npz")
    assert code == 0
    assert "the program is not kept: " in errors
    assert program_file.load(tmp_path / "p.npz")


def test_the_program_of_a_file_is_named_without_its_ending(oncycle, rng, tmp_path, monkeypatch):
    save_copy(rng, tmp_path / "p.npz")
    program = program_file.load(tmp_path / "p.npz")
    monkeypatch.setattr(command, "model_program", lambda *arguments, **options: program)
    monkeypatch.setattr(command, "BUILD_ROOT", tmp_path / "build")
    (tmp_path / "small.v2.gguf").write_bytes(b"")
    (tmp_path / "small.v3").mkdir()
    for model, name in (("small.v2.gguf", "small.v2-4.npz"), ("small.v3", "small.v3-4.npz")):
        assert oncycle("compile", "--model", tmp_path / model)[0] == 0
        assert (tmp_path / "build" / name).is_file()


@pytest.mark.parametrize(("output", "message"), [
    ("none/p.npz", "none is not a directory: make it, or name another file with -o"),
    ("model/config.json/p.npz", "config.json is not a directory: make it"),
    (".", " is a directory: name a file, for example -o "),
    ("/dev/null", "/dev/null is not a regular file: name another file with -o"),
])
def test_an_output_that_cannot_be_is_refused_at_once(refusal, model, tmp_path, output, message):
    assert message in refusal("compile", "--model", model, "-o", tmp_path / output)
    assert not (tmp_path / "kept").exists()


def test_a_full_disk_leaves_nothing(refusal, model, tmp_path, monkeypatch):
    def full(program, path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(command, "save", full)
    assert refusal("compile", "--model", model, "--tiles", 1, "--context", 16, "-o",
                   tmp_path / "p.npz") == \
        f"{tmp_path}/p.npz cannot be written (No space left on device): name another file with -o"


def test_run_refuses_a_program_of_other_tiles(refusal, rng, tmp_path):
    save_copy(rng, tmp_path / "p.npz")
    assert "Program was made for tiles of configuration " in \
        refusal("run", "--program", tmp_path / "p.npz", "--engine", "emulator")


def test_run_refuses_a_program_of_another_model(refusal, oncycle, model, tmp_path):
    oncycle("compile", "--model", model, "--tiles", 1, "--context", 16, "-o", tmp_path / "p.npz")
    message = refusal("run", "--program", tmp_path / "p.npz", "--engine", "emulator")
    assert "Program is of a model with 64 tokens, " in message
    assert message.endswith("gemma4-mini has 512: name its own model with --model")


def test_run_refuses_a_program_without_a_table_for_prompts(refusal, oncycle, model, tmp_path):
    oncycle("compile", "--model", model, "--tiles", 2, "--context", 16, "-o", tmp_path / "p.npz")
    program = program_file.load(tmp_path / "p.npz")
    symbol = program.symbols["context.forced tokens@1"]
    del program.binary.tiles[1].sram[symbol.slices[0]]
    program_file.save(program, tmp_path / "q.npz")
    assert "Program has no table for a prompt on tile 1" in \
        refusal("run", "--model", model, "--program", tmp_path / "q.npz", "--engine", "emulator")


def test_a_program_comes_with_its_own_tiles(refusal):
    assert "--tiles: not allowed with argument --program" in \
        refusal("run", "--program", "p.npz", "--tiles", 2)


def test_time_and_memory_of_compiling_are_said_and_not_when_nothing_is_compiled(oncycle, model,
                                                                               tmp_path):
    arguments = ("compile", "--model", model, "--tiles", 1, "--context", 16, "-o",
                 tmp_path / "p.npz")
    said = [oncycle(*arguments)[2] for _ in range(2)]
    assert re.search(r"^compiled: \d+\.\d s, at most [\d,]+ MB of memory$", said[0], re.M)
    assert "compiled" not in said[1]
