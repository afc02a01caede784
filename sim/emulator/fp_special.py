"""exp2, reciprocal and reciprocal square root of the vector ALUs, bit for bit.

`hdl.arch.special` specifies them; arrays of any shape, float32 in and out.
"""

import numpy as np

from hdl.arch.special import Segment, coefficients

__all__ = ["exp2", "recip", "rsqrt"]

_C0, _C1, _C2 = np.array(coefficients(), np.int64).T.copy()
#: First row of the segment of each function; rsqrt adds 128 where the exponent field is even.
_EXP2, _RECIP, _RSQRT = (128 * int(segment) for segment in (
    Segment.EXP2, Segment.RECIP, Segment.RSQRT_EVEN))

_NAN = 0x7FC00000
_INFINITY = 0x7F800000
_SIGN = 1 << 31
_SMALLEST_NORMAL = 1 << 23

_G_MASK = (1 << 25) - 1
_D_MASK = (1 << 18) - 1
_D_MIDDLE = 1 << 17


def exp2(a):
    """``2**a``: 1.0 for zeros and subnormals, 0.0 and infinity beyond the range."""
    bits = _bits(a)
    exponent = bits >> 23 & 0xFF
    beyond = exponent >= 134
    any_beyond = beyond.any()
    if any_beyond:
        exponent = np.minimum(exponent, 133)
    # A of the specification has 33 bits: a shift of 63 leaves none, as any above 33 does
    scaled = ((bits & 0x7FFFFF) | _SMALLEST_NORMAL) << 9
    magnitude = (scaled >> np.minimum(133 - exponent, 63)) + 1 >> 1
    negative = bits >> 31
    x = (magnitude ^ -negative) + negative
    result = _flushed(((x >> 25) + 126 << 23) + _polynomial(_EXP2, x & _G_MASK))
    if any_beyond:
        result = np.where(beyond, np.where(negative, 0, _INFINITY), result)
        result = np.where(bits & ~_SIGN > _INFINITY, _NAN, result)
    return _floats(result)


def recip(a):
    """``1 / a``: infinities for zeros and subnormals, zero where the result is subnormal."""
    bits = _bits(a)
    exponent = bits >> 23 & 0xFF
    result = (252 - exponent << 23) + _polynomial(_RECIP, (bits & 0x7FFFFF) << 2)
    result = _flushed(result) | bits & _SIGN
    if ((exponent == 0) | (exponent == 255)).any():
        result = np.where(exponent == 0, bits & _SIGN | _INFINITY, result)
        result = np.where(exponent == 255, bits & _SIGN, result)
        result = np.where(bits & ~_SIGN > _INFINITY, _NAN, result)
    return _floats(result)


def rsqrt(a):
    """``1 / sqrt(a)``: infinity of their sign for zeros and subnormals, NaN below them."""
    bits = _bits(a)
    exponent = bits >> 23 & 0xFF
    first_row = (~exponent & 1) * 128 + _RSQRT
    result = (189 - (exponent + 1 >> 1) << 23) + _polynomial(first_row, (bits & 0x7FFFFF) << 2)
    if (((bits >> 23) - 1 & 0x1FF) >= 254).any():     # anything but positive normals
        result = np.where(bits >= _SIGN, _NAN, result)
        result = np.where(exponent == 0, bits & _SIGN | _INFINITY, result)
        result = np.where(bits == _INFINITY, 0, result)
        result = np.where(bits & ~_SIGN > _INFINITY, _NAN, result)
    return _floats(result)


def _polynomial(first_row, g):
    """p of the specification: 2**23 .. 2**24 for the 25-bit argument of a segment."""
    row = (g >> 18) + first_row
    d = (g & _D_MASK) - _D_MIDDLE
    slope = _C1.take(row) + (_C2.take(row) * d >> 17) >> 4
    return _C0.take(row) + (slope * d >> 14) >> 4


def _flushed(result):
    """0 where a positive result is below the normals."""
    return result * (result >= _SMALLEST_NORMAL)


def _bits(a):
    return np.asarray(a, np.float32).view(np.uint32).astype(np.int64)


def _floats(bits):
    return bits.astype(np.uint32).view(np.float32)
