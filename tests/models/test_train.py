"""The training script (needs torch; the text is a stand-in, so that no package is needed)."""

from pathlib import Path

import numpy as np
import pytest

from models import corpus
from models.recipes import RECIPES

pytestmark = pytest.mark.slow


@pytest.fixture(params=RECIPES)
def recipe(request):
    return RECIPES[request.param]


@pytest.fixture
def script():
    pytest.importorskip("torch", reason="torch is not installed (developer extra dev-models)")
    from models import train as script

    return script


@pytest.fixture
def chapters(recipe):
    verses = (recipe.directory / "heldout.txt").read_text().splitlines(keepends=True)
    return ["".join(verses[at : at + 20]) for at in range(0, len(verses), 20)]


@pytest.fixture
def train(recipe, script, chapters, monkeypatch):
    """A function that trains with some command-line options and returns the directory."""
    monkeypatch.setattr(corpus, "read_chapters", lambda: chapters)
    monkeypatch.setattr(script, "write_figures", lambda recipe, directory: None)

    def run(out, *options):
        common = ["train", "--model", recipe.name, "--out", str(out), "--no-compile",
                  "--batch", "2", "--every", "3", "--warmup", "2", "--cooldown", "3"]
        monkeypatch.setattr("sys.argv", [*common, *map(str, options)])
        script.main()
        return Path(out)

    return run


def tensors(directory):
    (path,) = (path for path in directory.iterdir() if path.stem == "model")
    return path.read_bytes()


def test_windows_are_of_the_text_and_verses_begin_as_prompts_do(recipe, script, chapters, seed):
    tokenizer, config = recipe.load(recipe.directory).tokenizer, recipe.config
    windows = script.Batches(tokenizer, config, chapters, 32, seed).next().tolist()
    assert {len(window) for window in windows} == {config.max_position + 1}
    verses = 0
    for index, window in enumerate(windows):
        text = tokenizer.decode(window)
        assert window[0] == config.bos and text in "".join(chapters)
        if index < 16 and window[1] != config.eos:          # not the end of a chapter
            verse = next(line for chapter in chapters for line in chapter.splitlines()
                         if text.startswith(line))
            tokens = tokenizer.encode(verse)
            assert window[: len(tokens)] == tokens
            verses += 1
    assert verses > 8


def test_a_run_is_repeatable_and_learns(recipe, train, tmp_path):
    one = train(tmp_path / "one", "--steps", 12, "--muon-rate", 0.02, "--adam-rate", 0.02)
    two = train(tmp_path / "two", "--steps", 12, "--muon-rate", 0.02, "--adam-rate", 0.02)
    assert tensors(one) == tensors(two)
    other = train(tmp_path / "three", "--steps", 3, "--seed", 1)
    assert tensors(other) != tensors(one)
    header, *rows = (one / "training_log.csv").read_text().splitlines()
    assert header == "step,tokens,train_bits_per_token,heldout_bits_per_byte"
    assert [row.split(",")[0] for row in rows] == ["3", "6", "9", "12"]
    loss = [float(row.split(",")[2]) for row in rows]
    assert loss[0] > np.log2(recipe.config.vocab) - 0.5 and loss[-1] < loss[0] - 0.5
    assert recipe.load(one).config == recipe.load(recipe.directory).config


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
