"""The binary32 format: its fields and the patterns that the units produce as they stand."""

from amaranth.lib import data

__all__ = ["BIAS", "EXPONENT_MAX", "FRACTION_BITS", "INFINITY", "NAN", "ONE", "Float32"]

BIAS = 127
FRACTION_BITS = 23
EXPONENT_MAX = 255      #: exponent field of infinities and NaNs
NAN = 0x7FC00000        #: the only NaN that a unit produces
INFINITY = 0x7F800000
ONE = 0x3F800000


class Float32(data.Struct):
    """One fp32 value: (-1)**sign * 1.fraction * 2**(exponent - 127)."""

    fraction: FRACTION_BITS
    exponent: 8
    sign: 1
