"""The tokenizers in GGUF files."""

import gguf
import pytest

from compiler.model.checkpoint import load
from compiler.model.hf_config import parse_config
from compiler.model.weights import random_weights
from tests.compiler.model.llama_files import (
    LLAMA,
    byte_level_metadata,
    gguf_metadata,
    write_gguf,
)

KINDS = gguf.GGUFValueType


@pytest.fixture
def weights(seed):
    return random_weights(parse_config(LLAMA), seed)


def spelled(tmp_path, weights, text, **metadata):
    """Pieces of a text, without the begin token."""
    write_gguf(tmp_path / "a.gguf", weights, **metadata)
    tokenizer = load(tmp_path / "a.gguf").tokenizer
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text
    return [tokenizer.piece(token) for token in tokens if token != tokenizer.bos]


@pytest.mark.parametrize(("pre", "text", "expected"), [
    ("gpt-2", "the the 12", ["the", "\u0120the", "\u0120", "12"]),
    ("smollm", "the the 12", ["the", "\u0120the", "\u0120", "1", "2"]),
    ("smollm", "at\u00e9", ["at", "\u00c3", "\u00a9"]),
    ("default", "the 1212", ["the", "\u0120", "12", "1", "2"]),
])
def test_byte_level_tokenizers(tmp_path, weights, pre, text, expected):
    assert spelled(tmp_path, weights, text, **byte_level_metadata(pre)) == expected


@pytest.mark.parametrize(("kind", "said", "begins"), [
    ("gpt2", None, False), ("gpt2", False, False), ("gpt2", True, True),
    ("llama", None, True), ("llama", False, False), ("llama", True, True)])
def test_texts_begin_as_the_metadata_says(tmp_path, weights, kind, said, begins):
    metadata = byte_level_metadata() if kind == "gpt2" else {}
    write_gguf(tmp_path / "a.gguf", weights, **metadata, **{
        "tokenizer.ggml.add_bos_token": None if said is None else (said, KINDS.BOOL)})
    found = load(tmp_path / "a.gguf")
    assert (found.tokenizer.encode("the")[0] == 1) == begins
    assert found.config.bos == (1 if begins else None)


def test_special_tokens_have_no_text(tmp_path, weights):
    for metadata, special in ((byte_level_metadata(), {0, 1}), ({}, {0, 1, 2})):
        write_gguf(tmp_path / "a.gguf", weights, **metadata)
        tokenizer = load(tmp_path / "a.gguf").tokenizer
        assert {token for token in range(279) if tokenizer.is_special(token)} == special
        assert tokenizer.decode([0, 1, *tokenizer.encode("at"), 0]) == "at"


def test_a_text_without_a_blank_in_front(tmp_path, weights):
    assert spelled(tmp_path, weights, "the cat") == [" the", " cat"]
    assert spelled(tmp_path, weights, "the cat", **{
        "tokenizer.ggml.add_space_prefix": (False, KINDS.BOOL)}) == ["the", " cat"]


def changed(key, at, value):
    """Metadata with one element of a list changed."""
    config = parse_config(LLAMA)
    values, kind = (gguf_metadata(config) | {
        key: value for key, value in byte_level_metadata().items() if key.endswith("merges")})[key]
    return {key: ([*values[:at], value, *values[at + 1:]], kind)}


@pytest.mark.parametrize(("metadata", "message"), [
    ({"tokenizer.ggml.model": ("bert", KINDS.STRING)},
     "tokenizer.ggml.model must be gpt2 or llama, not bert"),
    (byte_level_metadata("llama-bpe"),
     "tokenizer.ggml.pre must be one of gpt-2, smollm, default, not llama-bpe"),
    (changed("tokenizer.ggml.token_type", 270, 4), "is user-defined: such tokens are not"),
    (changed("tokenizer.ggml.token_type", 270, 6), "byte token 270 is spelled"),
    (changed("tokenizer.ggml.scores", 270, float("nan")), "score of token 270 is not finite"),
    ({"tokenizer.ggml.scores": ([1.0], KINDS.ARRAY)}, "has 1 values for 279 tokens"),
    ({"tokenizer.ggml.scores": ([1] * 279, KINDS.ARRAY)}, "must hold values of type float"),
    ({"tokenizer.ggml.tokens": ("a", KINDS.STRING)}, "must be of type list"),
    (byte_level_metadata() | {"tokenizer.ggml.merges": (["the"], KINDS.ARRAY)},
     "merges must hold two pieces with a blank between them"),
    (byte_level_metadata() | {"tokenizer.ggml.merges": (["q zz"], KINDS.ARRAY)},
     "not a tokenizer"),
    (byte_level_metadata() | {"tokenizer.ggml.tokens": (["a"] * 263, KINDS.ARRAY)},
     "has a token twice"),
    (byte_level_metadata() | {"tokenizer.ggml.add_space_prefix": (True, KINDS.BOOL)},
     "add_space_prefix must be false"),
])
def test_a_tokenizer_that_cannot_be(tmp_path, weights, metadata, message, failure):
    write_gguf(tmp_path / "a.gguf", weights, **metadata)
    assert message in failure(load, tmp_path / "a.gguf")


def test_a_tokenizer_larger_than_the_vocabulary(tmp_path, seed, failure):
    weights = random_weights(parse_config(LLAMA | {"vocab_size": 278}), seed)
    write_gguf(tmp_path / "a.gguf", weights)
    assert "279 tokens do not fit the model's vocabulary of 278" in failure(
        load, tmp_path / "a.gguf")
