"""The training script (needs torch; the text is a stand-in, so that no package is needed)."""

from pathlib import Path

import numpy as np
import pytest

from compiler.model import checkpoint
from models import corpus
from models.evaluate import DIRECTORY

pytestmark = pytest.mark.slow


@pytest.fixture
def train(monkeypatch):
    """A function that trains with some command-line options and returns the directory."""
    pytest.importorskip("torch", reason="torch is not installed (developer extra dev-models)")
    from models import train as script

    verses = (DIRECTORY / "heldout.txt").read_text().splitlines(keepends=True)
    chapters = ["".join(verses[at : at + 20]) for at in range(0, len(verses), 20)]
    monkeypatch.setattr(corpus, "read_chapters", lambda: chapters)
    monkeypatch.setattr(script, "write_figures", lambda directory: None)

    def run(out, *options):
        common = ["train", "--out", str(out), "--no-compile", "--batch", "2", "--every", "3",
                  "--warmup", "2", "--cooldown", "3"]
        monkeypatch.setattr("sys.argv", [*common, *map(str, options)])
        script.main()
        return Path(out)

    return run


def tensors(directory):
    return (directory / "model.safetensors").read_bytes()


def test_a_run_is_repeatable_and_learns(train, tmp_path):
    one = train(tmp_path / "one", "--steps", 12, "--muon-rate", 0.02, "--adam-rate", 0.02)
    two = train(tmp_path / "two", "--steps", 12, "--muon-rate", 0.02, "--adam-rate", 0.02)
    assert tensors(one) == tensors(two)
    other = train(tmp_path / "three", "--steps", 3, "--seed", 1)
    assert tensors(other) != tensors(one)
    header, *rows = (one / "training_log.csv").read_text().splitlines()
    assert header == "step,tokens,train_bits_per_token,heldout_bits_per_byte"
    assert [row.split(",")[0] for row in rows] == ["3", "6", "9", "12"]
    loss = [float(row.split(",")[2]) for row in rows]
    assert loss[0] > np.log2(512) - 0.5 and loss[-1] < loss[0] - 0.5
    assert checkpoint.load(one).config == checkpoint.load(DIRECTORY).config


def test_an_interrupted_run_ends_in_the_same_weights(train, tmp_path):
    whole = train(tmp_path / "whole", "--steps", 9)
    state = tmp_path / "state"
    # With a cooldown of one step no rate falls, as in the first six of nine steps.
    part = train(tmp_path / "part", "--steps", 6, "--cooldown", 1, "--state", state)
    assert tensors(part) != tensors(whole)
    train(part, "--steps", 9, "--state", state, "--resume")
    assert tensors(part) == tensors(whole)
    logs = [(run / "training_log.csv").read_text() for run in (part, whole)]
    assert logs[0] == logs[1]


def test_resuming_from_nothing_is_refused(train, tmp_path, capsys):
    for options in (["--resume"], ["--resume", "--state", tmp_path / "none"]):
        with pytest.raises(SystemExit):
            train(tmp_path / "out", *options)
        assert "--resume needs --state" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
