"""Byte planes: four aligned streams carry one 32-bit value on every lane, the lowest byte first."""

import numpy as np

__all__ = ["from_planes", "to_planes"]


def from_planes(planes):
    """int32 array (lanes,) of the four vectors (bytes) of a quad."""
    values = bytearray(4 * len(planes[0]))
    values[0::4], values[1::4], values[2::4], values[3::4] = planes
    return np.frombuffer(values, "<i4")


def to_planes(values):
    """The four vectors (bytes) of a quad of 32-bit ``values``, an array (lanes,)."""
    flat = values.tobytes()
    return flat[0::4], flat[1::4], flat[2::4], flat[3::4]
