import importlib

import pytest

from sim.cli import main
from sim.commands import bench


def test_every_bench_has_a_main_and_bars():
    for module in bench.BENCHES.values():
        loaded = importlib.import_module(module)
        assert callable(loaded.main)
        assert loaded.BARS


def test_arguments_and_exit_code_are_handed_through(monkeypatch):
    seen = []

    def fake(arguments):
        seen.append(arguments)
        return 7

    monkeypatch.setattr("sim.bench.configs.main", fake)
    assert main(["bench", "configs", "--count", "2", "--seed", "5"]) == 7
    assert seen == [["--count", "2", "--seed", "5"]]


def test_unknown_bench_is_named(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["bench", "nothing"])
    assert stopped.value.code == 2
    assert "invalid choice: 'nothing'" in capsys.readouterr().err
