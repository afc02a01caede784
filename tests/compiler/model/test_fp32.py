"""The float32 reference: against plain loops, against itself, and its properties."""

from dataclasses import replace

import numpy as np
import pytest

from compiler.model import fp32
from compiler.model.config import LayerConfig, ModelConfig, ModelError
from compiler.model.weights import random_weights
from tests.compiler.model import naive


def layer(**changes):
    base = dict(heads=4, kv_heads=2, head_dim=6, window=5, k_eq_v=False, rope_theta=100.0,
                rope_pairs=3)
    return LayerConfig(**base | changes)


FULL = layer(kv_heads=1, head_dim=10, window=None, k_eq_v=True, rope_theta=1e4, rope_pairs=2)


def config(*layers, **changes):
    base = dict(vocab=30, hidden=14, ffn=9, eps=1e-6, softcap=30.0, max_position=12)
    return ModelConfig(layers=layers, **base | changes)


CONFIGS = {
    "mixed": config(layer(), layer(), FULL, layer(heads=2, window=1)),
    "one key for all": config(layer(kv_heads=1, window=None)),
    "a key each": config(layer(kv_heads=4, window=3, rope_pairs=0)),
    "projected V": config(replace(FULL, k_eq_v=False)),
    "K is V in a window": config(layer(k_eq_v=True)),
    "no softcap": config(layer(), softcap=None),
    "tight softcap, large eps": config(FULL, layer(), softcap=0.5, eps=0.3),
    "window over all": config(layer(window=99)),
    "one of everything": config(layer(heads=1, kv_heads=1, head_dim=2, rope_pairs=1), hidden=1,
                                ffn=1, vocab=1),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_equals_plain_loops(name, seed, rng):
    model = CONFIGS[name]
    weights = random_weights(model, seed)
    tokens = rng.integers(0, model.vocab, model.max_position)
    expected, found = naive.logits(weights, tokens), fp32.forward(weights, tokens)
    assert found.dtype == np.float32 and found.shape == (len(tokens), model.vocab)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("field", [
    "q", "k", "v", "o", "q_norm", "k_norm", "gate", "up", "down", "input_norm",
    "post_attention_norm", "pre_ffn_norm", "post_ffn_norm", "scalar",
])
def test_every_weight_counts(field, rng):
    """The comparison above would see a weight that is left out or used in another's place."""
    weights = random_weights(CONFIGS["mixed"])
    changed = list(weights.layers)
    changed[1] = replace(changed[1], **{field: getattr(changed[1], field) * np.float32(1.25)
                                        + np.float32(0.0625)})
    tokens = rng.integers(0, 30, 12)
    before = fp32.forward(weights, tokens)
    after = fp32.forward(replace(weights, layers=tuple(changed)), tokens)
    assert np.abs(after - before).max() > 1e-3


@pytest.mark.parametrize("name", CONFIGS)
def test_one_token_at_a_time_equals_the_whole(name, seed, rng):
    model = CONFIGS[name]
    weights = random_weights(model, seed)
    tokens = rng.integers(0, model.vocab, model.max_position)
    decoder = fp32.Decoder(weights)
    stepped = np.array([decoder.step(int(token)) for token in tokens])
    assert stepped.dtype == np.float32 and decoder.position == len(tokens)
    np.testing.assert_allclose(stepped, fp32.forward(weights, tokens), rtol=0, atol=1e-4)


def test_batch_equals_sequences(seed, rng):
    weights = random_weights(CONFIGS["mixed"], seed)
    tokens = rng.integers(0, 30, (3, 7))
    together = fp32.forward(weights, tokens)
    for row, alone in zip(together, tokens, strict=True):
        np.testing.assert_allclose(row, fp32.forward(weights, alone), rtol=0, atol=1e-4)


def test_window_is_exact():
    """Two sliding layers of window 5 see 9 tokens: the 9th matters, the 10th does not."""
    weights = random_weights(config(layer(), layer()))
    tokens = np.arange(12)
    last = fp32.forward(weights, tokens)[-1]
    for at in range(12):
        other = tokens.copy()
        other[at] = 29
        changed = np.abs(fp32.forward(weights, other)[-1] - last).max()
        assert (changed > 1e-4) == (at >= 12 - 9), at


def test_later_tokens_do_not_matter():
    weights = random_weights(CONFIGS["mixed"])
    tokens = np.arange(12)
    other = np.where(tokens < 7, tokens, 29)
    before, after = fp32.forward(weights, tokens), fp32.forward(weights, other)
    np.testing.assert_array_equal(before[:7], after[:7])
    assert (np.abs(before[7:] - after[7:]).max(axis=-1) > 1e-4).all()


def test_taps_see_the_same_tensors_both_ways(rng):
    weights = random_weights(CONFIGS["mixed"])
    tokens = rng.integers(0, 30, 12)
    whole, stepped = {}, {}
    fp32.forward(weights, tokens, whole.__setitem__)
    decoder = fp32.Decoder(weights)
    for token in tokens:
        decoder.step(int(token), stepped.__setitem__)
    assert list(whole) == list(stepped)
    for name, value in stepped.items():
        kind = name.split(".")[-1]
        if kind == "largest_scores":                        # positions come last
            np.testing.assert_allclose(value[..., 0], whole[name][..., -1], rtol=0, atol=1e-4)
        elif kind != "probabilities":                       # these have one column per key seen
            np.testing.assert_allclose(value[0], whole[name][-1], rtol=0, atol=1e-4, err_msg=name)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], "1 to 12 tokens, not 0"),
        ([0] * 13, "1 to 12 tokens, not 13"),
        ([3, 30], "token 30 is outside the vocabulary of 30"),
        ([-1], "token -1 is outside the vocabulary of 30"),
        ([0.5], "tokens must be whole numbers, not float64"),
    ],
)
def test_tokens_that_cannot_be_run(tokens, message):
    weights = random_weights(CONFIGS["mixed"])
    with pytest.raises(ModelError, match=message):
        fp32.forward(weights, np.array(tokens, None if tokens else int))


def test_decoder_ends_where_the_positions_do():
    decoder = fp32.Decoder(random_weights(CONFIGS["mixed"]))
    for _ in range(12):
        decoder.step(0)
    with pytest.raises(ModelError, match="12 positions, all of them used"):
        decoder.step(0)
    with pytest.raises(ModelError, match="token 30 is outside"):
        fp32.Decoder(random_weights(CONFIGS["mixed"])).step(30)
