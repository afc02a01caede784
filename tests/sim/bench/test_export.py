"""The bench of exports."""

import json

from sim.bench import export, report
from sim.cli import main


def test_figures_are_those_of_the_files(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(report, "OUTPUT", tmp_path)
    monkeypatch.setattr(export, "BARS", export.BARS | {"seconds": 3600})
    assert main(["bench", "export", "--presets", "nano"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "export: 1 presets, 0 bars missed"
    assert main(["verilog", "-o", str(tmp_path / "out")]) == 0
    [row] = json.loads((tmp_path / "export.json").read_text())["rows"]
    files = [path.read_bytes() for path in (tmp_path / "out").glob("*.v")]
    assert (row["modules"], row["bytes"], row["lines"], row["largest_module"]) == (
        len(files), sum(map(len, files)), sum(file.count(b"\n") for file in files),
        max(map(len, files)))


def test_too_large_or_too_slow_is_a_missed_bar():
    row = {"preset": "big", "bytes": 4_000_000, "seconds": 240}
    assert export.misses([row]) == []
    assert export.misses([row | {"bytes": 4_100_000}]) == ["big: 4.1 MB, at most 4"]
    assert export.misses([row | {"seconds": 241}]) == ["big: 241 s, at most 240"]
