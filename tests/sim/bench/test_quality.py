import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compiler.model.checkpoint import Checkpoint
from compiler.model.config import ModelError
from sim.bench import quality
from tests.compiler.small_models import ODD, weights_of

TEXT = "and it came to pass "


class Letters:
    """One token a character: 3 .. 29."""

    ALPHABET = " abcdefghijklmnopqrstuvwxyz"

    def encode(self, text):
        return [2, *(self.ALPHABET.index(char) + 3 for char in text)]

    def decode(self, tokens):
        return "".join(self.ALPHABET[token - 3] for token in tokens)


@pytest.fixture
def checkpoint(seed):
    return Checkpoint(config=ODD, weights=weights_of(ODD, seed), tokenizer=Letters())


@pytest.fixture
def calibration(checkpoint):
    return [checkpoint.tokenizer.encode(TEXT)]


def test_figures_of_a_small_model(checkpoint, calibration):
    counted = []
    figures = quality.measure(
        checkpoint, calibration, TEXT * 9, report=counted.append)
    assert figures["tokens"] == figures["text_bytes"] == 160        # 4 sequences of 40 predictions
    assert counted == [40] * 4
    assert figures["perplexity_ratio"] == pytest.approx(
        figures["perplexity"] / figures["fp32_perplexity"])
    assert figures["bits_per_byte"] == pytest.approx(np.log2(figures["perplexity"]))
    assert 0.97 < figures["perplexity_ratio"] < 1.03
    assert figures["top1_agreement"] > 0.8
    json.dumps(figures)


def test_context_and_shards_are_those_asked_for(checkpoint, calibration):
    whole = quality.measure(checkpoint, calibration, TEXT * 9)
    short = quality.measure(checkpoint, calibration, TEXT * 9, context=11)
    assert (short["context"], short["tokens"]) == (11, 180)     # 18 sequences of 10 predictions
    shared = quality.measure(checkpoint, calibration, TEXT * 9, shards=3)
    assert (shared["shards"], shared["tokens"]) == (3, whole["tokens"])
    assert shared["perplexity"] != whole["perplexity"]
    assert shared["perplexity"] == pytest.approx(whole["perplexity"], rel=1e-3)
    with pytest.raises(ModelError, match="a context of 99 positions is outside 1..41"):
        quality.measure(checkpoint, calibration, TEXT * 9, context=99)


def test_a_damaged_network_is_seen(checkpoint, calibration, monkeypatch):
    whole = quality.measure(checkpoint, calibration, TEXT * 9)

    def damaged(*arguments):
        model = quality_quantise(*arguments)
        layer = replace(model.layers[1], gate=-model.layers[1].gate)
        return replace(model, layers=(model.layers[0], layer, model.layers[2]))

    quality_quantise = quality.quantise
    monkeypatch.setattr(quality, "quantise", damaged)
    figures = quality.measure(checkpoint, calibration, TEXT * 9)
    assert figures["top1_agreement"] < whole["top1_agreement"]
    assert figures["perplexity"] != pytest.approx(whole["perplexity"], rel=1e-3)
    assert figures["fp32_perplexity"] == whole["fp32_perplexity"]


def test_a_model_that_steps_differently_is_refused(checkpoint, calibration, monkeypatch):
    monkeypatch.setattr(
        quality.PlainModel, "step", lambda self, token, position: setattr(
            self, "scores", np.zeros(ODD.vocab, np.float32)))
    with pytest.raises(RuntimeError, match="stepping and whole sequences differ at position 0"):
        quality.measure(checkpoint, calibration, TEXT)


def test_bits_are_those_of_the_probabilities():
    p = np.array([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]])
    for shift in (7, 5000):
        logits = (np.log(p) + shift).astype(np.float32)
        assert quality.bits(logits, [1, 0]) == pytest.approx(2 + 3, abs=1e-2)


def test_predictions_are_of_the_next_token(checkpoint, calibration, monkeypatch):
    def prophet(weights, tokens):
        follows = {ord(a): b for a, b in zip("abcd", "bcda", strict=True)}
        text = checkpoint.tokenizer.decode(tokens[1:])
        _, *guesses = checkpoint.tokenizer.encode("a" + text.translate(follows))
        return 50 * np.eye(ODD.vocab)[guesses]

    monkeypatch.setattr(quality.fp32, "forward", prophet)
    figures = quality.measure(checkpoint, calibration, "abcd" * 20)
    assert figures["fp32_perplexity"] == pytest.approx(1)
    assert figures["perplexity"] > 5


GOOD = {"perplexity_ratio": 1.01, "top1_agreement": 0.97, "tokens": 10000}


@pytest.mark.parametrize(("change", "names"), [
    ({}, []),
    ({"perplexity_ratio": 1.03, "top1_agreement": 0.95, "tokens": 8192}, []),
    ({"perplexity_ratio": 1.0301}, ["perplexity_ratio"]),
    ({"top1_agreement": 0.9499}, ["top1_agreement"]),
    ({"tokens": 8191}, ["tokens"]),
    ({"perplexity_ratio": float("nan")}, ["perplexity_ratio"]),
])
def test_bars(change, names):
    assert quality.missed(GOOD | change, quality.DEFAULT_MODEL_BARS) == names


def test_other_models_have_a_lower_bar_for_the_first_choice(tmp_path):
    other, own = (quality.bars_of(path) for path in (tmp_path, quality.DEFAULT_MODEL))
    assert quality.bars_of(quality.DEFAULT_MODEL / ".." / quality.DEFAULT_MODEL.name) == own
    for share, of_other, of_own in ((0.9499, [], ["top1_agreement"]),
                                    (0.8999, ["top1_agreement"], ["top1_agreement"])):
        figures = GOOD | {"top1_agreement": share}
        assert (quality.missed(figures, other), quality.missed(figures, own)) == (of_other, of_own)
    assert other | {"top1_agreement": 0.95} == own


def run(tmp_path, monkeypatch, figures):
    monkeypatch.setattr(quality.checkpoints, "load", lambda directory: None)
    monkeypatch.setattr(quality, "calibration_sequences", lambda *arguments: [])
    monkeypatch.setattr(quality, "measure", lambda *arguments, **options: figures)
    (tmp_path / "heldout.txt").write_text("text")
    output = tmp_path / "new" / "quality.json"
    return quality.main(["--model", str(tmp_path), "--output", str(output)]), output


@pytest.mark.parametrize(("options", "read", "calibration"), [
    ([], "beside", None),
    (["--text", "other.txt", "--calibration", "c.txt"], "other", "c.txt"),
])
def test_texts_are_beside_the_model_or_named(tmp_path, monkeypatch, capsys, options, read,
                                             calibration):
    """A model that is a file; what `measure` and the calibration are given."""
    seen = []
    monkeypatch.chdir(tmp_path)
    (tmp_path / "heldout.txt").write_text("beside")
    (tmp_path / "other.txt").write_text("other")
    monkeypatch.setattr(quality.checkpoints, "load", lambda path: None)
    monkeypatch.setattr(quality, "calibration_sequences",
                        lambda model, checkpoint, text: seen.append(text))
    monkeypatch.setattr(quality, "measure", lambda checkpoint, sequences, text, *rest, **options:
                        seen.append(text) or FIGURES)
    assert quality.main(["--model", "a.gguf", "--output", "q.json", *options]) == 0
    assert seen == [None if calibration is None else Path(calibration), read]


FIGURES = GOOD | {"perplexity": 10.1, "fp32_perplexity": 10.0, "bits_per_byte": 1.5,
                  "fp32_bits_per_byte": 1.4}


def test_good_figures_are_printed_and_written(tmp_path, monkeypatch, capsys):
    status, output = run(tmp_path, monkeypatch, FIGURES)
    assert status == 0
    record = json.loads(output.read_text())
    assert record == FIGURES | {"bars": quality.BARS, "missed": []}
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == ("quality: perplexity 10.100 against 10.000 in float32 (+1.00%), same top-1 on "
                    "97.00% of 10,000 held-out tokens; all bars met")


def test_a_missed_bar_fails(tmp_path, monkeypatch, capsys):
    status, output = run(tmp_path, monkeypatch, FIGURES | {"top1_agreement": 0.5})
    assert status == 1
    assert json.loads(output.read_text())["missed"] == ["top1_agreement"]
    assert capsys.readouterr().out.splitlines()[-1].endswith("MISSED: top1_agreement")


def test_a_missing_model_is_one_line(tmp_path, capsys):
    output = tmp_path / "quality.json"
    status = quality.main(["--model", str(tmp_path / "no"), "--output", str(output)])
    assert status == 2 and not output.exists()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"bench quality: {tmp_path / 'no'}: no such directory\n"


def test_a_text_without_predictions_is_refused(checkpoint, calibration):
    with pytest.raises(ModelError, match="the text is empty"):
        quality.measure(checkpoint, calibration, "")


@pytest.mark.slow
def test_the_committed_model_meets_the_bars(tmp_path):
    assert quality.main(["--output", str(tmp_path / "quality.json")]) == 0
