"""exp2, reciprocal and reciprocal square root, bit for bit as `hdl.arch.special` specifies them.

Written from that specification for whole arrays: the four outcomes of a corner input are laid
over one polynomial evaluation in int64.
"""

import functools

import numpy as np

from hdl.arch.special import Segment, coefficients

_TABLE = np.array(coefficients(), np.int64)
_C0, _C1, _C2 = (np.ascontiguousarray(column) for column in _TABLE.T)

#: Elements evaluated at a time, so that the int64 intermediates stay in the cache.
_BLOCK = 1 << 15

_SIGN = np.int64(1 << 31)
_INF = np.int64(255 << 23)
_NAN = np.int64(0x7FC00000)


def _in_blocks(function):
    """Apply an element-wise function block by block."""
    @functools.wraps(function)
    def apply(x):
        x = np.asarray(x, np.float32)
        flat = x.reshape(-1)
        result = np.empty_like(flat)
        for start in range(0, flat.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            result[block] = function(flat[block])
        return result.reshape(x.shape)
    return apply


def _split(x):
    """Pattern, biased exponent and fraction of float32 values, as int64."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.int64)
    return bits, bits >> 23 & 255, bits & (1 << 23) - 1


def _join(bits):
    """Float32 values of int64 patterns."""
    return bits.astype(np.uint32).view(np.float32)


def _significand(segment, g):
    """Step 3: polynomial of a segment at g (25 bits); 2**23 .. 2**24."""
    row = segment * 128 + (g >> 18)
    d = (g & (1 << 18) - 1) - (1 << 17)
    t = _C2[row] * d >> 17
    s = _C1[row] + t >> 4
    u = s * d >> 14
    return _C0[row] + u >> 4


def _pack(base, significand):
    """Step 4 without the sign: flushes to +0 below the normal range, +inf above it."""
    result = (base << 23) + significand
    result[result < 1 << 23] = 0
    return np.minimum(result, _INF)


@_in_blocks
def exp2(x):
    """2 ** x, element by element; float32 in, float32 out."""
    bits, exponent, fraction = _split(x)
    small = np.minimum(exponent, 133)
    shifted = ((1 << 23) + fraction << 9) >> np.minimum(133 - small, 63)
    magnitude = np.where(exponent == 0, 0, shifted + 1 >> 1)
    fixed = np.where(bits >= _SIGN, -magnitude, magnitude)
    result = _pack((fixed >> 25) + 126, _significand(Segment.EXP2, fixed & (1 << 25) - 1))
    if np.any(exponent >= 134):
        result = np.where(exponent >= 134, np.where(bits >= _SIGN, 0, _INF), result)
        result = np.where((exponent == 255) & (fraction != 0), _NAN, result)
    return _join(result)


@_in_blocks
def recip(x):
    """1 / x, element by element; float32 in, float32 out."""
    bits, exponent, fraction = _split(x)
    sign = bits & _SIGN
    result = _pack(252 - exponent, _significand(Segment.RECIP, fraction << 2))
    result = np.where(exponent == 0, _INF, np.where(exponent == 255, 0, result)) | sign
    return _join(np.where((exponent == 255) & (fraction != 0), _NAN, result))


@_in_blocks
def rsqrt(x):
    """1 / sqrt(x), element by element; float32 in, float32 out."""
    bits, exponent, fraction = _split(x)
    sign = bits & _SIGN
    segment = np.where(exponent & 1, int(Segment.RSQRT_EVEN), int(Segment.RSQRT_ODD))
    result = _pack(189 - (exponent + 1 >> 1), _significand(segment, fraction << 2))
    result = np.where(exponent == 255, 0, np.where(sign != 0, _NAN, result))
    result = np.where(exponent == 0, _INF | sign, result)
    invalid = (exponent == 255) & ((fraction != 0) | (sign != 0))
    return _join(np.where(invalid, _NAN, result))
