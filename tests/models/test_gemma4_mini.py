"""gemma4-mini: what is in its directory; what it has in common with others: test_trained."""

import shutil

import numpy as np
import pytest

from compiler.model import checkpoint as checkpoints
from compiler.model import fp32
from compiler.model.config import ModelError
from models.gemma4_mini import DIRECTORY

FILES = {
    "LICENSE", "README.md", "calibration.txt", "config.json", "figures.json", "heldout.txt",
    "model.safetensors", "tokenizer.json", "tokenizer_config.json", "training_log.csv",
}


@pytest.fixture(scope="module")
def checkpoint():
    return checkpoints.load(DIRECTORY)


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
