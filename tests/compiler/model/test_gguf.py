"""GGUF files, whole and damaged, written with the package's own writer."""

import struct

import gguf
import numpy as np
import pytest

from compiler.model import fp32
from compiler.model.checkpoint import load, load_config
from compiler.model.hf_config import parse_config
from compiler.model.weights import random_weights
from tests.compiler.model import naive_llama
from tests.compiler.model.llama_files import (
    LLAMA,
    byte_level_metadata,
    gguf_tensors,
    named,
    write_gguf,
)

KINDS = gguf.GGUFValueType


@pytest.fixture
def weights(seed):
    return random_weights(parse_config(LLAMA), seed)


@pytest.fixture
def path(tmp_path, weights):
    write_gguf(tmp_path / "small.gguf", weights)
    return tmp_path / "small.gguf"


@pytest.mark.parametrize("tied", [False, True])
def test_the_network_is_that_of_the_file(tmp_path, seed, rng, tied):
    weights = random_weights(parse_config(LLAMA | {"tie_word_embeddings": tied}), seed)
    write_gguf(tmp_path / "a.gguf", weights)
    found = load(tmp_path / "a.gguf")
    assert found.config.tied == tied
    assert found.config.eps == np.float32(1e-5)
    tokens = rng.integers(0, 288, 24)
    expected = naive_llama.logits(lambda path: named(weights, path), weights.config, tokens)
    np.testing.assert_allclose(fp32.forward(found.weights, tokens), expected, rtol=0, atol=5e-5)


@pytest.mark.parametrize(("kind", "error"), [
    ("F16", 0), ("BF16", 0), ("Q8_0", 1 / 127), ("Q4_0", 1 / 7), ("Q4_1", 1 / 15)])
def test_types_are_dequantised(tmp_path, weights, kind, error):
    """Of 32 values of a row, none is off by more than a step of the largest."""
    write_gguf(tmp_path / "a.gguf", weights, types={"_norm.weight": "F32", ".weight": kind})
    found = load(tmp_path / "a.gguf").weights
    for key in ("embedding", "untied", "0.q", "1.k", "0.down"):
        index, _, field = key.partition(".")
        ours, theirs = ((getattr(w.layers[int(index)], field) if field else getattr(w, key))
                        for w in (found, weights))
        assert ours.dtype == np.float32 and ours.shape == theirs.shape
        blocks = np.abs(theirs.reshape(-1, 32)).max(axis=1, keepdims=True)
        off = np.abs(ours - theirs).reshape(-1, 32)
        assert (off <= blocks * error * 1.01).all()
        assert (off.max() > 0) == (error > 0)


def test_q4_1_by_hand(tmp_path, weights):
    """A block: scale and least value as float16, then nibbles, the first 16 values the low ones."""
    write_gguf(tmp_path / "a.gguf", weights, types={"0.ffn_up.weight": "Q4_1"})
    file = tmp_path / "a.gguf"
    quantised = gguf.quantize(weights.layers[0].up, gguf.GGMLQuantizationType.Q4_1).tobytes()
    data = file.read_bytes()
    assert data.count(quantised) == 1
    block = struct.pack("<ee", 0.5, -3.0) + bytes(range(0x10, 0x20))
    file.write_bytes(data.replace(quantised, block + quantised[len(block):]))
    expected = [n % 16 * 0.5 - 3 for n in range(16)] + [-2.5] * 16
    np.testing.assert_array_equal(load(file).weights.layers[0].up[0, :32], expected)


def test_metadata_that_may_be_missing(tmp_path, weights):
    write_gguf(tmp_path / "a.gguf", weights, **{
        "llama.vocab_size": None, "llama.rope.freq_base": None, "llama.attention.key_length": None,
        "llama.rope.dimension_count": None, "tokenizer.ggml.eos_token_id": None})
    config = load(tmp_path / "a.gguf").config
    assert (config.vocab, config.eos, config.layers[0].rope_theta) == (288, None, 1e4)


def test_heads_may_be_larger_than_the_width_says(tmp_path, seed, rng):
    weights = random_weights(parse_config(LLAMA | {"head_dim": 32}), seed)
    write_gguf(tmp_path / "a.gguf", weights, **{
        "llama.attention.key_length": (32, KINDS.UINT32),
        "llama.attention.value_length": (32, KINDS.UINT32)})
    tokens = rng.integers(0, 288, 24)
    np.testing.assert_array_equal(fp32.forward(load(tmp_path / "a.gguf").weights, tokens),
                                  fp32.forward(weights, tokens))


@pytest.mark.parametrize(("key", "value", "message"), [
    ("llama.rope.scaling.type", ("yarn", KINDS.STRING),
     "llama.rope.scaling.type must be 'none', not 'yarn'"),
    ("llama.rope.scaling.factor", (2.0, KINDS.FLOAT32),
     "llama.rope.scaling.factor is set: it is not supported"),
    ("llama.expert_count", (8, KINDS.UINT32), "llama.expert_count must be 0, not 8"),
    ("llama.attention.sliding_window", (8, KINDS.UINT32),
     "llama.attention.sliding_window is set: it is not supported"),
    ("llama.attention.value_length", (8, KINDS.UINT32), "value_length must be 16, not 8"),
    ("llama.rope.dimension_count", (8, KINDS.UINT32), "dimension_count must be 16, not 8"),
    ("llama.vocab_size", (289, KINDS.UINT32), "llama.vocab_size must be 288, not 289"),
    ("llama.block_count", ("two", KINDS.STRING), "llama.block_count must be of type int"),
    ("llama.block_count", (1 << 31, KINDS.UINT32), "at most 1024 layers"),
    ("llama.block_count", (1, KINDS.UINT32), "unknown tensor blk.1.attn_norm.weight"),
    ("llama.block_count", (3, KINDS.UINT32), "tensor blk.2.attn_q.weight is missing"),
    ("llama.attention.head_count", (0, KINDS.UINT32), "cannot be split over 0 heads"),
    ("llama.feed_forward_length", (64, KINDS.UINT32),
     "tensor blk.0.ffn_gate.weight has shape [96, 64], must be [64, 64]"),
    ("llama.context_length", (1 << 31, KINDS.UINT32), "at most 1048576 positions"),
    ("tokenizer.ggml.bos_token_id", (288, KINDS.UINT32), "bos token 288 is outside"),
    ("general.alignment", (0, KINDS.UINT32), "general.alignment must be a positive number"),
])
def test_metadata_that_cannot_be_run_is_named(tmp_path, weights, key, value, message, failure):
    path = tmp_path / "a.gguf"
    write_gguf(path, weights, **{key: value})
    found = failure(load, path)
    assert message in found and found.startswith(f"{path}: ")


@pytest.mark.parametrize("key", [
    "llama.context_length", "llama.embedding_length", "llama.block_count",
    "llama.feed_forward_length", "llama.attention.head_count",
    "llama.attention.layer_norm_rms_epsilon", "tokenizer.ggml.model", "tokenizer.ggml.tokens",
    "tokenizer.ggml.scores", "tokenizer.ggml.token_type"])
def test_missing_metadata_is_named(tmp_path, weights, key, failure):
    write_gguf(tmp_path / "a.gguf", weights, **{key: None})
    assert f"{key} is missing" in failure(load, tmp_path / "a.gguf")


def test_another_architecture_is_named(tmp_path, weights, failure):
    write_gguf(tmp_path / "a.gguf", weights, architecture="qwen2")
    assert "architecture must be llama, not qwen2" in failure(load_config, tmp_path / "a.gguf")


def test_other_tensor_types_are_named(path, weights, failure):
    """The number of the type in the entry of one tensor, made another."""
    name = b"blk.1.ffn_up.weight"
    data = path.read_bytes()
    at = data.index(name) + len(name) + 4 + 2 * 8
    for number, kind in ((12, "Q4_K"), (24, "I8"), (99, "number 99")):
        path.write_bytes(data[:at] + struct.pack("<I", number) + data[at + 4:])
        assert failure(load, path) == (
            f"{path}: tensor blk.1.ffn_up.weight is of type {kind}, must be one of F32, F16, BF16, "
            "Q8_0, Q4_0, Q4_1")


def test_every_missing_tensor_is_named(tmp_path, weights, failure):
    tensors = gguf_tensors(weights)
    for name in tensors:
        if name != "output.weight":                         # without it the head is tied
            write_gguf(tmp_path / "a.gguf", weights, tensors={
                other: values for other, values in tensors.items() if other != name})
            assert f"tensor {name} is missing" in failure(load, tmp_path / "a.gguf")


@pytest.mark.parametrize("name", ["rope_freqs.weight", "blk.0.attn_q.bias"])
def test_unknown_tensors_are_named(tmp_path, weights, name, failure):
    write_gguf(tmp_path / "a.gguf", weights,
               tensors=gguf_tensors(weights) | {name: np.ones(8, np.float32)})
    assert f"unknown tensor {name}" in failure(load, tmp_path / "a.gguf")


def test_values_that_are_not_finite_are_named(tmp_path, weights, failure):
    tensors = gguf_tensors(weights)
    tensors["output_norm.weight"] = np.append(weights.norm[:-1], np.float32(np.inf))
    write_gguf(tmp_path / "a.gguf", weights, tensors=tensors)
    assert "tensor output_norm.weight holds values that are not finite" in failure(
        load, tmp_path / "a.gguf")


def test_every_truncation_is_refused(path, failure):
    data = path.read_bytes()
    for cut in (*range(30), 100, 1000, 5000, 10_000, 13_000, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        message = failure(load, path)
        assert "truncated" in message or "not a GGUF file" in message, cut


def test_lengths_beyond_the_file_are_refused(path, failure):
    """Counts of values, of tensors, of an array, of a string, dimensions and an offset."""
    data = path.read_bytes()
    scores = data.index(b"tokenizer.ggml.scores") + len("tokenizer.ggml.scores") + 8
    tensor = data.index(b"token_embd.weight")
    places = [(8, "Q"), (16, "Q"), (24, "Q"), (scores, "Q"), (tensor - 8, "Q"),
              (tensor + len("token_embd.weight"), "I"),
              (tensor + len("token_embd.weight") + 4 + 16 + 4, "Q")]
    for at, code in places:
        for value in (1 << 20, (1 << 31) + 1, (1 << 60) + 5):
            content = struct.pack(f"<{code}", value % (1 << 32 if code == "I" else 1 << 64))
            path.write_bytes(data[:at] + content + data[at + len(content):])
            assert failure(load, path).startswith(f"{path}: ")


def test_an_embedding_beyond_the_file_is_refused_unread(tmp_path, seed, failure):
    weights = random_weights(parse_config(LLAMA | {"tie_word_embeddings": True}), seed)
    path = tmp_path / "a.gguf"
    write_gguf(path, weights, **{"llama.vocab_size": None})
    data, name = path.read_bytes(), b"token_embd.weight"
    at = data.index(name) + len(name) + 4 + 8
    path.write_bytes(data[:at] + struct.pack("<Q", 1 << 40) + data[at + 8:])
    assert load_config(path).vocab == 1 << 40
    assert f"tensor token_embd.weight: truncated: {1 << 48} bytes at offset" in failure(load, path)


def test_versions(path, failure):
    data = path.read_bytes()
    path.write_bytes(data[:4] + struct.pack("<I", 2) + data[8:])
    load(path)
    for version in (1, 4, 3 << 24):
        path.write_bytes(data[:4] + struct.pack("<I", version) + data[8:])
        assert f"GGUF version must be 2 or 3, not {version}" in failure(load, path)


def test_flipped_bits_are_refused_or_do_not_matter(path, tmp_path, weights, flip):
    end = path.read_bytes().index(b"output.weight") + 100
    assert flip(path, 600, path, end) > 200
    flip(path, 100, path)
    write_gguf(tmp_path / "b.gguf", weights, **byte_level_metadata("smollm"))
    assert flip(tmp_path / "b.gguf", 400, tmp_path / "b.gguf", end) > 100
