"""``oncycle verilog``."""

import errno

from sim.cli import main


def test_files_of_a_system(tmp_path, capsys):
    assert main(["verilog", "--tiles", "2", "--output", str(tmp_path)]) == 0
    assert "top module oncycle_system" in capsys.readouterr().out
    text = (tmp_path / "oncycle_system.v").read_text()
    assert "module oncycle_system(" in text
    assert text.count("\n  tile ") == 2 or text.count(" tile \\") == 2
    assert "issues" not in text         # no trace ports unless asked for
    assert (tmp_path / "tile.v").is_file()


def test_a_failed_write_leaves_no_file(tmp_path, capsys, monkeypatch):
    def write_text(path, text):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", write_text)
    assert main(["verilog", "--output", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"oncycle verilog: {tmp_path} cannot be written (No space " \
        "left on device): name another directory with --output\n"
    assert not list(tmp_path.iterdir())


def test_more_tiles_than_ports_are_refused(tmp_path, capsys):
    assert main(["verilog", "--tiles", "3", "--output", str(tmp_path / "out")]) == 2
    assert "at most 2 tiles can be linked with each other, not 3" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
