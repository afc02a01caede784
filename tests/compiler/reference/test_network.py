from dataclasses import replace

import numpy as np
import pytest

from compiler.model import fp32
from compiler.model.config import ModelError
from compiler.quantise import quantise
from compiler.reference import PlainModel, attention
from tests.compiler.reference.scalar import Scalar
from tests.compiler.small_models import MODELS, ODD, TINY, WIDE, tokens_of, weights_of


def make(config, seed, lanes=16, late=False, **changes):
    rng = np.random.default_rng(seed)
    calibration = tokens_of(config, rng, 5 * config.max_position).reshape(5, -1)
    return quantise(weights_of(config, seed, **changes), calibration, lanes, late)


def bits(values):
    return np.asarray(values, np.float32).view(np.uint32)


@pytest.mark.parametrize(("lanes", "late", "shards"), [
    (4, True, 1), (16, False, 4), (16, True, 1), (4, False, 16)])
@pytest.mark.parametrize("name", MODELS)
def test_steps_and_sequences_give_the_same_bits(name, lanes, late, shards, seed, rng):
    config = MODELS[name]
    plain = PlainModel(make(config, seed, lanes, late), shards=[shards] * len(config.layers))
    tokens = tokens_of(config, rng, config.max_position)
    whole = plain.forward(tokens)
    for position, token in enumerate(tokens):
        logits = plain.step(token, position)
        np.testing.assert_array_equal(bits(plain.scores), bits(whole[position]))
        np.testing.assert_array_equal(bits(logits), bits(plain.logits(whole[position])))


@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.parametrize("block", [1, 7, 41])
def test_queries_block_by_block_give_the_same_bits(block, shards, seed, rng, monkeypatch):
    plain = PlainModel(make(ODD, seed), shards=[shards] * len(ODD.layers))
    tokens = tokens_of(ODD, rng, ODD.max_position)
    whole = plain.forward(tokens)
    monkeypatch.setattr(attention, "BLOCK", block)
    np.testing.assert_array_equal(bits(plain.forward(tokens)), bits(whole))


@pytest.mark.parametrize(("lanes", "late", "shards"), [
    (4, False, 1), (16, False, 2), (16, True, 1), (4, True, 8)])
@pytest.mark.parametrize("name", MODELS)
def test_the_network_is_the_one_written_down(name, lanes, late, shards, seed, rng):
    config = MODELS[name]
    model = make(config, seed, lanes, late)
    plain = PlainModel(model, shards=[shards] * len(config.layers))
    scalar = Scalar(model, shards)
    count = min(config.max_position, 18)
    for position, token in enumerate(tokens_of(config, rng, count)):
        expected = scalar.step(token, position)
        plain.step(token, position)
        np.testing.assert_array_equal(bits(plain.scores), bits(expected))
        assert plain.token == int(np.argmax(expected))


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("scalars", [None, (0.5, 3.0, 0.25), (-0.5, 2.0, -1.0)])
def test_logits_are_near_float32(scalars, late, seed, rng):
    weights = weights_of(ODD, seed, scalars)
    plain = PlainModel(quantise(weights, tokens_of(ODD, rng, 400).reshape(10, 40), late_norms=late))
    tokens = tokens_of(ODD, rng, 40)
    expected = fp32.forward(weights, tokens)
    error = plain.logits(plain.forward(tokens)) - expected
    assert np.sqrt(np.mean(error**2)) < 0.05 * expected.std()


def test_shards_change_a_score_by_little_but_not_the_sum_of_the_weights(seed, rng):
    model = make(WIDE, seed)
    tokens = tokens_of(WIDE, rng, 100)
    whole, parts = (PlainModel(model, shards=[shards] * 2).forward(tokens) for shards in (1, 4))
    error = np.abs(whole - parts).max()
    assert 0 < error < 0.01 * whole.std()


def test_a_smaller_context_changes_nothing(seed, rng):
    model = make(WIDE, seed)
    small, large = PlainModel(model, 21), PlainModel(model)
    for position, token in enumerate(tokens_of(WIDE, rng, 21)):
        np.testing.assert_array_equal(
            bits(small.step(token, position)), bits(large.step(token, position)))


def test_a_new_text_does_not_see_the_old_one(seed, rng):
    plain = PlainModel(make(ODD, seed))
    tokens = tokens_of(ODD, rng, 30)
    first = [plain.step(token, position).tobytes() for position, token in enumerate(tokens)]
    for position, token in enumerate(tokens_of(ODD, rng, 41)):
        plain.step(token, position)
    again = [plain.step(token, position).tobytes() for position, token in enumerate(tokens)]
    assert first == again


def test_a_token_outside_the_window_is_forgotten(seed, rng):
    config = replace(ODD, layers=(ODD.layers[0],))
    plain = PlainModel(make(config, seed))
    tokens = tokens_of(config, rng, 12)
    changed = tokens.copy()
    changed[2] = (changed[2] + 1) % config.vocab
    one, other = plain.forward(tokens), plain.forward(changed)
    same = [a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True)]
    assert same == [True] * 2 + [False] * config.layers[0].window + [True] * 2


def test_equal_scores_choose_the_lowest_token():
    weights = weights_of(ODD, 1)
    blank = replace(weights, embedding=np.zeros_like(weights.embedding))
    plain = PlainModel(quantise(blank, [[3, 4, 5]]))
    logits = plain.step(7, 0)
    assert plain.token == 0
    np.testing.assert_array_equal(logits, 0)

    rows = weights.embedding.copy()
    rows[11] = rows[40]
    plain = PlainModel(quantise(replace(weights, embedding=rows), [[3, 4, 5]]))
    for position in range(30):
        plain.step(plain.token or 0, position)
        assert plain.scores[11] == plain.scores[40]
        assert plain.token != 40


def test_softcap_keeps_the_order_and_bounds_the_logits(rng):
    plain = PlainModel(make(ODD, 1))
    scores = np.sort(np.concatenate([
        rng.normal(0, 3, 1000), rng.normal(0, 200, 1000), [-np.inf, 0, np.inf]
    ])).astype(np.float32)
    logits = plain.logits(scores)
    expected = 30 * np.tanh(scores.astype(np.float64) * np.log(2) / 2)
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    assert np.all(np.diff(logits.astype(np.float64)) >= -1e-5)
    assert logits[0] == -30 and logits[-1] == 30


def test_without_a_softcap_logits_are_scores(seed):
    plain = PlainModel(make(TINY, seed))
    logits = plain.step(4, 0)
    assert logits.tobytes() == plain.scores.tobytes()


@pytest.mark.parametrize(("token", "position", "message"), [
    (51, 0, "token 51 is outside the vocabulary of 51"),
    (-1, 0, "token -1 is outside the vocabulary of 51"),
    (0, 41, "position 41 is outside the context of 41"),
    (0, -1, "position -1 is outside the context of 41"),
])
def test_bad_steps_are_refused(token, position, message):
    plain = PlainModel(make(ODD, 1))
    with pytest.raises(ModelError, match=message):
        plain.step(token, position)


@pytest.mark.parametrize("count", [0, 42])
def test_bad_lengths_are_refused(count):
    plain = PlainModel(make(ODD, 1))
    with pytest.raises(ModelError, match=f"a sequence must have 1 to 41 tokens, not {count}"):
        plain.forward(np.zeros(count, int))


def test_a_context_beyond_the_model_is_refused():
    with pytest.raises(ModelError, match=r"a context of 42 positions is outside 1\.\.41"):
        PlainModel(make(ODD, 1), 42)
