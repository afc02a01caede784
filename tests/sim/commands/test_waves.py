"""The options of the commands that write waves."""

from argparse import ArgumentParser

import pytest

from sim.commands.waves import add_waves, build_options, check_waves
from sim.errors import UsageError


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
