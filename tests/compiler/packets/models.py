"""One small layer and inputs for it."""

import numpy as np

from compiler.model.config import LayerConfig, ModelConfig
from compiler.model.weights import random_weights
from compiler.quantise import quantise

#: Hidden size and gated network are no multiple of the lanes.
SMALL = ModelConfig(
    vocab=30, hidden=72, ffn=104, eps=1e-6, softcap=None, max_position=40,
    layers=(LayerConfig(heads=4, kv_heads=2, head_dim=16, window=None, k_eq_v=False,
                        rope_theta=1e4, rope_pairs=8),))


def small_layer(steps=2, seed=1):
    """`QuantisedModel` of one layer, and inputs (steps, hidden)."""
    rng = np.random.default_rng(seed)
    texts = [rng.integers(0, SMALL.vocab, SMALL.max_position) for _ in range(4)]
    model = quantise(random_weights(SMALL, seed), texts)
    return model, rng.standard_normal((steps, SMALL.hidden)).astype(np.float32)
