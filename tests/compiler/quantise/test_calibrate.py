from dataclasses import replace

import numpy as np
import pytest

from compiler.model import fp32
from compiler.model.checkpoint import Checkpoint
from compiler.model.config import ModelError
from compiler.quantise.calibrate import (
    RANGE_BITS,
    calibrate,
    calibration_sequences,
    round_up,
    sequences,
)
from tests.compiler.small_models import ODD, tokens_of, weights_of


def test_sequences_begin_with_the_begin_token_and_drop_the_rest():
    batch = sequences([9, *range(10, 21)], 5, bos=9)
    assert batch.tolist() == [[9, 10, 11, 12, 13], [9, 14, 15, 16, 17]]


@pytest.mark.parametrize(("count", "positions", "longest", "bos", "shape"), [
    (1000, 4096, 256, None, (3, 256)),
    (1000, 4096, 256, 0, (3, 256)),
    (1000, 100, 256, 0, (10, 100)),
    (20, 4096, 256, None, (1, 20)),
    (20, 4096, 256, 0, (1, 21)),
    (1000, 4096, 1001, 0, (1, 1001)),
    (3, 1, 256, None, (3, 1)),
])
def test_sequences_are_as_long_as_allowed(count, positions, longest, bos, shape):
    batch = sequences(np.arange(1, count + 1), positions, bos, longest)
    assert batch.shape == shape
    body = batch if bos is None else batch[:, 1:]
    np.testing.assert_array_equal(body.ravel(), np.arange(1, body.size + 1))


@pytest.mark.parametrize(("tokens", "positions", "bos", "message"), [
    ([], 10, None, "the text is empty"),
    ([0], 10, 0, "the text is empty"),
    ([5, 5], 1, 0, "a model of 1 position cannot be measured on a text"),
])
def test_texts_that_cannot_be_cut_are_refused(tokens, positions, bos, message):
    with pytest.raises(ModelError, match=message):
        sequences(tokens, positions, bos)


def test_rounding_up_keeps_few_bits(rng):
    x = np.concatenate([np.exp(rng.normal(0, 20, 1000)), [0.0, 1.0, 127.0, 128.5]])
    up = round_up(x)
    assert np.all(up >= x) and np.all(up <= x * (1 + 2.0 ** (1 - RANGE_BITS)))
    mantissa = np.frexp(up)[0] * 2**RANGE_BITS
    np.testing.assert_array_equal(mantissa, np.rint(mantissa))
    np.testing.assert_array_equal(round_up(up), up)
    assert up[-4:].tolist() == [0, 1, 127, 130]


def test_ranges_are_the_largest_magnitudes(seed, rng):
    weights = weights_of(ODD, seed)
    batch = tokens_of(ODD, rng, 3 * 40).reshape(3, 40)
    seen = {}
    for row in batch:
        fp32.forward(weights, row, lambda name, value: seen.setdefault(name, []).append(value))
    ranges = calibrate(weights, batch)
    layers = len(ODD.layers)
    # layer 1 has no V projection, but its raw V (that is K) is tapped too
    assert len(ranges) == layers * (3 + 6 + 2 * 6) + 2 + 2
    for name in ("0.q", "1.k", "2.v"):
        heads, size = seen[name][0].shape[-2:]
        largest = np.abs(np.concatenate(seen[name])).max(axis=0)
        np.testing.assert_array_equal(ranges[name], round_up(largest.reshape(heads, size)))
    for name in ("1.attention_in", "2.ffn_product", "head_in"):
        largest = np.abs(np.concatenate(seen[name])).max(axis=0)
        np.testing.assert_array_equal(ranges[name], round_up(largest))
    for side, extreme in (("least", np.min), ("most", np.max)):
        assert ranges[f"1.largest_scores.{side}"] == extreme(seen["1.largest_scores"])
    for name in ("1.k_raw", "embedding", "0.middle"):
        squares = np.square(np.concatenate(seen[name]).astype(float)).mean(axis=-1)
        assert ranges[f"{name}.least"] == round_up(squares.min())
        assert ranges[f"{name}.most"] == round_up(squares.max())


def test_sequences_may_differ_in_length(seed, rng):
    weights = weights_of(ODD, seed)
    rows = [tokens_of(ODD, rng, n) for n in (1, 41, 7)]
    together = calibrate(weights, rows)
    apart = [calibrate(weights, [row]) for row in rows]
    for name, value in together.items():
        join = np.minimum if name.endswith("least") else np.maximum
        np.testing.assert_array_equal(value, join.reduce([one[name] for one in apart]))


def test_no_sequence_is_refused(seed):
    with pytest.raises(ModelError, match="calibration needs at least one sequence of tokens"):
        calibrate(weights_of(ODD, seed), [])


class Letters:
    """Tokens 3 .. 28 are letters."""

    def encode(self, text):
        for char in text:
            if not "a" <= char <= "z":
                raise ModelError(f"character {char!r} is outside the model's vocabulary")
        return [2, *(ord(char) - ord("a") + 3 for char in text)]


@pytest.fixture
def checkpoint():
    return Checkpoint(config=ODD, weights=None, tokenizer=Letters())


def test_the_text_of_a_directory_is_cut(tmp_path, checkpoint):
    (tmp_path / "calibration.txt").write_text("abc" * 30)
    rows = calibration_sequences(tmp_path, checkpoint)
    assert rows.shape == (2, 41)
    assert rows[1, :5].tolist() == [2, 4, 5, 3, 4]


def test_the_text_may_be_beside_a_file_or_named(tmp_path, checkpoint):
    (tmp_path / "calibration.txt").write_text("abc" * 30)
    (tmp_path / "other.txt").write_text("ddd" * 30)
    beside = calibration_sequences(tmp_path / "model.gguf", checkpoint)
    assert beside[1, :5].tolist() == [2, 4, 5, 3, 4]
    named = calibration_sequences(tmp_path / "model.gguf", checkpoint, tmp_path / "other.txt")
    assert named[1, :5].tolist() == [2, 6, 6, 6, 6]


@pytest.mark.parametrize(("content", "message"), [
    (None, "calibration.txt: no such file"),
    (b"", "calibration.txt: the text is empty"),
    (b"ab\xff", "calibration.txt: not UTF-8 text"),
    (b"abC", "calibration.txt: character 'C' is outside the model's vocabulary"),
])
def test_bad_texts_are_named(content, message, tmp_path, checkpoint):
    if content is not None:
        (tmp_path / "calibration.txt").write_bytes(content)
    with pytest.raises(ModelError, match=message) as error:
        calibration_sequences(tmp_path, checkpoint)
    assert "\n" not in str(error.value)


def test_infinite_activations_are_refused(seed):
    weights = weights_of(ODD, seed)
    broken = replace(weights.layers[1], k_norm=np.full_like(weights.layers[1].k_norm, 3e38))
    weights = replace(weights, layers=(weights.layers[0], broken, weights.layers[2]))
    with np.errstate(over="ignore", invalid="ignore"), \
            pytest.raises(ModelError, match="activation 1.k is not finite"):
        calibrate(weights, np.array([[1, 2, 3, 4]]))
