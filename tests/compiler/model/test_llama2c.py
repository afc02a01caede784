"""llama2.c files, whole and damaged."""

import struct

import numpy as np
import pytest

from compiler.model import fp32
from compiler.model.checkpoint import files, load, load_config
from compiler.model.hf_config import parse_config
from compiler.model.weights import random_weights
from tests.compiler.model import naive_llama
from tests.compiler.model.llama_files import (
    LLAMA,
    named,
    pieces,
    tokenizer_bytes,
    write_llama2c,
)

HEAD = struct.Struct("<7i")


@pytest.fixture
def weights(seed):
    return random_weights(parse_config(LLAMA), seed)


@pytest.fixture
def path(tmp_path, weights):
    write_llama2c(tmp_path / "model" / "small.bin", weights)
    return tmp_path / "model" / "small.bin"


def change_header(path, **changes):
    names = ("hidden", "ffn", "layers", "heads", "kv_heads", "vocab", "positions")
    data = path.read_bytes()
    values = dict(zip(names, HEAD.unpack_from(data), strict=True)) | changes
    path.write_bytes(HEAD.pack(*(values[name] for name in names)) + data[HEAD.size:])


@pytest.mark.parametrize("tied", [False, True])
def test_the_network_is_that_of_the_file(tmp_path, seed, rng, tied):
    weights = random_weights(parse_config(LLAMA | {"tie_word_embeddings": tied}), seed)
    write_llama2c(tmp_path / "a.bin", weights)
    found = load(tmp_path / "a.bin")
    assert found.config == weights.config
    tokens = rng.integers(0, 288, 24)
    expected = naive_llama.logits(lambda path: named(weights, path), weights.config, tokens)
    np.testing.assert_allclose(fp32.forward(found.weights, tokens), expected, rtol=0, atol=5e-5)
    np.testing.assert_array_equal(fp32.forward(found.weights, tokens),
                                  fp32.forward(weights, tokens))


def test_the_tokenizer_beside_it(path):
    tokenizer = load(path).tokenizer
    assert (tokenizer.size, tokenizer.bos) == (288, 1)
    assert [tokenizer.piece(token) for token in tokenizer.encode("the cat!")] == [
        "\n<s>\n", " the", " cat", "<0x21>"]
    assert tokenizer.decode(tokenizer.encode("the cat!")) == "the cat!"


def test_both_files_are_named(path):
    assert files(path) == [path, path.with_name("tokenizer.bin")]


@pytest.mark.parametrize(("changes", "message"), [
    ({"layers": 3}, "bytes, but a llama2.c file with this header has"),
    ({"vocab": 288}, "bytes, but a llama2.c file with this header has"),
    ({"positions": 25}, "bytes, but a llama2.c file with this header has"),
    ({"layers": 1 << 30}, "at most 1024 layers"),
    ({"layers": -1}, "at least one layer"),
    ({"vocab": 0}, "vocab must be a positive whole number"),
    ({"hidden": -64}, "not a llama2.c file"),
    ({"heads": 0}, "not a llama2.c file"),
    ({"heads": -4}, "not a llama2.c file"),
    ({"kv_heads": 3}, "cannot share 3 KV heads"),
    ({"positions": 1 << 30}, "at most 1048576 positions"),
    ({"hidden": (1 << 31) - 4, "heads": 1 << 20}, "not a llama2.c file"),
])
def test_a_header_that_cannot_be(path, changes, message, failure):
    change_header(path, **changes)
    assert message in failure(load, path)
    assert message in failure(load_config, path)


@pytest.mark.parametrize("cut", [0, 1, 27, 28, 29, 4096, -4, -1])
def test_every_truncation_is_refused(path, cut, failure):
    path.write_bytes(path.read_bytes()[:cut])
    assert "truncated" in failure(load, path)


def test_more_than_the_header_says_is_refused(path, failure):
    path.write_bytes(path.read_bytes() + b"\0")
    assert "truncated, or not such a file" in failure(load, path)


def test_a_later_version_is_named(path, failure):
    path.write_bytes(b"24ka" + path.read_bytes())
    assert failure(load, path) == (f"{path}: llama2.c file of a later version: export it with "
                                   "--version 0")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_named(path, bad, failure):
    data = bytearray(path.read_bytes())
    data[-4:] = np.float32(bad).tobytes()
    path.write_bytes(data)
    assert failure(load, path) == f"{path}: tensor untied holds values that are not finite"


def test_a_missing_tokenizer_is_named(path, failure):
    tokenizer = path.with_name("tokenizer.bin")
    tokenizer.unlink()
    assert failure(load, path) == f"{tokenizer}: no such file"


def test_truncated_tokenizers_are_refused(path, failure):
    tokenizer = path.with_name("tokenizer.bin")
    data = tokenizer.read_bytes()
    for cut in (0, 3, 4, 5, 12, 17, len(data) // 2, len(data) - 1, len(data) - 12):
        tokenizer.write_bytes(data[:cut])
        assert "truncated, or" in failure(load, path)


def test_a_tokenizer_of_another_model_is_refused(path, failure):
    tokenizer = path.with_name("tokenizer.bin")
    words, scores = pieces()
    tokenizer.write_bytes(tokenizer_bytes(words, scores))
    assert f"{len(words)} tokens, but the model has 288: truncated, or of another" in failure(
        load, path)
    words += [b"x%d" % number for number in range(50)]
    tokenizer.write_bytes(tokenizer_bytes(words, scores + [0.0] * 50))
    assert "289 tokens do not fit the model's vocabulary of 288" in failure(load, path)


@pytest.mark.parametrize(("at", "content", "message"), [
    (0, struct.pack("<i", -1), "token 0 has 5 bytes, the longest has -1"),
    (8, struct.pack("<i", -5), "token 0 has -5 bytes"),
    (8, struct.pack("<i", 1 << 30), "token 0 has 1073741824 bytes, the longest has 6"),
    (4, struct.pack("<f", np.nan), "the score of token 0 is not finite"),
])
def test_a_tokenizer_that_cannot_be(path, at, content, message, failure):
    tokenizer = path.with_name("tokenizer.bin")
    data = bytearray(tokenizer.read_bytes())
    data[at:at + len(content)] = content
    tokenizer.write_bytes(data)
    assert message in failure(load, path)


def test_flipped_bits_are_refused_or_do_not_matter(path, flip):
    assert flip(path, 300, path, HEAD.size) > 250
    flip(path, 200, path)
    assert flip(path.with_name("tokenizer.bin"), 400, path) > 30
