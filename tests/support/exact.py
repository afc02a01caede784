"""binary32 arithmetic on exact rationals: slow, and independent of NumPy and of the units.

Values are patterns (int, 0 .. 2**32 - 1).
"""

from fractions import Fraction

NAN = 0x7FC00000
INFINITY = 0x7F800000
SIGN = 0x80000000
ONE = 0x3F800000

#: Patterns at every boundary of the format; their negatives are added below.
_POSITIVE_CORNERS = (
    0x00000000,                                         # zero
    0x00000001, 0x00000002, 0x00000003,                 # smallest subnormals
    0x00400000, 0x007FFFFE, 0x007FFFFF,                 # largest subnormals
    0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000,     # smallest normals
    0x0B800000, 0x1F800000, 0x1FFFFFFF, 0x20000000,     # products near the smallest
    0x33000000, 0x33000001, 0x33800000, 0x34000000,     # 2**-25 .. 2**-23
    0x3EFFFFFF, 0x3F000000, 0x3F000001,                 # around 0.5
    0x3F7FFFFF, 0x3F800000, 0x3F800001,                 # around 1
    0x3FC00000, 0x40200000, 0x40000000, 0x40400000,     # 1.5, 2.5, 2, 3
    0x42FE0000, 0x42FEFFFF, 0x42FF0000, 0x42FF0001,     # 127 .. around 127.5
    0x43000000, 0x43008000, 0x43010000,                 # 128, 128.5, 129
    0x46FEFE00, 0x46FEFEFF, 0x46FEFF00, 0x46FF0000,     # 32639, around 32639.5
    0x4AFFFFFF, 0x4B000000, 0x4B000001, 0x4B7FFFFF,     # around 2**23, 2**24 - 1
    0x4B800000, 0x4B800001,                             # around 2**24
    0x4EFFFFFF, 0x4F000000, 0x4F000001, 0x4F800000,     # around 2**31, 2**32
    0x5F000000, 0x5F7FFFFF, 0x60000000,                 # products near the largest
    0x7E800000, 0x7EFFFFFF, 0x7F000000,                 # half of the largest
    0x7F7FFFFE, 0x7F7FFFFF, 0x7F800000,                 # largest, infinity
    0x7F800001, 0x7FA00000, 0x7FC00000, 0x7FFFFFFF,     # NaNs, signalling and quiet
)
CORNERS = _POSITIVE_CORNERS + tuple(pattern | SIGN for pattern in _POSITIVE_CORNERS)

INT32_CORNERS = tuple(
    value & 0xFFFFFFFF
    for power in (0, 1, 7, 8, 15, 16, 22, 23, 24, 25, 26, 30, 31)
    for near in (-3, -2, -1, 0, 1, 2, 3)
    for value in (2**power + near, -(2**power) + near)
    if -2**31 <= value < 2**31
) + (0x01000001, 0x01000002, 0x01000003, 0x02000002, 0x02000006, 0x7FFFFFBF, 0x7FFFFFC0,
     0x7FFFFFC1, 0x55555555, 0xAAAAAAAA)


def is_nan(x):
    return x & ~SIGN > INFINITY


def value(x):
    """Exact value of a finite pattern."""
    exponent = x >> 23 & 0xFF
    assert exponent < 255
    mantissa = (x & 0x7FFFFF) | (0x800000 if exponent else 0)
    magnitude = Fraction(mantissa) * Fraction(2) ** (max(exponent, 1) - 150)
    return -magnitude if x & SIGN else magnitude


def rounded(exact, zero_sign=0):
    """Pattern of a rational, to nearest even; ``zero_sign`` is that of an exact zero."""
    if exact == 0:
        return zero_sign
    sign = SIGN if exact < 0 else 0
    exact = abs(exact)
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    if Fraction(2) ** exponent > exact:
        exponent -= 1                                   # now 2**exponent <= exact
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    count = round(exact / unit)                         # of Fractions: ties to even
    pattern = count + (max(exponent + 126, 0) << 23)    # the hidden bit adds to the exponent
    return sign | min(pattern, INFINITY)


def add(a, b):
    if is_nan(a) or is_nan(b):
        return NAN
    if a & ~SIGN == INFINITY:
        return NAN if b == a ^ SIGN else a
    if b & ~SIGN == INFINITY:
        return b
    return rounded(value(a) + value(b), zero_sign=a & b & SIGN if value(a) == 0 else 0)


def sub(a, b):
    return add(a, b if is_nan(b) else b ^ SIGN)


def mul(a, b):
    if is_nan(a) or is_nan(b):
        return NAN
    sign = (a ^ b) & SIGN
    if INFINITY in (a & ~SIGN, b & ~SIGN):
        return NAN if 0 in (a & ~SIGN, b & ~SIGN) else sign | INFINITY
    product = value(a) * value(b)
    return rounded(product, zero_sign=sign)


def _order(x):
    """Sorts patterns that are not NaN, -0 before +0."""
    return -(x & ~SIGN) - 1 if x & SIGN else x


def maximum(a, b):
    return NAN if is_nan(a) or is_nan(b) else max(a, b, key=_order)


def minimum(a, b):
    return NAN if is_nan(a) or is_nan(b) else min(a, b, key=_order)


def _compare(holds, a, b):
    if is_nan(a) or is_nan(b):
        return 0
    # zeros of both signs are one place in the order
    return ONE if holds(*(0 if x == SIGN else _order(x) for x in (a, b))) else 0


def less(a, b):
    return _compare(lambda x, y: x < y, a, b)


def less_equal(a, b):
    return _compare(lambda x, y: x <= y, a, b)


def equal(a, b):
    return _compare(lambda x, y: x == y, a, b)


def nearest(x, low, high):
    """Nearest integer within ``low`` .. ``high``; 0 for NaN."""
    if is_nan(x):
        return 0
    if x & ~SIGN == INFINITY:
        return low if x & SIGN else high
    return min(max(round(value(x)), low), high)


def to_int32(x):
    return nearest(x, -2**31, 2**31 - 1) & 0xFFFFFFFF


def to_int8(x):
    return nearest(x, -128, 127) & 0xFFFFFFFF


def to_limbs(x):
    clipped = nearest(x, -32639, 32639)
    for high in range(-128, 128):
        low = clipped - 256 * high
        if -128 <= low <= 127:
            return (high & 0xFF) << 8 | low & 0xFF
    raise AssertionError("no limbs")


def from_int(x, bits):
    """fp32 of a two's complement integer of ``bits`` bits."""
    return rounded(Fraction(x - (x >> (bits - 1) << bits)))
