"""``oncycle verilog``."""

import errno

import pytest

from sim.cli import main


def test_files_of_a_system(tmp_path, capsys):
    assert main(["verilog", "--tiles", "2", "--output", str(tmp_path)]) == 0
    assert "top module oncycle_system" in capsys.readouterr().out
    assert "module oncycle_system(" in (tmp_path / "oncycle_system.v").read_text()
    text = (tmp_path / "oncycle_system_core.v").read_text()
    assert text.count("\n  oncycle_tile tile") == 2
    assert "issues" not in text         # no trace ports unless asked for
    listed = (tmp_path / "filelist.f").read_text().splitlines()
    assert sorted(listed) == sorted(path.name for path in tmp_path.glob("*.v"))
    assert listed[-1] == "oncycle_system.v"


def test_a_failed_write_leaves_no_file(tmp_path, capsys, monkeypatch):
    def write_text(path, text):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", write_text)
    assert main(["verilog", "-o", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"oncycle verilog: {tmp_path} cannot be written (No space " \
        "left on device): name another directory with --output\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("arguments", "message"), [
    (("--tiles", "3"), "at most 2 tiles can be linked with each other, not 3"),
    (("--top", "tile", "--tiles", "2"), "A tile is one tile, not 2: use --top system"),
    (("--prefix", "9"), "Prefix of module names must be letters, digits and underscores, a letter "
                        "first, not '9'"),
    (("--prefix", "../x"), "Prefix of module names must be letters, digits and underscores, a "
                           "letter first, not '../x'"),
])
def test_what_does_not_fit_is_refused(refusal, tmp_path, arguments, message):
    assert message in refusal("verilog", *arguments, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("option", "value"), [("--preset", "giant"), ("--top", "chip"),
                                               ("--reset", "soft"), ("--tiles", "0")])
def test_unknown_values_end_in_one_line(tmp_path, capsys, option, value):
    with pytest.raises(SystemExit) as ended:
        main(["verilog", option, value, "-o", str(tmp_path / "out")])
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and option in line and repr(value) in line


def test_a_place_that_is_no_directory_is_refused(refusal, tmp_path):
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        assert refusal("verilog", "-o", place).startswith(f"{place} cannot be written (")
    assert (tmp_path / "file").read_text() == "mine"
