import numpy as np
import pytest

from compiler.reference import special as plain
from sim.emulator import fp_special
from tests.support import exact

NAN, INF, ZERO, ONE = exact.NAN, exact.INFINITY, 0, exact.ONE
MINUS = exact.SIGN

#: Input: results of exp2, recip and rsqrt; None where they are inexact and no corner.
CORNERS = {
    0x7FC00000: (NAN, NAN, NAN),
    0x7F800001: (NAN, NAN, NAN),
    0xFFFFFFFF: (NAN, NAN, NAN),
    0x00000000: (ONE, INF, INF),
    0x80000000: (ONE, MINUS | INF, MINUS | INF),
    0x00000001: (ONE, INF, INF),
    0x007FFFFF: (ONE, INF, INF),
    0x80000001: (ONE, MINUS | INF, MINUS | INF),
    0x807FFFFF: (ONE, MINUS | INF, MINUS | INF),
    0x7F800000: (INF, ZERO, ZERO),
    0xFF800000: (ZERO, MINUS, NAN),
    0x43000000: (INF, 0x3C000000, None),                # 128
    0xC3000000: (ZERO, 0xBC000000, NAN),                # -128
    0x42FFFFFF: (None, None, None),                     # just below 128
    0x42FE0000: (0x7F000000, None, None),               # 127
    0xC2FC0000: (0x00800000, None, NAN),                # -126: the smallest normal
    0xC2FC0001: (ZERO, None, NAN),                      # just below
    0xC2FE0000: (ZERO, None, NAN),                      # -127
    0x7F7FFFFF: (INF, ZERO, None),                      # the largest
    0xFF7FFFFF: (ZERO, MINUS, NAN),
    0x7F000000: (INF, ZERO, None),                      # 2**127: its reciprocal is subnormal
    0x7E800001: (INF, ZERO, None),                      # its reciprocal is just subnormal
    0xFE800001: (ZERO, MINUS, NAN),
    0x7E800000: (INF, 0x00800000, 0x20000000),          # 2**126
    0xFE800000: (ZERO, 0x80800000, NAN),
    0x00800000: (ONE, 0x7E800000, 0x5F000000),          # 2**-126
    0x80800000: (ONE, 0xFE800000, NAN),
    0x3F800000: (0x40000000, ONE, ONE),
    0xBF800000: (0x3F000000, MINUS | ONE, NAN),
    0x40800000: (0x41800000, 0x3E800000, 0x3F000000),   # 4
    0x32800000: (ONE, 0x4C800000, 0x46000000),          # 2**-26
    0xB2800000: (ONE, 0xCC800000, NAN),
}

FUNCTIONS = ("exp2", "recip", "rsqrt")
EXACT = {
    "exp2": np.exp2,
    "recip": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
#: log2 of the largest relative errors that `hdl.arch.special` states.
STATED = {"exp2": -23.28, "recip": -23.41, "rsqrt": -23.37}


def floats(patterns):
    return np.array(patterns, np.uint32).view(np.float32)


@pytest.mark.parametrize(("number", "name"), list(enumerate(FUNCTIONS)))
def test_corner_table(number, name):
    known = {x: results[number] for x, results in CORNERS.items() if results[number] is not None}
    result = getattr(fp_special, name)(floats(list(known))).view(np.uint32)
    wrong = {hex(x): hex(r) for x, r in zip(known, result, strict=True) if r != known[x]}
    assert wrong == {}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_corners_alone_give_the_same_as_in_company(name):
    function = getattr(fp_special, name)
    company = function(floats(list(CORNERS))).view(np.uint32)
    alone = [function(floats([x])).view(np.uint32)[0] for x in CORNERS]
    assert alone == company.tolist()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("count", [2**18, pytest.param(2**22, marks=pytest.mark.slow)])
def test_plain_model_gives_the_same_bits(name, count, rng):
    patterns = np.concatenate([
        np.array(exact.CORNERS, np.uint32),
        rng.integers(0, 2**32, count, np.uint32),
        # exponents around 1, where exp2 has its range
        rng.integers(95 << 23, 136 << 23, count, np.uint32) | rng.choice(
            np.array([0, MINUS], np.uint32), count),
    ])
    ours = getattr(fp_special, name)(floats(patterns)).view(np.uint32)
    theirs = getattr(plain, name)(floats(patterns)).view(np.uint32)
    wrong = np.flatnonzero(ours != theirs)
    assert wrong.size == 0, f"{name} of 0x{patterns[wrong[0]]:08X} differs"


def arguments(name, stride):
    """Arguments with normal results: every ``stride``-th fraction of the exponents that matter."""
    fractions = np.arange(0, 2**23, stride, dtype=np.uint32)
    if name == "exp2":
        starts = [sign | exponent << 23 for exponent in range(100, 133) for sign in (0, MINUS)]
    else:
        starts = [127 << 23, 128 << 23, 30 << 23, 201 << 23]
    return np.concatenate([start | fractions for start in starts]).astype(np.uint32)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("stride", [257, pytest.param(31, marks=pytest.mark.slow)])
def test_accuracy_is_as_stated(name, stride):
    x = floats(arguments(name, stride))
    result = getattr(fp_special, name)(x).astype(np.float64)
    correct = EXACT[name](x.astype(np.float64))
    relative = np.log2(np.abs(result / correct - 1).max())
    assert STATED[name] - 0.25 < relative < STATED[name] + 0.01
    unit = np.ldexp(1.0, np.frexp(correct)[1] - 24)
    assert (np.abs(result - correct) / unit).max() < 1


def test_exp2_of_an_integer_is_exact():
    exponents = np.arange(-126, 128)
    np.testing.assert_array_equal(
        fp_special.exp2(exponents.astype(np.float32)), np.ldexp(1.0, exponents))


def test_reciprocals_of_powers_of_two_are_exact():
    exponents = np.arange(-126, 127)
    x = np.ldexp(np.float32(1), exponents)
    np.testing.assert_array_equal(fp_special.recip(x), np.ldexp(1.0, -exponents))
    even = exponents % 2 == 0
    np.testing.assert_array_equal(
        fp_special.rsqrt(x[even]), np.ldexp(1.0, -exponents[even] // 2))


def test_exp2_of_negative_arguments_is_at_most_one(rng):
    x = -floats(rng.integers(0, 128 << 23, 2**18, np.uint32))
    assert fp_special.exp2(x).max() <= 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_shape_and_untouched_operand(name, rng):
    x = np.abs(rng.standard_normal((3, 5))).astype(np.float32)
    before = x.copy()
    result = getattr(fp_special, name)(x)
    assert result.shape == (3, 5) and result.dtype == np.float32
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(result[1], getattr(fp_special, name)(x[1]))
