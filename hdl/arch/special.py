"""Coefficient tables and exact meaning of exp2, reciprocal and reciprocal square root.

The three functions are integer arithmetic on one table of 512 rows (three coefficients each), so
hardware, emulator and plain model, each in its own code, give the same 32 bits for every input.
This docstring is their specification; every quantity below is an integer, ``>>`` is the arithmetic
shift (floor), and ``x`` is an IEEE binary32 pattern with sign S (1 bit), biased exponent E (8
bits) and fraction F (23 bits).

**1. Corner inputs.**  Subnormal inputs (E = 0, F /= 0) count as zeros of their sign.  The first
row that fits decides, and the result is exact:

    ==================================  ===========  ===========  ===========
    input                               exp2         recip        rsqrt
    ==================================  ===========  ===========  ===========
    NaN (E = 255, F /= 0)               0x7FC00000   0x7FC00000   0x7FC00000
    +0 and positive subnormals          1.0 (*)      +inf         +inf
    -0 and negative subnormals          1.0 (*)      -inf         -inf
    +inf                                +inf         +0           +0
    -inf                                +0           -0           0x7FC00000
    E >= 134 (magnitude >= 128), S = 0  +inf         step 2       step 2
    E >= 134 (magnitude >= 128), S = 1  +0           step 2       0x7FC00000
    other negatives                     step 2       step 2       0x7FC00000
    other positives                     step 2       step 2       step 2
    ==================================  ===========  ===========  ===========

    (*) A = 0 in step 2 gives the same.

**2. Segment, 25-bit argument g, exponent base B and result sign.**

    ``exp2``: A = ((2**23 + F) << 9) >> (133 - E), which is 0 from E <= 100 on (33 bits, 0 where E
    = 0); mag = (A + 1) >> 1; X = -mag if S else mag (33 bits, signed: x in units of 2**-25, rounded
    to nearest, halves away from zero); n = X >> 25 (in -128 .. 127); g = X & (2**25 - 1); B = n +
    126; segment EXP2; sign 0.

    ``recip``: g = F << 2; B = 252 - E; segment RECIP; sign S.

    ``rsqrt``: g = F << 2; B = 189 - ((E + 1) >> 1); segment RSQRT_EVEN if E is odd (the unbiased
    exponent E - 127 is even), RSQRT_ODD if E is even; sign 0.

**3. Polynomial.**  Degree 2 around the middle of one of 128 intervals:

    ====================================  =======================  =======================
    value                                 width                    unit
    ====================================  =======================  =======================
    row = segment * 128 + (g >> 18)       9 bits, unsigned         -
    d = (g & (2**18 - 1)) - 2**17         18 bits, signed          2**-25
    c2 of the row                         13 bits, unsigned        2**-12
    c1 of the row                         22 bits, signed          2**-20
    c0 of the row                         28 bits, unsigned        2**-27
    t = (c2 * d) >> 17                    14 bits, signed          2**-20
    s = (c1 + t) >> 4                     18 bits, signed          2**-16
    u = (s * d) >> 14                     22 bits, signed          2**-27
    p = (c0 + u) >> 4                     25 bits, 2**23 .. 2**24  2**-23
    ====================================  =======================  =======================

    The constants that turn these floors into roundings are inside c1 and c0.

**4. Result.**  R = (B << 23) + p, signed; p = 2**24 carries into the exponent.  R < 2**23: zero of
the result sign (subnormal results are flushed).  R >= 255 << 23: infinity of the result sign.
Otherwise the pattern R with the result sign.

**Accuracy.**  Largest relative error, results in the normal range, measured against float64: exp2
2**-23.28 (sweep of 41 million arguments), recip 2**-23.41 and rsqrt 2**-23.37 (both over every
fraction); the absolute error stays below one unit in the last place, and 92 % of the results are
correctly rounded.  exp2 of an integer and recip of a power of two are exact, rsqrt of an even power
of two too.  The tests of the emulator repeat a part of the sweep.

**Where the table comes from.**  `coefficients` computes it: no floats, no libraries, the same
integers everywhere.  Each interval's polynomial goes through the function's exact values at the
middle and at +-111/128 of the half width (near the Chebyshev nodes, cos 30 degrees = 0.866), which
are dyadic points of at most 15 fractional bits.
"""

import enum
import functools
import math
from typing import NamedTuple

__all__ = [
    "C0_BITS", "C1_BITS", "C2_BITS", "D_BITS", "G_BITS", "INDEX_BITS", "P_SHIFT", "ROWS",
    "S_BITS", "S_SHIFT", "T_SHIFT", "U_SHIFT", "Coefficients", "Segment", "coefficients",
]

G_BITS = 25         #: fractional bits of the argument of a segment
INDEX_BITS = 7      #: upper bits of g that choose the interval
D_BITS = G_BITS - INDEX_BITS    #: bits of the signed distance from the middle of the interval
C0_BITS = 28        #: unsigned, unit 2**-27
C1_BITS = 22        #: signed, unit 2**-20
C2_BITS = 13        #: unsigned, unit 2**-12
S_BITS = 18         #: signed, unit 2**-16
T_SHIFT = 17        #: c2 * d to the unit of c1
S_SHIFT = 4         #: c1 + t to the unit of s
U_SHIFT = 14        #: s * d to the unit of c0
P_SHIFT = 4         #: c0 + u to the unit of p

_C0_FRACTION = 27
_C1_FRACTION = 20
_C2_FRACTION = 12
_POINT_FRACTION = 15            # fractional bits of the points where functions are evaluated
_NODE = 111                     # distance of the outer points from the middle, unit 2**-15
_PRECISION = 96                 # fractional bits of the values there


class Segment(enum.IntEnum):
    """The four functions of g (0 <= g < 1) that the table holds; values lie in 1 .. 2."""

    EXP2 = 0            #: 2**g
    RECIP = 1           #: 2 / (1 + g)
    RSQRT_EVEN = 2      #: 2 / sqrt(1 + g)
    RSQRT_ODD = 3       #: 2 / sqrt(2 * (1 + g))


ROWS = len(Segment) << INDEX_BITS


class Coefficients(NamedTuple):
    """One row of the table; widths and units in the module docstring."""

    c0: int
    c1: int
    c2: int


@functools.cache
def coefficients():
    """Compute the table.

    Returns
    -------
    tuple of Coefficients
        Row ``segment * 128 + interval``, `ROWS` in all.
    """
    return tuple(
        _interpolate(segment, interval)
        for segment in Segment for interval in range(1 << INDEX_BITS))


def _interpolate(segment, interval):
    middle = (2 * interval + 1) << (_POINT_FRACTION - INDEX_BITS - 1)
    below, centre, above = (
        _value(segment, point) for point in (middle - _NODE, middle, middle + _NODE))
    # f(middle + r) - f(middle - r) = 2 r c1 and f(.. + r) + f(.. - r) - 2 f(..) = 2 r**2 c2
    slope = _round_ratio(
        (above - below) << (_POINT_FRACTION + _C1_FRACTION), 2 * _NODE << _PRECISION)
    curvature = _round_ratio(
        (above + below - 2 * centre) << (2 * _POINT_FRACTION + _C2_FRACTION),
        2 * _NODE * _NODE << _PRECISION)
    constant = _round_ratio(centre << _C0_FRACTION, 1 << _PRECISION)
    return Coefficients(
        # half a unit of p, and half a unit of u for its floor
        c0=constant + (1 << (P_SHIFT - 1)),
        c1=slope + (1 << (S_SHIFT - 1)),
        c2=curvature)


def _round_ratio(numerator, denominator):
    return (2 * numerator + denominator) // (2 * denominator)


def _value(segment, point):
    """Value of a segment at ``point`` / 2**15, unit 2**-96, exact to 2**-90."""
    scale = 1 << _POINT_FRACTION
    one_plus = scale + point
    if segment == Segment.EXP2:
        result = 1 << _PRECISION
        for bit, root in enumerate(_roots_of_two(), start=1):
            if point >> (_POINT_FRACTION - bit) & 1:
                result = result * root >> _PRECISION
        return result
    if segment == Segment.RECIP:
        return (2 * scale << _PRECISION) // one_plus
    doubled = 2 if segment == Segment.RSQRT_ODD else 1
    return math.isqrt((4 * scale << 2 * _PRECISION) // (doubled * one_plus))


@functools.cache
def _roots_of_two():
    """2**(1/2), 2**(1/4) and so on to 2**(2**-15), unit 2**-96."""
    roots = [2 << _PRECISION]
    for _ in range(_POINT_FRACTION):
        roots.append(math.isqrt(roots[-1] << _PRECISION))
    return tuple(roots[1:])
