import numpy as np
import pytest

from compiler.reference import special
from hdl.arch.special import Segment, coefficients

INF, NAN = np.inf, np.nan
TINY = 2.0**-126        # smallest normal number
SUB = 2.0**-127         # a subnormal one


def pattern(values):
    return np.asarray(values, np.float32).view(np.uint32)


def near(values):
    """Each value with its neighbours on both sides."""
    values = np.asarray(values, np.float32)
    return np.concatenate(
        [np.nextafter(values, np.float32(-INF)), values, np.nextafter(values, np.float32(INF))])


@pytest.mark.parametrize(("function", "corners"), [
    (special.exp2, [
        (0.0, 1.0), (-0.0, 1.0), (SUB, 1.0), (-SUB, 1.0), (INF, INF), (-INF, 0.0), (128.0, INF),
        (3e38, INF), (-128.0, 0.0), (-3e38, 0.0), (-126.0, TINY), (-127.0, 0.0), (127.0, 2.0**127),
        (1.0, 2.0), (-1.0, 0.5), (2.0**-27, 1.0), (-(2.0**-27), 1.0), (-256.0, 0.0),
    ]),
    (special.recip, [
        (0.0, INF), (-0.0, -INF), (SUB, INF), (-SUB, -INF), (INF, 0.0), (-INF, -0.0), (1.0, 1.0),
        (-4.0, -0.25), (2.0**126, TINY), (2.0**127, 0.0), (-(2.0**127), -0.0), (TINY, 2.0**126),
        (3e38, 0.0),
    ]),
    (special.rsqrt, [
        (0.0, INF), (-0.0, -INF), (SUB, INF), (-SUB, -INF), (INF, 0.0), (-INF, NAN), (-1.0, NAN),
        (-TINY, NAN), (1.0, 1.0), (4.0, 0.5), (TINY, 2.0**63), (2.0**126, 2.0**-63),
    ]),
], ids=["exp2", "recip", "rsqrt"])
def test_corner_inputs(function, corners):
    inputs, expected = zip(*corners, (NAN, NAN), strict=True)
    np.testing.assert_array_equal(pattern(function(np.float32(inputs))), pattern(expected))


def test_every_nan_gives_the_canonical_one():
    nans = np.array([0x7F800001, 0x7FFFFFFF, 0xFF800001, 0xFFC00000], np.uint32).view(np.float32)
    for function in (special.exp2, special.recip, special.rsqrt):
        assert set(pattern(function(nans))) == {0x7FC00000}


@pytest.mark.parametrize(("function", "exact", "inputs", "bits"), [
    (special.exp2, np.exp2, lambda rng: rng.uniform(-126, 127.999, 200_000), 23.2),
    (special.exp2, np.exp2, lambda rng: rng.normal(0, 1e-3, 50_000), 23.2),
    (special.recip, lambda x: 1 / x, lambda rng: np.exp2(rng.uniform(-125, 125, 200_000)), 23.3),
    (special.recip, lambda x: 1 / x, lambda rng: -np.exp2(rng.uniform(-3, 3, 50_000)), 23.3),
    (special.rsqrt, lambda x: x**-0.5, lambda rng: np.exp2(rng.uniform(-126, 127.9, 200_000)),
     23.3),
])
def test_accuracy(function, exact, inputs, bits, rng):
    x = inputs(rng).astype(np.float32)
    expected = exact(x.astype(np.float64))
    error = np.max(np.abs(function(x).astype(np.float64) / expected - 1))
    assert error < 2.0**-bits


def test_shape_and_blocks_do_not_matter(rng):
    x = rng.uniform(-10, 10, (3, 1 << 15, 2)).astype(np.float32)
    whole = special.exp2(x)
    assert whole.shape == x.shape
    some = rng.integers(0, x.size, 200)
    np.testing.assert_array_equal(
        pattern(whole.ravel()[some]), [pattern(special.exp2(x.ravel()[i])) for i in some])


def scalar(function, x):
    """The specification once more, on Python integers, for inputs that are no corner."""
    word = int(pattern(x))
    sign, exponent, fraction = word >> 31, word >> 23 & 255, word & 0x7FFFFF
    if function == "exp2":
        distance = 133 - exponent
        a = 0 if exponent <= 100 else (((1 << 23) + fraction) << 9) >> distance
        x_fixed = (-1 if sign else 1) * ((a + 1) >> 1)
        segment, g, base, out_sign = Segment.EXP2, x_fixed % (1 << 25), (x_fixed >> 25) + 126, 0
    elif function == "recip":
        segment, g, base, out_sign = Segment.RECIP, fraction << 2, 252 - exponent, sign
    else:
        segment = Segment.RSQRT_EVEN if exponent % 2 else Segment.RSQRT_ODD
        g, base, out_sign = fraction << 2, 189 - ((exponent + 1) >> 1), 0
    c0, c1, c2 = coefficients()[segment * 128 + (g >> 18)]
    d = g % (1 << 18) - (1 << 17)
    p = (c0 + ((((c1 + ((c2 * d) >> 17)) >> 4) * d) >> 14)) >> 4
    result = base * (1 << 23) + p
    result = 0 if result < 1 << 23 else min(result, 255 << 23)
    return out_sign << 31 | result


@pytest.mark.parametrize("function", ["exp2", "recip", "rsqrt"])
def test_bits_are_those_of_the_specification(function, rng):
    low, high = (90, 134) if function == "exp2" else (1, 255)
    count = 4000
    words = (rng.integers(0, 2 if function != "rsqrt" else 1, count) << 31
             | rng.integers(low, high, count) << 23 | rng.integers(0, 1 << 23, count))
    x = np.concatenate([
        words.astype(np.uint32).view(np.float32),
        np.abs(near([1, 2, 3, 4, 127, 0.5, 2.0**-25, 2.0**-26])), near([1.0, 2.0, 125.5]),
    ])
    np.testing.assert_array_equal(
        pattern(getattr(special, function)(x)), [scalar(function, value) for value in x])
