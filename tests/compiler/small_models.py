"""Small random models of awkward shapes."""

from dataclasses import replace

import numpy as np

from compiler.model.config import LayerConfig, ModelConfig
from compiler.model.weights import random_weights


def sliding(**changes):
    base = dict(heads=3, kv_heads=3, head_dim=12, window=8, k_eq_v=False, rope_theta=1e4,
                rope_pairs=6)
    return LayerConfig(**base | changes)


def full(**changes):
    base = dict(heads=3, kv_heads=1, head_dim=20, window=None, k_eq_v=True, rope_theta=1e6,
                rope_pairs=3)
    return LayerConfig(**base | changes)


def plain(**changes):
    base = dict(heads=4, kv_heads=2, head_dim=8, window=None, k_eq_v=False, rope_theta=1e4,
                rope_pairs=4, qk_norm=False, v_norm=False, scale=8**-0.5)
    return LayerConfig(**base | changes)


#: Two kinds of layers; no dimension is a multiple of 16 or of 4 vectors, 7 positions short of a
#: multiple of ROPE_LOW.
ODD = ModelConfig(vocab=51, hidden=40, ffn=52,
                  layers=(sliding(), full(), sliding(heads=6, kv_heads=2)), eps=1e-6,
                  softcap=30.0, max_position=41, bos=2)
#: One chunk or less of everything.
TINY = ModelConfig(vocab=5, hidden=6, ffn=3,
                   layers=(full(heads=1, head_dim=2, rope_pairs=1, k_eq_v=False),),
                   eps=1e-5, softcap=None, max_position=3)
#: Vectors of more than 4 chunks of 16, heads of two chunks and of one.
WIDE = ModelConfig(vocab=130, hidden=112, ffn=150,
                   layers=(sliding(heads=8, kv_heads=4, head_dim=16, window=16, rope_pairs=8),
                           full(heads=4, kv_heads=2, head_dim=32, rope_pairs=4)),
                   eps=1e-6, softcap=20.0, max_position=100, bos=1)

#: Nothing normalised but the inputs of the matrices; head not tied; a head of 8 and one of 48.
LLAMA = ModelConfig(vocab=37, hidden=24, ffn=44,
                    layers=(plain(), plain(heads=2, kv_heads=2, head_dim=48, rope_pairs=24)),
                    eps=1e-5, softcap=None, max_position=40, bos=1, activation="silu",
                    post_norms=False, layer_scalars=False, tied=False, scaled_embedding=False)
#: Some of the norms of Gemma 4.
SOME = replace(LLAMA, activation="gelu_tanh", tied=True, layers=(
    plain(qk_norm=True), plain(v_norm=True), plain(v_norm=True, k_eq_v=True, window=8)))

MODELS = {"odd": ODD, "tiny": TINY, "wide": WIDE, "llama": LLAMA, "some": SOME}


def weights_of(config, seed, scalars=None):
    """Random weights; the layer scalars given, or those drawn."""
    weights = random_weights(config, seed)
    if scalars is None:
        return weights
    return replace(weights, layers=tuple(
        replace(layer, scalar=np.array([scalar], np.float32))
        for layer, scalar in zip(weights.layers, scalars, strict=True)))


def tokens_of(config, rng, count):
    return rng.integers(0, config.vocab, count)
