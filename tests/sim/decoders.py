"""Small models, and tiles to run them on, for tests of whole texts on the emulator."""

from dataclasses import replace

import numpy as np

from compiler.model.config import LayerConfig, ModelConfig
from compiler.model.weights import random_weights
from compiler.quantise import quantise
from hdl.arch.config import PortConfig, TileConfig

__all__ = ["LLAMA", "MIXED", "TILE", "WIDE", "small_model"]

TILE = TileConfig(lanes=8, icu_words=8192)
#: Of which there may be several.
WIDE = replace(TILE, accumulators=64, ports=(PortConfig(),) * 3)
_SLIDING = LayerConfig(heads=4, kv_heads=2, head_dim=8, window=8, k_eq_v=False, rope_theta=1e4,
                       rope_pairs=4)
#: Two layers with a window in a loop, and one without, with heads of two vectors, K and V alike.
MIXED = ModelConfig(
    vocab=45, hidden=20, ffn=33, eps=1e-6, softcap=30.0, max_position=40, bos=2,
    layers=(_SLIDING, _SLIDING, replace(_SLIDING, window=None, head_dim=16, kv_heads=1,
                                        k_eq_v=True)))
_PLAIN = replace(_SLIDING, qk_norm=False, v_norm=False, scale=8**-0.5)
#: Nothing is normalised but the inputs of the matrices.
LLAMA = replace(MIXED, layers=(_PLAIN, replace(_PLAIN, window=None)), activation="silu",
                softcap=None, post_norms=False, layer_scalars=False, tied=False,
                scaled_embedding=False)


def small_model(config, seed=1):
    """A quantised model of random weights."""
    rng = np.random.default_rng(1)
    texts = [rng.integers(0, config.vocab, config.max_position) for _ in range(2)]
    return quantise(random_weights(config, seed), texts, lanes=TILE.lanes, late_norms=True)
