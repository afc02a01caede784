import warnings

import numpy as np
import pytest

from compiler.quantise.graph import LIMB_MAX, SCORE_CAP, SCORE_HIDDEN
from compiler.quantise.rope import rope_tables
from compiler.reference.attention import (
    limits,
    normalised,
    rotary,
    rotate,
    slot_positions,
    visible_weights,
)
from tests.compiler.small_models import full, sliding

F = np.float32


def weights(sums, visible=True, scale=1.0, lanes=16):
    sums = np.asarray(sums, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        limit = limits(np.broadcast_to(visible, sums.shape))
        return normalised(visible_weights(sums, limit, F(scale)), lanes)[0]


@pytest.mark.parametrize("layer", [sliding(), full(), sliding(head_dim=16, rope_pairs=8)])
def test_two_level_angles_are_the_angles(layer):
    positions = np.arange(250)
    cos, sin = rotary(rope_tables(layer, 250, lanes=1), positions)
    half = layer.head_dim // 2
    pairs = np.arange(half)
    frequency = np.where(
        pairs < layer.rope_pairs, layer.rope_theta ** (-2 * pairs / layer.head_dim), 0)
    angle = np.outer(positions, frequency)
    np.testing.assert_allclose(cos, np.tile(np.cos(angle), 2), atol=2e-7)
    np.testing.assert_allclose(
        sin, np.concatenate([-np.sin(angle), np.sin(angle)], axis=1), atol=2e-7)


def test_pairs_that_do_not_rotate_stay_as_they_are(rng):
    layer = full()
    x = rng.normal(0, 1, (30, 3, layer.head_dim)).astype(F)
    turned = rotate(x, *rotary(rope_tables(layer, 30, lanes=1), np.arange(30)))
    half = layer.head_dim // 2
    still = np.arange(layer.head_dim) % half >= layer.rope_pairs
    np.testing.assert_array_equal(turned[..., still], x[..., still])
    assert np.all(turned[5:, :, ~still] != x[5:, :, ~still])
    np.testing.assert_array_equal(turned[0], x[0])


def test_rotation_depends_on_the_distance_alone(rng):
    layer = sliding()
    q, k = rng.normal(0, 1, (2, 1, layer.head_dim)).astype(F)
    cos, sin = rotary(rope_tables(layer, 128, lanes=1), np.arange(128))

    def score(i, j):
        a, b = (rotate(x[None], cos[p:p + 1], sin[p:p + 1]) for x, p in ((q, i), (k, j)))
        return float(np.sum(a.astype(np.float64) * b))

    assert score(20, 3) == pytest.approx(score(117, 100), abs=1e-5)
    assert score(20, 3) != pytest.approx(score(20, 4), abs=1e-3)


@pytest.mark.parametrize(("window", "count"), [(None, 7), (4, 11), (8, 5), (1, 4)])
def test_slots_hold_the_latest_positions(window, count):
    slots = {}
    held = slot_positions(window, count)
    for position in range(count):
        slots[position if window is None else position % window] = position
        expected = [slots.get(slot, -1) for slot in range(held.shape[1])]
        assert held[position].tolist() == expected
        assert window is None or sorted(slots.values()) == list(
            range(max(0, position + 1 - window), position + 1))


def test_weights_are_the_softmax(rng):
    sums = rng.integers(-30000, 30000, (4, 100))
    scale = 2.0**-12
    visible = rng.random((4, 100)) < 0.7
    e = np.where(visible, np.exp2(sums * scale), 0)
    expected = e / e.sum(axis=-1, keepdims=True) * LIMB_MAX
    p = weights(sums, visible, scale)
    assert np.abs(p - expected).max() < 0.51
    np.testing.assert_array_equal(p[~visible], 0)


def test_equal_scores_share_equally():
    np.testing.assert_array_equal(weights(np.full(64, 12345)), np.rint(LIMB_MAX / 64))


def test_a_lone_slot_gets_everything():
    visible = np.arange(40) == 17
    p = weights(np.arange(40), visible)
    np.testing.assert_array_equal(p, np.where(visible, LIMB_MAX, 0))


@pytest.mark.parametrize("score", [-105, -60, 0, 60, 99, 100])
def test_the_level_of_the_scores_does_not_matter(score):
    expected = weights([0, -1, -2, -5])
    np.testing.assert_allclose(weights([score, score - 1, score - 2, score - 5]), expected, atol=1)


def test_scores_are_cut_at_the_cap():
    p = weights([1e9, 150, float(SCORE_CAP), 99, -1e12])
    np.testing.assert_allclose(p, np.array([2, 2, 2, 1, 0]) / 7 * LIMB_MAX, atol=1)


def test_a_full_row_at_the_cap_does_not_overflow():
    # 2**18 slots: the sum is 2**118
    p = weights(np.full(1 << 18, 1e6))
    np.testing.assert_array_equal(p, 0)         # 32639 / 2**18 rounds to 0
    assert set(weights(np.full(1 << 12, 1e6))) == {np.rint(LIMB_MAX / 4096)}


def test_scores_below_every_exponent_give_zero_not_nan():
    np.testing.assert_array_equal(weights([-500, -1000]), 0)


def test_a_hidden_slot_never_counts():
    assert np.exp2(float(SCORE_HIDDEN)) < 2.0**-149
    visible = np.array([True, False, True])
    np.testing.assert_array_equal(weights([0, 1e12, 0], visible), np.rint([LIMB_MAX / 2, 0,
                                                                           LIMB_MAX / 2]))
