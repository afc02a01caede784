"""The options of the commands that write waves."""

from argparse import ArgumentParser

import pytest

from sim.cli import main
from sim.commands.options import RUN_ROOT
from sim.commands.waves import add_waves, build_options, check_waves
from sim.errors import UsageError
from sim.rtl.run import VCD
from tests.sim.commands.programs import save_matvec
from tests.sim.waves.reading import samples


@pytest.fixture
def parse():
    parser = ArgumentParser()
    parser.add_argument("--engine", default="rtl")
    add_waves(parser)
    return lambda *arguments: parser.parse_args(arguments)


def test_window_and_tile(parse):
    options = parse("--waves", "1000:3000", "--waves-tile", "2")
    assert options.waves == (1000, 3000)
    assert build_options(options) == {"kind": "waves", "tile": 2}
    check_waves(options, 1001, 3)


def test_no_waves(parse):
    options = parse()
    assert build_options(options) == {}
    check_waves(options, 10, 1)


def test_one_cycle(parse):
    assert parse("--waves", "7:7").waves == (7, 7)


@pytest.mark.parametrize("text", ["", "7", ":7", "7:", "8:7", "-1:5", "a:b", "1:2:3", "1.5:3",
                                  "0:2147483648"])
def test_what_is_no_window(parse, capsys, text):
    with pytest.raises(SystemExit):
        parse(f"--waves={text}")
    assert "must be first:last cycle" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "message"), [
    (("--waves", "100:200"), "begin before the run ends at cycle 100, not at 100"),
    (("--waves", "1:2", "--waves-tile", "4"), "must be in 0..3, not 4"),
    (("--waves", "1:2", "--waves-tile", "-1"), "must be in 0..3, not -1"),
    (("--waves", "1:2", "--engine", "emulator"), "emulator has no waves")])
def test_what_would_show_nothing(parse, arguments, message):
    with pytest.raises(UsageError, match=message):
        check_waves(parse(*arguments), 100, 4)


def test_check_writes_waves_and_says_how_to_open_them(rng, tmp_path, capsys):
    path = tmp_path / "wavy.npz"
    save_matvec(rng, path)
    assert main(["check", str(path), "--steps", "1", "--waves", "3:9"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("conformance: ")
    directory = RUN_ROOT / "check-wavy"
    size = (directory / VCD).stat().st_size
    assert lines[1] == f"waves: {size:,} bytes, tile 0"
    assert lines[2].startswith("open them: gtkwave ")
    assert lines[2].endswith(f"{directory.name}/waves.gtkw")
    assert [cycle for cycle, in samples(directory)] == list(range(3, 10))


def test_check_refuses_waves_behind_the_end(rng, tmp_path, capsys):
    path = tmp_path / "wavy.npz"
    program = save_matvec(rng, path)
    end = program.plan.cycles(2)
    assert main(["check", str(path), "--steps", "2", "--waves", f"{end}:{end}"]) == 2
    assert f"must begin before the run ends at cycle {end:,}" in capsys.readouterr().err
