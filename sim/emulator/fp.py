"""What the arithmetic of the vector ALUs means, on whole NumPy arrays.

fp32 values are float32 arrays, integers int32 arrays (other types are not converted); every
function returns a new array and accepts any shapes that broadcast.  IEEE binary32, round to
nearest even, gradual underflow; every NaN in a result is 0x7FC00000.
"""

import numpy as np

__all__ = [
    "LIMBS_MAX", "NAN", "acc_to_fp32", "add", "add_int32", "cmp_eq", "cmp_le", "cmp_lt",
    "from_int32", "from_int8", "max_", "min_", "mul", "sub", "sub_int32", "to_int32", "to_int8",
    "to_limbs",
]

NAN = np.uint32(0x7FC00000).view(np.float32)    #: the only NaN in results
LIMBS_MAX = 127 * 256 + 127                     #: largest magnitude of `to_limbs`

_ONE = np.float32(1)
_ZERO = np.float32(0)


@np.errstate(all="ignore")
def add(a, b):
    """``a + b`` in fp32."""
    return _one_nan(np.add(a, b))


@np.errstate(all="ignore")
def sub(a, b):
    """``a - b`` in fp32."""
    return _one_nan(np.subtract(a, b))


@np.errstate(all="ignore")
def mul(a, b):
    """``a * b`` in fp32."""
    return _one_nan(np.multiply(a, b))


def max_(a, b):
    """The larger operand; -0 is below +0; NaN if either is NaN."""
    return _one_nan(_ties(np.maximum(a, b), a, b, np.bitwise_and))


def min_(a, b):
    """The smaller operand; -0 is below +0; NaN if either is NaN."""
    return _one_nan(_ties(np.minimum(a, b), a, b, np.bitwise_or))


def cmp_lt(a, b):
    """fp32 1.0 where ``a < b``, else 0.0 (also where either is NaN)."""
    return np.where(np.less(a, b), _ONE, _ZERO)


def cmp_le(a, b):
    """fp32 1.0 where ``a <= b``, else 0.0 (also where either is NaN)."""
    return np.where(np.less_equal(a, b), _ONE, _ZERO)


def cmp_eq(a, b):
    """fp32 1.0 where ``a = b``, else 0.0 (also where either is NaN)."""
    return np.where(np.equal(a, b), _ONE, _ZERO)


def to_int32(a):
    """fp32 to the nearest integer (ties to even), saturated to int32; NaN gives 0."""
    return _clipped(a, -2**31, 2**31 - 1)


def to_int8(a):
    """fp32 to the nearest integer (ties to even), saturated to -128 .. 127, in int32; NaN gives 0.

    A stream byte takes the low 8 bits.
    """
    return _clipped(a, -128, 127)


def to_limbs(a):
    """fp32 to two signed 8-bit limbs, low in bits 0-7 and high in bits 8-15 of an int32.

    ``high * 256 + low`` is the nearest integer (ties to even) clipped at +-32639; NaN gives 0; the
    upper 16 bits are 0.
    """
    value = _clipped(a, -LIMBS_MAX, LIMBS_MAX)
    # the low limb is signed: where it is negative the high limb is one larger
    return (value + ((value & 0x80) << 1)) & 0xFFFF


def from_int32(a):
    """int32 to fp32, rounded to nearest even."""
    return np.asarray(a, np.int32).astype(np.float32)


def from_int8(a):
    """The low 8 bits of int32 as a signed integer to fp32, exact."""
    return np.asarray(a, np.int32).astype(np.int8).astype(np.float32)


def add_int32(a, b):
    """``a + b`` modulo 2**32."""
    return np.add(a, b, dtype=np.int32)


def sub_int32(a, b):
    """``a - b`` modulo 2**32."""
    return np.subtract(a, b, dtype=np.int32)


def acc_to_fp32(a):
    """int64 accumulators to fp32, rounded once, to nearest even."""
    return np.asarray(a, np.int64).astype(np.float32)


def _one_nan(result):
    nan = result != result
    if nan.any():
        result = np.where(nan, NAN, result)
    return result


def _ties(result, a, b, combine):
    """``result``, where operands are equal their patterns combined: only zeros differ in them."""
    tie = np.equal(a, b)
    if tie.any():
        combined = combine(_bits(a), _bits(b)).view(np.float32)
        result = np.where(tie, combined, result)
    return result


def _bits(a):
    return np.asarray(a, np.float32).view(np.int32)


@np.errstate(invalid="ignore")      # a signalling NaN
def _clipped(a, low, high):
    """Nearest integer of fp32 within ``low`` .. ``high`` as int32; NaN gives 0."""
    exact = np.asarray(a, np.float32).astype(np.float64)
    nan = exact != exact
    if nan.any():
        exact = np.where(nan, 0.0, exact)
    return np.clip(np.rint(exact), low, high).astype(np.int32)
