from dataclasses import fields, replace

import numpy as np
import pytest

from compiler.model import fp32
from compiler.model.config import ModelError
from compiler.quantise import quantise, scales
from compiler.quantise.calibrate import round_up
from compiler.quantise.graph import GELU_BETA, GELU_LAMBDA, LIMB_MAX, SILU_LAMBDA
from compiler.quantise.heads import head_places
from compiler.quantise.layer import EPS_NEGLIGIBLE
from compiler.quantise.matrix import quantise_matrix
from compiler.quantise.scales import HEADROOM, channel_units
from compiler.reference import PlainModel
from compiler.reference.arithmetic import to_activation, to_float
from compiler.reference.attention import attend_sequence, rotary
from compiler.reference.network import attention_inputs, gated_network, product
from tests.compiler.small_models import MODELS, ODD, sliding, tokens_of, weights_of


def text(rng, config=ODD):
    """One sequence over all positions."""
    return tokens_of(config, rng, config.max_position)


def taps(weights, tokens):
    found = {}
    fp32.forward(weights, tokens, found.__setitem__)
    return found


def on_grid(weights):
    """The same model with matrices that int8 holds exactly, so that only activations round."""
    def grid(matrix):
        integers, scale = quantise_matrix(matrix)
        step = 2.0 ** np.round(np.log2(scale))
        integers = integers.astype(np.float64)
        integers[0] = 127                       # fixes the scale that is found again
        return (integers * step).T.astype(np.float32)

    names = ("q", "k", "v", "o", "gate", "up", "down")
    layers = tuple(
        replace(layer, **{name: grid(getattr(layer, name)) for name in names
                          if getattr(layer, name) is not None})
        for layer in weights.layers)
    return replace(weights, layers=layers, embedding=grid(weights.embedding))


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("scalars", [None, (-0.25, 4.0, 1.0)])
def test_activations_of_every_layer_are_those_of_float32(scalars, late, seed, rng, monkeypatch):
    monkeypatch.setattr(scales, "OUTLIER", np.inf)      # factors would take weights off the grid
    weights = on_grid(weights_of(ODD, seed, scalars))
    tokens = text(rng)
    model = quantise(weights, [tokens], late_norms=late)
    expected = taps(weights, tokens)
    factor = 1.0
    for index, layer in enumerate(model.layers):
        stream = expected["embedding" if index == 0 else f"{index - 1}.out"]
        x = (stream / factor).astype(np.float32)
        cos, sin = rotary(model.ropes[layer.rope], np.arange(len(tokens)))
        q, k, v = attention_inputs(model, layer, x, cos, sin)
        places = head_places(layer.head_size, 16)[1]
        k_range, v_range = (
            round_up(np.abs(expected[f"{index}.{name}"]).max(axis=0)) for name in "kv")
        k_step = np.maximum(k_range, np.roll(k_range, layer.head_size // 2, axis=-1)) / 127
        for ours, name, step in ((k, "k", k_step), (v, "v", v_range / 127)):
            # half a step, and a little for the 16-bit activations before it
            error = ours[..., places] * step - expected[f"{index}.{name}"]
            assert np.all(np.abs(error) <= (0.65 if late else 0.54) * step)
        q_step = float(model.score_scale) * np.log(2) / k_step
        q_step = np.repeat(q_step, layer.heads // layer.kv_heads, axis=0)
        error = q[..., places] * q_step - expected[f"{index}.q"]
        assert np.abs(error).max() <= 1e-3 * np.abs(expected[f"{index}.q"]).max()
        attended = attend_sequence(layer, q, k, v, model.score_scale, 16)
        a = to_activation(to_float(attended) * layer.attended_gain)
        raw = product(a, layer.o) * layer.o_scale
        error = raw - expected[f"{index}.o_raw"]
        assert np.sqrt(np.mean(error**2)) <= 1e-2 * expected[f"{index}.o_raw"].std()
        middle = (expected[f"{index}.middle"] / factor).astype(np.float32)
        sums = gated_network(model, layer, middle) * layer.down_scale
        np.testing.assert_allclose(
            sums, expected[f"{index}.down_raw"],
            atol=(2e-3 if late else 5e-4) * np.abs(expected[f"{index}.down_raw"]).max())
        factor *= float(weights.layers[index].scalar[0])


def test_outliers_of_the_gated_product_leave_the_other_channels_their_bits(seed, rng):
    weights, tokens = weights_of(ODD, seed), text(rng)
    large = weights.layers[1].up.copy()
    large[5] *= 500
    small = weights.layers[1].down.copy()
    small[:, 5] /= 20
    layers = (weights.layers[0], replace(weights.layers[1], up=large, down=small),
              *weights.layers[2:])
    changed = replace(weights, layers=layers)
    model = quantise(changed, [tokens])
    plain, layer = quantise(weights, [tokens]).layers[1], model.layers[1]
    expected = taps(changed, tokens)
    product = expected["1.ffn_product"]
    assert np.abs(product[:, 5]).max() > 20 * np.median(np.abs(product).max(axis=0))
    # Units of the others are an eighth of what the outlier asks for, its own is not.
    others = [channel for channel in range(ODD.ffn) if channel != 5]
    unit = plain.up_gain[others] / layer.up_gain[others]
    np.testing.assert_allclose(unit, unit[0], rtol=1e-6)
    largest = round_up(np.abs(product).max())
    assert layer.up_gain[5] / plain.up_gain[5] == pytest.approx(500 / (unit[0] * 8), rel=1e-6)
    ours = largest * HEADROOM / LIMB_MAX / 8
    of_plain = round_up(np.abs(taps(weights, tokens)["1.ffn_product"]).max()) * HEADROOM / LIMB_MAX
    assert unit[0] == pytest.approx(ours / of_plain, rel=1e-6)
    middle = expected["1.middle"] / weights.layers[0].scalar[0]
    sums = gated_network(model, layer, middle.astype(np.float32)) * layer.down_scale
    error = sums - expected["1.down_raw"]
    assert np.sqrt(np.mean(error**2)) <= 2e-2 * expected["1.down_raw"].std()


def test_without_outliers_all_channels_of_a_matrix_have_one_unit():
    unit, factor = channel_units(np.array([1.0, 7.0, 8.0, 1.0, 1.0]))
    assert unit == 2 * 8 / LIMB_MAX and factor.tolist() == [1] * 5
    unit, factor = channel_units(np.array([1.0, 7.0, 16.0, 1.0, 1.0]))
    assert unit == 2 * 8 / LIMB_MAX and factor.tolist() == [1, 1, 2, 1, 1]
    unit, factor = channel_units(np.array([1.0, 1.0, 160.0, 40.0, 1.0]))
    assert unit == 2 * 20 / LIMB_MAX and factor.tolist() == [1, 1, 8, 2, 1]
    assert channel_units(np.zeros(3))[0] == 1


@pytest.mark.parametrize("name", MODELS)
def test_constants_are_float32_and_matrices_int8(name, seed, rng):
    config = MODELS[name]
    model = quantise(weights_of(config, seed), [tokens_of(config, rng, config.max_position)])
    for item in (model, *model.layers, *model.ropes):
        for field in fields(item):
            value = getattr(item, field.name)
            if isinstance(value, np.ndarray):
                assert value.dtype in (np.float32, np.int8), field.name
            elif field.name.endswith(("eps", "cap", "score_scale")) and value is not None:
                assert isinstance(value, np.float32), field.name
    layer, first = model.layers[0], config.layers[0]
    size = head_places(first.head_dim, 16)[0]
    assert (layer.head_dim, layer.head_size) == (size, first.head_dim)
    q, kv = first.heads * size, first.kv_heads * size
    shapes = {"q": (config.hidden, q), "k": (config.hidden, kv), "o": (q, config.hidden),
              "gate": (config.hidden, config.ffn), "up": (config.hidden, config.ffn),
              "down": (config.ffn, config.hidden)}
    for field, shape in shapes.items():
        assert getattr(layer, field).shape == shape
    assert model.embedding.shape == (config.vocab, config.hidden)


def test_the_calibration_text_itself_uses_half_of_16_bits(seed, rng):
    weights = weights_of(ODD, seed)
    tokens = text(rng)
    model = quantise(weights, [tokens])
    layer = model.layers[0]
    cos, sin = rotary(model.ropes[layer.rope], np.arange(41))
    x = taps(weights, tokens)["embedding"]
    largest = max(np.abs(attention_inputs(model, each, x, cos, sin)[0]).max()
                  for each in model.layers[:1])
    assert LIMB_MAX / HEADROOM / 8 < largest < 1.1 * LIMB_MAX / HEADROOM
    assert np.log2(float(model.score_scale)) % 1 == 0


@pytest.mark.parametrize("late", [False, True])
def test_eps_of_the_stream_follows_the_layer_scalars(late, seed, rng):
    config = replace(ODD, eps=0.5)
    weights = on_grid(weights_of(config, seed, (0.25, -3.0, 1.0)))
    model = quantise(weights, [text(rng)], late_norms=late)
    start = np.float32(40 * 0.5 / 16)
    for layer, factor in zip(model.layers, (1, 0.25, 0.75), strict=True):
        assert layer.attention_eps == layer.ffn_eps == np.float32(start / np.float32(factor**2))
        assert layer.o_eps == layer.down_eps == start
    assert model.head_eps == np.float32(start / np.float32(0.75**2))
    if not late:        # with late norms the eps of Q, K and V is only near
        tokens = text(rng)
        plain = PlainModel(model)
        error = plain.logits(plain.forward(tokens)) - fp32.forward(weights, tokens)
        assert np.sqrt(np.mean(error**2)) < 0.07 * fp32.forward(weights, tokens).std()


def test_layers_of_one_kind_share_rotary_tables(seed, rng):
    model = quantise(weights_of(ODD, seed), [tokens_of(ODD, rng, 40)])
    assert [layer.rope for layer in model.layers] == [0, 1, 0]
    assert len(model.ropes) == 2


def test_eps_of_a_head_is_dropped_only_where_it_does_not_count(seed, rng):
    weights = weights_of(ODD, seed)
    tokens = text(rng)
    small = replace(weights.layers[0], k=weights.layers[0].k * np.float32(2.0**-9))
    scaled = replace(weights, layers=(small, *weights.layers[1:]))
    model = quantise(scaled, [tokens])
    assert taps(scaled, tokens)["0.k_raw"].std() ** 2 < EPS_NEGLIGIBLE * ODD.eps
    assert model.layers[0].q_eps == 0 and model.layers[0].v_eps == 0
    assert model.layers[0].k_eps == np.float32(12 * ODD.eps / 16)
    # V of layer 1 is made from its K: one sum of squares serves both
    assert [getattr(model.layers[1], name) for name in ("v", "v_scale", "v_eps")] == [None] * 3
    layer = model.layers[0]
    cos, sin = rotary(model.ropes[0], np.arange(41))
    _, k, _ = attention_inputs(model, layer, taps(scaled, tokens)["embedding"], cos, sin)
    without = replace(layer, k_eps=np.float32(0))
    _, k_without, _ = attention_inputs(model, without, taps(scaled, tokens)["embedding"], cos, sin)
    assert np.abs(k).sum() < np.abs(k_without).sum()


def test_late_norms_use_a_middle_eps(seed, rng):
    weights = weights_of(ODD, seed, (0.5, 1.0, 1.0))
    tokens = text(rng)
    layers = [replace(layer, k=layer.k * np.float32(2.0**-9)) for layer in weights.layers]
    weights = replace(weights, layers=tuple(layers))
    early, late = (quantise(weights, [tokens], late_norms=late) for late in (False, True))
    expected = taps(weights, tokens)
    for index, stream in ((0, "embedding"), (2, "1.out")):
        x = expected[stream] / np.prod([float(w.scalar[0]) for w in layers[:index]])
        layer = late.layers[index]
        cos, sin = rotary(late.ropes[layer.rope], np.arange(41))
        k = attention_inputs(late, layer, x.astype(np.float32), cos, sin)[1]
        k_early = attention_inputs(
            early, early.layers[index], x.astype(np.float32), cos, sin)[1]
        assert layer.k_eps > 0
        # near, as the root mean squares of the positions are near each other
        assert np.abs(k - k_early).mean() < 0.03 * np.abs(k_early).mean()


def test_a_stream_with_too_wide_a_range_cannot_have_late_norms(seed, rng):
    weights = weights_of(ODD, seed)
    embedding = weights.embedding.copy()
    embedding[7] *= np.float32(1e-4)
    weights = replace(weights, embedding=embedding)
    tokens = [1, 2, 7, 3]
    assert not quantise(weights, [tokens], late_norms=None).late_norms
    assert quantise(weights_of(ODD, seed), [tokens], late_norms=None).late_norms
    with pytest.raises(ModelError, match="layer 0: the residual stream has too wide a range for"):
        quantise(weights, [tokens], late_norms=True)


def test_gelu_constants():
    x = np.linspace(-6, 6, 1001)
    t = GELU_LAMBDA * x
    ours = t / (1 + np.exp2(t * (t * t + float(GELU_BETA)))) / GELU_LAMBDA
    expected = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(ours, expected, atol=1e-6)


def test_silu_constant():
    x = np.linspace(-20, 20, 1001)
    t = SILU_LAMBDA * x
    np.testing.assert_allclose(t / (1 + np.exp2(t)) / SILU_LAMBDA, x / (1 + np.exp(-x)), atol=1e-12)


def test_scales_do_not_hang_on_the_last_bits_of_the_calibration_run(seed, rng):
    weights = weights_of(ODD, seed)
    tokens = text(rng)
    nudged = replace(weights, embedding=weights.embedding * np.float32(1 + 2.0**-22))
    one, other = (quantise(w, [tokens]).layers[0] for w in (weights, nudged))
    for name in ("attention_gain", "q_gain", "v_gain", "attended_gain"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize(("change", "lanes", "message"), [
    (lambda w: w, 12, "lanes must be a power of two, not 12"),
    (lambda w: w, 0, "lanes must be a power of two, not 0"),
    (lambda w: with_layer(w, scalar=np.zeros(1, np.float32)), 16,
     "layer 1: the layer scalar must not be 0"),
    (lambda w: with_layer(w, q_norm=w.layers[1].q_norm * 100), 16,
     r"layer 1: the largest attention score of a position is 2\*\*\d+ on the calibration text"),
    (lambda w: with_layer(w, down=w.layers[1].down * np.float32(1e-38)), 16,
     "a scale of the model does not fit float32"),
])
def test_models_that_cannot_be_quantised_are_refused(change, lanes, message, seed, rng):
    with pytest.raises(ModelError, match=message):
        quantise(change(weights_of(ODD, seed)), [tokens_of(ODD, rng, 41)], lanes)


def test_a_window_that_is_no_power_of_two_is_refused(seed):
    config = replace(ODD, layers=(ODD.layers[0], sliding(window=12)))
    with pytest.raises(ModelError, match="layer 1: a sliding window must be a power of two"):
        quantise(weights_of(config, seed), [[1, 2, 3]])


def with_layer(weights, **changes):
    layers = list(weights.layers)
    layers[1] = replace(layers[1], **changes)
    return replace(weights, layers=tuple(layers))
