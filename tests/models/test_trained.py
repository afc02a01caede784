"""What all committed models must keep: their texts, and that their figures are true."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from models import corpus
from models.evaluate import WRITTEN, generate, prompts, score, word_share
from models.recipes import RECIPES


@pytest.fixture(scope="module", params=RECIPES)
def recipe(request):
    return RECIPES[request.param]


@pytest.fixture(scope="module")
def checkpoint(recipe):
    return recipe.load(recipe.directory)


@pytest.fixture(scope="module")
def figures(recipe):
    return json.loads((recipe.directory / "figures.json").read_text())


@pytest.fixture(scope="module")
def heldout(recipe):
    return (recipe.directory / "heldout.txt").read_text()


def test_tokenizer_is_lossless_on_the_texts(recipe, checkpoint, heldout):
    for text in (heldout, (recipe.directory / "calibration.txt").read_text()):
        tokens = checkpoint.tokenizer.encode(text)
        assert tokens[0] == checkpoint.config.bos
        assert checkpoint.tokenizer.decode(tokens) == text
        assert len(text) / len(tokens) > 2


def test_calibration_text_is_not_held_out(recipe, heldout):
    """But for short verses that the book itself repeats."""
    verses = set(heldout.splitlines())
    calibration = (recipe.directory / "calibration.txt").read_text().splitlines()
    assert not [verse for verse in calibration if len(verse) > 60 and verse in verses]


def test_figures_reach_what_is_asked(checkpoint, figures):
    assert figures["word_share_greedy"]["share"] >= 0.95
    assert figures["word_share_greedy"]["prompts"] >= 8
    assert figures["parameters"] == checkpoint.config.parameters


def test_readme_shows_the_figures(recipe, figures):
    readme = (recipe.directory / "README.md").read_text()
    shown = [f"{figures[f'heldout_{n}']['bits_per_byte']:.3f}" for n in (128, 256)]
    shown += [f"{figures[f'word_share_{name}']['share']:.1%}" for name in ("greedy",
                                                                          "temperature_1")]
    for figure in [*shown, f"{figures['parameters']:,}"]:
        assert figure in readme


def test_bits_per_byte_of_the_beginning(checkpoint, figures, heldout):
    recorded = figures["heldout_256_first"]
    result = score(checkpoint, heldout, 256, recorded["sequences"])
    assert (result.tokens, result.bytes) == (recorded["tokens"], recorded["bytes"])
    assert result.bits_per_byte == pytest.approx(recorded["bits_per_byte"], abs=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("context", [128, 256])
def test_bits_per_byte_of_all_held_out_text(recipe, checkpoint, figures, heldout, context):
    recorded = figures[f"heldout_{context}"]
    result = score(checkpoint, heldout, context)
    assert result.tokens == recorded["tokens"]
    assert result.bits_per_byte == pytest.approx(recorded["bits_per_byte"], abs=2e-4)
    if context == 256:
        *_, last = (recipe.directory / "training_log.csv").read_text().splitlines()
        assert result.bits_per_byte == pytest.approx(float(last.split(",")[-1]), abs=2e-4)


def test_words_that_may_go_on_do_not_count():
    known = {"And", "the", "king", "said"}
    pairs = [("And the ki", "ng said unto"), ("And", " the xx the")]
    # Counted are king, said, the, xx; "unto" and the last "the" might have gone on.
    assert word_share(pairs, known) == (3 / 4, 4)


def training_chapters():
    if shutil.which("bible") is None:
        pytest.skip("the training text is not installed (Debian bible-kjv, bible-kjv-text)")
    return corpus.split(corpus.read_chapters())


@pytest.mark.slow
def test_word_share(checkpoint, figures, heldout):
    kept, held = training_chapters()
    assert "".join(held) == heldout
    known = set(corpus.words("".join(kept)))
    pairs = [(prompt, generate(checkpoint, prompt, WRITTEN)) for prompt in prompts(heldout)]
    share, count = word_share(pairs, known)
    assert count > 1000
    assert share == pytest.approx(figures["word_share_greedy"]["share"], abs=0.01)


@pytest.mark.slow
def test_calibration_text_is_training_text_only(recipe):
    kept, _ = training_chapters()
    text = "".join(kept)
    for line in (recipe.directory / "calibration.txt").read_text().splitlines():
        assert line in text


def test_missing_training_text_is_named():
    run = subprocess.run(
        [sys.executable, "-c", "from models.corpus import read_chapters; read_chapters()"],
        cwd=Path(__file__).parents[2], env={"PATH": ""}, capture_output=True, text=True,
        check=False,
    )
    assert run.returncode != 0
    assert run.stderr.strip() == (
        "the training text is missing: apt-get install bible-kjv bible-kjv-text"
    )
