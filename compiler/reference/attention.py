"""Attention over int8 keys and values, and rotary positions."""

import numpy as np

from compiler.quantise.graph import LIMB_MAX, ROPE_LOW, SCORE_CAP, SCORE_HIDDEN
from compiler.reference.arithmetic import folded, ordered_sum, to_activation, to_float
from compiler.reference.special import exp2, recip

#: Queries of a sequence that are computed at a time, so that memory grows with its length alone.
BLOCK = 256


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


def visible_weights(sums, limit, score_scale):
    """Unnormalised softmax of exact products of Q and K, float32, [..., slots].

    Parameters
    ----------
    sums : np.ndarray, whole numbers, [..., slots]
    limit : np.ndarray, float32, [..., slots]
    score_scale : np.float32
    """
    return exp2(np.minimum(to_float(sums) * score_scale, limit))


def normalised(e, lanes):
    """16-bit weights, whole numbers 0 .. LIMB_MAX in units of 1 / LIMB_MAX, [..., slots], and the
    sum that they are divided by, [..., 1]."""
    total = ordered_sum(e, lanes)
    return to_activation(e * (recip(total) * np.float32(LIMB_MAX))), total


def merged(parts, totals):
    """Attention over all shards from that over each: their mean, weighted by the sums of weights.

    Parameters
    ----------
    parts : list of np.ndarray, float32, [..., head_dim]
    totals : list of np.ndarray, float32, [..., 1]
    """
    if len(parts) == 1:
        return parts[0]
    inverse = recip(folded(totals))
    return folded([part * (total * inverse)
                   for part, total in zip(parts, totals, strict=True)])


def attend_slots(layer, q, keys, values, limit, score_scale, lanes, shards=1):
    """One query position against the slots of a KV cache.

    Parameters
    ----------
    layer : compiler.quantise.graph.QuantisedLayer
    q : np.ndarray, whole numbers, [heads, head_dim]
    keys, values : np.ndarray, int8, [slots, kv_heads, head_dim]
    limit : np.ndarray, float32, [slots]
    score_scale, lanes
        Of the model.
    shards : int
        Slot s is in shard s mod ``shards``; each is summed up by itself.

    Returns
    -------
    np.ndarray, float32, [heads * head_dim]
        Sums over probabilities and V.
    """
    q = q.reshape(layer.kv_heads, -1, 1, layer.head_dim)
    return _attend(q, keys, values, limit, score_scale, lanes, shards).reshape(-1)


def _attend(q, keys, values, limit, score_scale, lanes, shards):
    """Queries [kv_heads, group, n, head_dim] against slots, limits [n, slots] or [slots]; float32
    like the queries."""
    keys, values = keys.astype(np.float64), values.astype(np.float64)
    e = visible_weights(q @ keys.transpose(1, 2, 0)[:, None], limit, score_scale)
    parts, totals = [], []
    for shard in range(min(shards, e.shape[-1])):
        p, total = normalised(e[..., shard::shards], lanes)
        parts.append(to_float(p @ values[shard::shards].transpose(1, 0, 2)[:, None]))
        totals.append(total)
    return merged(parts, totals)


def attend_sequence(layer, q, k, v, score_scale, lanes, shards=1):
    """All positions of a sequence, each against the slots that its step would see.

    Parameters
    ----------
    layer, score_scale, lanes, shards
        As in :func:`attend_slots`.
    q, k, v : np.ndarray, whole numbers, [n, heads or kv_heads, head_dim]
        Positions 0 .. n - 1.

    Returns
    -------
    np.ndarray, float32, [n, heads * head_dim]
    """
    count = q.shape[0]
    q = q.reshape(count, layer.kv_heads, -1, layer.head_dim).transpose(1, 2, 0, 3)
    if layer.window is None:
        found = []
        for first in range(0, count, BLOCK):
            here = np.arange(first, min(first + BLOCK, count))
            slots = slice(here[-1] + 1)
            limit = limits(np.arange(slots.stop) <= here[:, None])
            found.append(_attend(q[:, :, here], k[slots], v[slots], limit, score_scale, lanes,
                                 shards))
        attended = np.concatenate(found, axis=2)
    else:
        attended = _attend_ring(layer.window, q, k, v, score_scale, lanes, shards)
    return attended.transpose(2, 0, 1, 3).reshape(count, -1)


def _attend_ring(window, q, k, v, score_scale, lanes, shards):
    """The same against a ring of slots, in which positions replace each other: queries and result
    [kv_heads, group, n, head_dim]."""
    count = q.shape[2]
    held = slot_positions(window, count)
    limit = limits(held >= 0)
    pairs = q @ k.transpose(1, 2, 0)[:, None]                   # [kv_heads, group, n, n]
    index = np.broadcast_to(held, pairs.shape[:-1] + held.shape[-1:])
    e = visible_weights(np.take_along_axis(pairs, index, axis=-1), limit, score_scale)
    parts, totals = [], []
    for shard in range(min(shards, e.shape[-1])):
        p, total = normalised(e[..., shard::shards], lanes)
        spread = np.zeros(pairs.shape[:-1] + (count + 1,))      # the last column takes the hidden
        np.put_along_axis(spread, index[..., shard::shards], p, axis=-1)
        # [kv_heads, group, n, head_dim]
        parts.append(to_float(spread[..., :count] @ v.transpose(1, 0, 2)[:, None]))
        totals.append(total)
    return merged(parts, totals)
