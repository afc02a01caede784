"""Rounding and ordered sums: what surrounds the network's float32 additions and products.

float32 addition, subtraction and multiplication are NumPy's, which are IEEE 754 with rounding to
nearest even and gradual underflow, like the machine's. What NumPy does not define is here: the
order of sums, and conversions with their saturation.
"""

import numpy as np

from compiler.quantise.graph import ENTRIES, LIMB_MAX


def to_float(sums):
    """Exact integer sums to float32, rounded once to nearest even.

    Parameters
    ----------
    sums : np.ndarray
        Whole numbers below 2**53 in magnitude, int64 or float64 (which holds them exactly).
    """
    return sums.astype(np.float64).astype(np.float32)


def to_integer(x, low, high):
    """Float32 to the nearest whole number, ties to even, within low .. high; NaN gives 0.

    Returns
    -------
    np.ndarray, float64
        Whole numbers, ready for exact products.
    """
    rounded = np.clip(np.rint(x), np.float32(low), np.float32(high))
    return np.where(np.isnan(x), 0, rounded).astype(np.float64)


def to_activation(x):
    """Float32 to the 16-bit integers that two int8 limbs hold; as :func:`to_integer`."""
    return to_integer(x, -LIMB_MAX, LIMB_MAX)


def to_int8(x):
    """Float32 to -128 .. 127; as :func:`to_integer`."""
    return to_integer(x, -128, 127)


def folded(values):
    """Element-wise sum of several arrays in the order of the machine: value t is added to
    accumulator t mod 4, in order of t; then (a0 + a1) + (a2 + a3)."""
    entries = [np.float32(0)] * ENTRIES
    for number, value in enumerate(values):
        entries[number % ENTRIES] = entries[number % ENTRIES] + value
    return (entries[0] + entries[1]) + (entries[2] + entries[3])


def ordered_sum(x, lanes, start=None):
    """Sum over the last axis in the order of the machine.

    Element n stands in lane n mod `lanes` of chunk n // `lanes` (missing ones are +0). Chunk c is
    added to accumulator c mod 4, in order of c; then (a0 + a1) + (a2 + a3); then neighbouring
    lanes in pairs, pairs of pairs, and so on.

    Parameters
    ----------
    x : np.ndarray, float32, [..., n]
        Not below zero (+0 as the neutral element is exact then).
    lanes : int
        A power of two.
    start : np.float32 or None
        Added first, to chunk 0, in every lane.

    Returns
    -------
    np.ndarray, float32, [..., 1]
    """
    group = ENTRIES * lanes
    rounds = -(-x.shape[-1] // group)
    padding = [(0, 0)] * (x.ndim - 1) + [(0, rounds * group - x.shape[-1])]
    chunks = np.pad(x, padding).reshape(*x.shape[:-1], rounds, ENTRIES, lanes)
    entries = chunks[..., 0, :, :].copy()
    if start is not None:
        entries[..., 0, :] += start
    for index in range(1, rounds):
        entries += chunks[..., index, :, :]
    total = (entries[..., 0, :] + entries[..., 1, :]) + (entries[..., 2, :] + entries[..., 3, :])
    while total.shape[-1] > 1:
        total = total[..., 0::2] + total[..., 1::2]
    return total
