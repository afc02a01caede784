"""Attention over int8 keys and values, and rotary positions."""

import numpy as np

from compiler.quantise.graph import LIMB_MAX, ROPE_LOW, SCORE_CAP, SCORE_HIDDEN
from compiler.reference.arithmetic import ordered_sum, to_activation, to_float
from compiler.reference.special import exp2, recip


def rotary(rope, positions):
    """Cosines and signed sines of positions, by adding the angles of the two levels.

    Parameters
    ----------
    rope : compiler.quantise.graph.Rope
    positions : np.ndarray of int, [n]

    Returns
    -------
    cos, sin : np.ndarray, float32, [n, head_dim]
    """
    high, low = np.divmod(positions, ROPE_LOW)
    cos_h, sin_h, cos_l, sin_l = (
        rope.cos_high[high], rope.sin_high[high], rope.cos_low[low], rope.sin_low[low])
    return cos_h * cos_l - sin_h * sin_l, sin_h * cos_l + cos_h * sin_l


def rotate(x, cos, sin):
    """Turn the pairs (i, i + half) of heads [..., n, heads, head_dim]."""
    swapped = np.roll(x, x.shape[-1] // 2, axis=-1)
    return x * cos[:, None, :] + swapped * sin[:, None, :]


def slot_positions(window, count):
    """Which position is in each slot of the KV cache after each step.

    Parameters
    ----------
    window : int or None
        Slots of a ring: position p is in slot p mod window. None: slot p.
    count : int
        Steps; step p has just written position p.

    Returns
    -------
    np.ndarray, int, [steps, slots]
        -1 where nothing has been written. Slots that are never written are left out.
    """
    slots = count if window is None else min(window, count)
    step = np.arange(count)[:, None]
    held = step - (step - np.arange(slots)) % (slots if window is None else window)
    return np.maximum(held, -1)


def limits(visible):
    """What scores are cut at, float32: SCORE_CAP where a slot is visible, else SCORE_HIDDEN."""
    return np.where(visible, SCORE_CAP, SCORE_HIDDEN)


def attention_weights(sums, limit, score_scale, lanes):
    """16-bit softmax of exact products of Q and K.

    Parameters
    ----------
    sums : np.ndarray, whole numbers, [..., slots]
    limit : np.ndarray, float32, [..., slots]
    score_scale : np.float32
    lanes : int

    Returns
    -------
    np.ndarray, whole numbers 0 .. LIMB_MAX, [..., slots]
        In units of 1 / LIMB_MAX.
    """
    e = exp2(np.minimum(to_float(sums) * score_scale, limit))
    inverse = recip(ordered_sum(e, lanes)) * np.float32(LIMB_MAX)
    return to_activation(e * inverse)


def attend_slots(layer, q, keys, values, limit, score_scale, lanes):
    """One query position against the slots of a KV cache.

    Parameters
    ----------
    layer : compiler.quantise.graph.QuantisedLayer
    q : np.ndarray, whole numbers, [heads, head_dim]
    keys, values : np.ndarray, int8, [slots, kv_heads, head_dim]
    limit : np.ndarray, float32, [slots]
    score_scale, lanes
        Of the model.

    Returns
    -------
    np.ndarray, whole numbers, [heads * head_dim]
        Exact sums over probabilities and V.
    """
    q = q.reshape(layer.kv_heads, -1, layer.head_dim)
    sums = q @ keys.transpose(1, 2, 0).astype(np.float64)
    p = attention_weights(sums, limit, score_scale, lanes)
    return (p @ values.transpose(1, 0, 2).astype(np.float64)).reshape(-1)


def attend_sequence(layer, q, k, v, score_scale, lanes):
    """All positions of a sequence at once, each against the slots that its step would see.

    Parameters
    ----------
    layer, score_scale, lanes
        As in :func:`attend_slots`.
    q, k, v : np.ndarray, whole numbers, [n, heads or kv_heads, head_dim]
        Positions 0 .. n - 1.

    Returns
    -------
    np.ndarray, whole numbers, [n, heads * head_dim]
    """
    count = q.shape[0]
    held = slot_positions(layer.window, count)
    limit = limits(held >= 0)
    q = q.reshape(count, layer.kv_heads, -1, layer.head_dim).transpose(1, 2, 0, 3)
    pairs = q @ k.transpose(1, 2, 0)[:, None]                   # [kv_heads, group, n, n]
    index = np.broadcast_to(held, pairs.shape[:-1] + held.shape[-1:])
    sums = np.take_along_axis(pairs, index, axis=-1)
    p = attention_weights(sums, limit, score_scale, lanes)
    spread = np.zeros(pairs.shape[:-1] + (count + 1,))          # the last column takes the hidden
    np.put_along_axis(spread, index, p, axis=-1)
    out = spread[..., :count] @ v.transpose(1, 0, 2)[:, None]   # [kv_heads, group, n, head_dim]
    return out.transpose(2, 0, 1, 3).reshape(count, -1)
