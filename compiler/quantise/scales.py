"""Steps, gains and epsilons: calibrated ranges and norm weights to float32 constants.

A *step* or *unit* is the value of one unit of an integer. All is computed in float64 and rounded to
float32 once, by :func:`to_float32`.
"""

from math import sqrt

import numpy as np

from compiler.model.config import ModelError
from compiler.quantise.graph import LIMB_MAX
from compiler.quantise.matrix import INT8_MAX

#: Room that 16-bit activations keep above the calibrated range.
HEADROOM = 2.0
#: The same where the residual stream itself is rounded (late norms), and the least root mean
#: square, in 16-bit units, that a position of the calibration text must then have.
STREAM_HEADROOM, STREAM_LEAST = 8.0, 16.0
#: The common unit of the channels of the gated product covers OUTLIER times the middle range of
#: all, and so much that no channel needs one SPREAD times as large.
OUTLIER, SPREAD = 8.0, 8.0


class StreamRangeError(ModelError):
    """A residual stream that late norms cannot round: its positions differ too much in size."""


def to_float32(x):
    """Round constants to float32, refusing those that leave its normal range."""
    with np.errstate(over="ignore"):
        result = np.asarray(x, np.float64).astype(np.float32)
    size = np.abs(result[result != 0])
    if not np.isfinite(result).all() or np.any(size < np.finfo(np.float32).tiny):
        raise ModelError("a scale of the model does not fit float32: its weights, or eps or the "
                         "softcap of config.json, are out of any usual range")
    return result


def activation_unit(largest, headroom=HEADROOM):
    """Unit of a 16-bit activation of the given range (1 for an activation that is always 0)."""
    largest = float(np.max(largest))
    return headroom * largest / LIMB_MAX if largest > 0 else 1.0


def channel_units(largest):
    """Units of the 16-bit inputs of a matrix that are not normalised.

    A few channels of Llama's gated product are hundreds of times as large as all others: in one
    unit for all, nothing would be left of these. Factors on the outliers' units are factors on
    the rows of the matrix, which share their int8 scales with the rows of the others: hence
    `SPREAD`.

    Parameters
    ----------
    largest : np.ndarray, [channels]
        Range of each.

    Returns
    -------
    unit : float
    factor : np.ndarray, [channels]
        Of each channel's unit; 1 but for outliers.
    """
    common = max(OUTLIER * np.median(largest), np.max(largest) / SPREAD)
    common = min(common, np.max(largest))
    factor = np.maximum(largest / common, 1) if common > 0 else np.ones(len(largest))
    return activation_unit(common), factor


def int8_step(largest):
    """Step of each int8 value of the given range (1 for one that is always 0)."""
    return np.where(largest > 0, largest, INT8_MAX) / INT8_MAX


def input_eps(weights, factor, lanes):
    """Start of the sum of squares of the residual stream over `factor`."""
    return to_float32(weights.config.hidden * weights.config.eps / factor**2 / lanes)[()]


def normed_gain(norm, largest, factor):
    """Gain in front of a matrix and unit of its 16-bit inputs; `largest` is their range."""
    unit = activation_unit(largest)
    gain = norm.astype(np.float64) * sqrt(norm.size) * np.sign(factor) / unit
    return to_float32(gain), unit


def stream_gain(norm, largest, least, factor):
    """The same without the norm's factor, for late norms.

    Parameters
    ----------
    norm : np.ndarray, [hidden]
    largest : np.ndarray, [hidden]
        Range of the residual stream.
    least : float
        Smallest mean square of the residual stream at any position.
    factor : float
        The stream is kept divided by it.

    Returns
    -------
    gain : np.ndarray, float32, [hidden]
    unit : float
        Of the inputs times rsqrt(sum).

    Raises
    ------
    StreamRangeError
        Some position of the calibration text is too small for the range of all.
    """
    norm = norm.astype(np.float64)
    unit = activation_unit(largest / abs(factor) * np.abs(norm), STREAM_HEADROOM)
    gain = norm * np.sign(factor) / unit
    root = sqrt(least * np.mean(np.square(gain))) / abs(factor)
    if root < STREAM_LEAST:
        raise StreamRangeError(
            "the residual stream has too wide a range for late norms (root mean square "
            f"{root:.1f} of {LIMB_MAX}, must be at least {STREAM_LEAST:.0f})")
    return to_float32(gain), unit * sqrt(norm.size)
