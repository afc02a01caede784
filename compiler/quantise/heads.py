"""How the elements of a head lie in vectors: whole vectors, halves where a rotation finds them.

A rotation joins element i with element i + head_dim / 2.  Where a head fits one vector, each half
lies in a half of the lanes; otherwise each fills whole vectors.  What is left over holds zeros.
"""

import numpy as np

__all__ = ["head_places", "spread_heads"]


def head_places(head_dim, lanes):
    """Where the elements of one head lie.

    Parameters
    ----------
    head_dim : int
        Even.
    lanes : int

    Returns
    -------
    size : int
        Elements with those left over: a multiple of ``lanes``.
    places : np.ndarray of int, [head_dim]
        Of each element, below ``size``; element i + head_dim / 2 lies size / 2 behind element i.
    """
    half = head_dim // 2
    room = lanes // 2 if head_dim <= lanes else -(-half // lanes) * lanes
    first = np.arange(half)
    return 2 * room, np.concatenate([first, first + room])


def spread_heads(values, head_dim, lanes, axis=-1):
    """Values of whole heads along ``axis`` to where their elements lie, zeros elsewhere."""
    size, places = head_places(head_dim, lanes)
    values = np.moveaxis(values, axis, -1)
    heads = values.reshape(*values.shape[:-1], -1, head_dim)
    result = np.zeros((*heads.shape[:-1], size), values.dtype)
    result[..., places] = heads
    return np.moveaxis(result.reshape(*values.shape[:-1], -1), -1, axis)
