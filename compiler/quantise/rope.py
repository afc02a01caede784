"""Two-level rotary tables."""

import numpy as np

from compiler.model.config import LayerConfig
from compiler.quantise.graph import ROPE_LOW, Rope
from compiler.quantise.heads import head_places


def rope_tables(layer: LayerConfig, positions, lanes):
    """Tables for positions 0 .. positions - 1 of one kind of layer (see :class:`Rope`)."""
    half = head_places(layer.head_dim, lanes)[0] // 2
    frequency = np.zeros(half)
    pairs = np.arange(layer.rope_pairs)
    frequency[: layer.rope_pairs] = layer.rope_theta ** (-2 * pairs / layer.head_dim)
    sign = np.repeat([-1.0, 1.0], half)

    def table(rows):
        angle = np.tile(np.outer(rows, frequency), 2)
        return np.cos(angle).astype(np.float32), (sign * np.sin(angle)).astype(np.float32)

    cos_low, sin_low = table(np.arange(ROPE_LOW))
    cos_high, sin_high = table(np.arange(-(-positions // ROPE_LOW)) * ROPE_LOW)
    return Rope(cos_low=cos_low, sin_low=sin_low, cos_high=cos_high, sin_high=sin_high)
