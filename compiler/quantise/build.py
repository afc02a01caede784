"""Weights and a calibration text to the quantised network.

The residual stream of layer i is
kept divided by the product of the scalars of the layers before it, so the scalars cost nothing:
norms do not see a factor on their input (their eps is divided by its square).
"""

from math import floor, log2

import numpy as np

from compiler.model.config import ModelError
from compiler.model.weights import Weights
from compiler.quantise.calibrate import calibrate
from compiler.quantise.graph import LIMB_MAX, SCORE_CAP, QuantisedModel
from compiler.quantise.layer import LayerBuilder, query_factor
from compiler.quantise.matrix import quantise_matrix
from compiler.quantise.rope import rope_tables
from compiler.quantise.scales import (
    HEADROOM,
    StreamRangeError,
    input_eps,
    normed_gain,
    to_float32,
)


def quantise(weights: Weights, sequences, lanes=16, late_norms=False):
    """Quantise a model.

    Parameters
    ----------
    weights : Weights
    sequences : iterable of sequences of int
        Calibration tokens, each sequence from position 0 (of a model directory:
        :func:`compiler.quantise.calibrate.calibration_sequences`).
    lanes : int
        Lanes of the machine, a power of two: float32 sums are ordered by it.
    late_norms : bool or None
        See :class:`QuantisedModel`; None: where the range of the residual stream allows.

    Returns
    -------
    QuantisedModel

    Raises
    ------
    ModelError
        A window that is no power of two, lanes that are none, or activations out of range.
    """
    config = weights.config
    if lanes < 1 or lanes & (lanes - 1):
        raise ModelError(f"lanes must be a power of two, not {lanes}")
    for index, layer in enumerate(config.layers):
        if layer.window is not None and layer.window & (layer.window - 1):
            raise ModelError(
                f"layer {index}: a sliding window must be a power of two, not {layer.window}"
            )
    ranges = calibrate(weights, sequences)
    _check_scores(config, ranges)
    if late_norms is None:
        try:
            return _quantised(weights, ranges, lanes, late_norms=True)
        except StreamRangeError:
            return _quantised(weights, ranges, lanes, late_norms=False)
    return _quantised(weights, ranges, lanes, late_norms)


def _quantised(weights, ranges, lanes, late_norms):
    config = weights.config
    keys = [(c.head_dim, c.rope_theta, c.rope_pairs) for c in config.layers]
    kinds = sorted(set(keys), key=keys.index)
    score_scale = 2.0 ** -floor(log2(LIMB_MAX / HEADROOM / _largest_query(config, ranges)))
    layers, factor = [], 1.0
    for index, key in enumerate(keys):
        scalar = weights.layers[index].scalar
        if scalar is not None and scalar[0] == 0:
            raise ModelError(f"layer {index}: the layer scalar must not be 0")
        builder = LayerBuilder(weights, index, ranges, lanes, late_norms, factor)
        layers.append(builder.build(kinds.index(key), score_scale))
        factor *= 1.0 if scalar is None else float(scalar[0])
    embedding, row_scale = quantise_matrix(weights.embedding)
    untied, head_scale = None, row_scale
    if weights.untied is not None:
        untied, head_scale = quantise_matrix(weights.untied)
    gain, unit = normed_gain(weights.norm, ranges["head_in"], factor)
    softcap = config.softcap
    to_exponent = 1.0 if softcap is None else 2 / np.log(2) / softcap
    return QuantisedModel(
        lanes=lanes,
        late_norms=late_norms,
        activation=config.activation,
        vocab=config.vocab,
        hidden=config.hidden,
        ffn=config.ffn,
        max_position=config.max_position,
        layers=tuple(layers),
        ropes=tuple(rope_tables(config.layers[keys.index(key)], config.max_position, lanes)
                    for key in kinds),
        embedding=embedding.T.copy(),
        untied=None if untied is None else untied.T.copy(),
        embedding_scale=to_float32(row_scale * config.embed_scale),
        head_gain=gain,
        head_eps=input_eps(weights, factor, lanes),
        score_scale=np.float32(score_scale),
        logit_gain=to_float32(head_scale * unit * to_exponent),
        softcap=None if softcap is None else np.float32(softcap),
    )


def _check_scores(config, ranges):
    """The largest score that a query sees must fit without a maximum being subtracted from it."""
    for index in range(len(config.layers)):
        for side in ("least", "most"):
            largest = float(ranges[f"{index}.largest_scores.{side}"]) / np.log(2)
            if not abs(largest) <= SCORE_CAP:
                raise ModelError(
                    f"layer {index}: the largest attention score of a position is 2**{largest:.0f} "
                    f"on the calibration text; only 2**-{SCORE_CAP:.0f} to 2**{SCORE_CAP:.0f} can "
                    "be computed")


def _largest_query(config, ranges):
    """Range of Q in those units, over all layers."""
    return max(
        float(np.max(ranges[f"{index}.q"] * query_factor(layer, ranges, index)))
        for index, layer in enumerate(config.layers)
    ) or 1.0
