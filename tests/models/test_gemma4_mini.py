"""The committed model: what is in its directory, and that its figures are true."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from compiler.model import checkpoint as checkpoints
from compiler.model import fp32
from compiler.model.config import ModelError
from models import corpus
from models.evaluate import DIRECTORY, WRITTEN, generate, prompts, score, word_share

FILES = {
    "LICENSE", "README.md", "calibration.txt", "config.json", "figures.json", "heldout.txt",
    "model.safetensors", "tokenizer.json", "tokenizer_config.json", "training_log.csv",
}


@pytest.fixture(scope="module")
def checkpoint():
    return checkpoints.load(DIRECTORY)


@pytest.fixture(scope="module")
def figures():
    return json.loads((DIRECTORY / "figures.json").read_text())


@pytest.fixture(scope="module")
def heldout():
    return (DIRECTORY / "heldout.txt").read_text()


def test_files_and_their_size():
    sizes = {path.name: path.stat().st_size for path in DIRECTORY.iterdir()}
    assert set(sizes) == FILES
    assert sizes["heldout.txt"] <= 200_000
    assert sum(sizes.values()) - sizes["heldout.txt"] <= 2_000_000


def test_architecture_is_gemma_4_31b_made_small(checkpoint):
    config = checkpoint.config
    assert [layer.window is None for layer in config.layers] == [False] * 5 + [True]
    *sliding, full = config.layers
    assert len(set(sliding)) == 1
    assert full.head_dim == 2 * sliding[0].head_dim
    assert full.kv_heads < sliding[0].kv_heads < sliding[0].heads == full.heads
    assert full.k_eq_v and not sliding[0].k_eq_v
    assert sliding[0].rope_pairs == sliding[0].head_dim // 2
    assert full.rope_pairs == full.head_dim // 8
    assert (sliding[0].rope_theta, full.rope_theta) == (1e4, 1e6)
    assert (config.softcap, config.eps) == (30.0, 1e-6)
    assert 900_000 <= config.parameters <= 1_100_000


def test_what_is_trained_differs_from_where_it_began(checkpoint):
    """Norms' weights and layer scalars are Gemma's only if they do something."""
    for layer in checkpoint.weights.layers:
        assert layer.scalar != 1
        for name in ("q_norm", "k_norm", "input_norm", "post_attention_norm", "pre_ffn_norm",
                     "post_ffn_norm"):
            assert np.ptp(getattr(layer, name)) > 0.01, name


def test_weights_are_16_bit(checkpoint):
    for layer in checkpoint.weights.layers:
        np.testing.assert_array_equal(layer.q, layer.q.astype(np.float16))
    size = (DIRECTORY / "model.safetensors").stat().st_size
    assert 0 < size - 2 * checkpoint.config.parameters < 16_384


def test_tokenizer_spells_all_printable_ascii(checkpoint):
    text = "".join(map(chr, range(32, 127))) + "\n"
    assert checkpoint.tokenizer.decode(checkpoint.tokenizer.encode(text)) == text
    assert checkpoint.tokenizer.size == checkpoint.config.vocab
    for char in "\t\r\0\u00e9\u2019":
        with pytest.raises(ModelError, match="outside the model's vocabulary"):
            checkpoint.tokenizer.encode("And" + char)


def test_tokenizer_is_lossless_on_held_out_text(checkpoint, heldout):
    tokens = checkpoint.tokenizer.encode(heldout)
    assert tokens[0] == checkpoint.config.bos
    assert checkpoint.tokenizer.decode(tokens) == heldout
    assert len(heldout) / len(tokens) > 2.5


def test_figures_reach_what_is_asked(figures):
    assert figures["word_share_greedy"]["share"] >= 0.90
    assert figures["word_share_greedy"]["prompts"] >= 8
    assert figures["parameters"] <= 1_100_000


def test_readme_shows_the_figures(figures):
    readme = (DIRECTORY / "README.md").read_text()
    shown = [f"{figures[f'heldout_{n}']['bits_per_byte']:.3f}" for n in (128, 256)]
    shown += [f"{figures[f'word_share_{name}']['share']:.1%}" for name in ("greedy",
                                                                          "temperature_1")]
    for figure in shown:
        assert figure in readme


def test_bits_per_byte_of_the_beginning(checkpoint, figures, heldout):
    recorded = figures["heldout_256_first"]
    result = score(checkpoint, heldout, 256, recorded["sequences"])
    assert (result.tokens, result.bytes) == (recorded["tokens"], recorded["bytes"])
    assert result.bits_per_byte == pytest.approx(recorded["bits_per_byte"], abs=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("context", [128, 256])
def test_bits_per_byte_of_all_held_out_text(checkpoint, figures, heldout, context):
    recorded = figures[f"heldout_{context}"]
    result = score(checkpoint, heldout, context)
    assert result.tokens == recorded["tokens"]
    assert result.bits_per_byte == pytest.approx(recorded["bits_per_byte"], abs=2e-4)
    if context == 256:
        *_, last = (DIRECTORY / "training_log.csv").read_text().splitlines()
        assert result.bits_per_byte == pytest.approx(float(last.split(",")[-1]), abs=2e-4)


def test_logits_recorded_from_transformers(checkpoint):
    """Recorded by :mod:`tests.models.record`; the text is the held-out one."""
    with np.load(DIRECTORY.parents[1] / "tests/models/transformers.npz") as recorded:
        tokens, places, logits = (recorded[name] for name in ("tokens", "places", "logits"))
    found = fp32.forward(checkpoint.weights, tokens)[places]
    assert np.ptp(logits) > 10
    np.testing.assert_allclose(found, logits, rtol=0, atol=2e-4)


def test_a_damaged_copy_is_refused(tmp_path):
    shutil.copytree(DIRECTORY, tmp_path / "copy")
    path = tmp_path / "copy" / "model.safetensors"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)
    with pytest.raises(ModelError, match="model.safetensors: truncated"):
        checkpoints.load(tmp_path / "copy")


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
def test_calibration_text_is_training_text_only(heldout):
    kept, _ = training_chapters()
    text = "".join(kept)
    for line in (DIRECTORY / "calibration.txt").read_text().splitlines():
        assert line in text


def test_missing_training_text_is_named():
    run = subprocess.run(
        [sys.executable, "-c", "from models.corpus import read_chapters; read_chapters()"],
        cwd=DIRECTORY.parents[1], env={"PATH": ""}, capture_output=True, text=True, check=False,
    )
    assert run.returncode != 0
    assert run.stderr.strip() == (
        "the training text is missing: apt-get install bible-kjv bible-kjv-text"
    )
