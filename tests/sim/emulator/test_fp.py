import numpy as np
import pytest

from sim.emulator import fp
from tests.support import exact

PAIRS = {
    "add": exact.add,
    "sub": exact.sub,
    "mul": exact.mul,
    "max_": exact.maximum,
    "min_": exact.minimum,
    "cmp_lt": exact.less,
    "cmp_le": exact.less_equal,
    "cmp_eq": exact.equal,
}
TO_INTEGER = {"to_int32": exact.to_int32, "to_int8": exact.to_int8, "to_limbs": exact.to_limbs}


def floats(patterns):
    return np.array(patterns, np.uint32).view(np.float32)


def patterns(array):
    assert array.dtype in (np.float32, np.int32)
    return array.view(np.uint32).tolist()


@pytest.mark.parametrize("name", PAIRS)
def test_corner_pairs(name):
    a = floats(np.repeat(exact.CORNERS, len(exact.CORNERS)))
    b = floats(np.tile(exact.CORNERS, len(exact.CORNERS)))
    expected = [PAIRS[name](x, y) for x in exact.CORNERS for y in exact.CORNERS]
    assert patterns(getattr(fp, name)(a, b)) == expected


@pytest.mark.parametrize("name", PAIRS)
def test_random_pairs_in_vectors_of_16_lanes(name, rng):
    draws = rng.integers(0, 2**32, (2, 200, 16), np.uint32)
    # half of them with exponents that meet
    draws[1, ::2] = (draws[1, ::2] & 0x80FFFFFF) | (draws[0, ::2] & 0x7F000000)
    for x, y in zip(*draws, strict=True):
        expected = [PAIRS[name](a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        assert patterns(getattr(fp, name)(floats(x), floats(y))) == expected


@pytest.mark.parametrize("name", TO_INTEGER)
def test_corners_and_random_values_to_integers(name, rng):
    exponents = rng.integers(120, 162, 2000)
    draws = rng.integers(0, 2**32, 2000) & 0x807FFFFF | exponents << 23
    inputs = [*exact.CORNERS, *draws.tolist()]
    result = getattr(fp, name)(floats(inputs))
    assert patterns(result) == [TO_INTEGER[name](x) for x in inputs]


def test_every_half_between_the_limits_of_limbs_goes_to_the_even_neighbour():
    halves = np.arange(-32641, 32641, dtype=np.float64) + 0.5
    result = fp.to_limbs(halves.astype(np.float32))
    low = (result & 0xFF).astype(np.uint8).view(np.int8).astype(int)
    high = (result >> 8).astype(np.uint8).view(np.int8).astype(int)
    assert not (result >> 16).any()
    even = np.where(np.floor(halves) % 2 == 0, np.floor(halves), np.ceil(halves))
    np.testing.assert_array_equal(high * 256 + low, np.clip(even, -32639, 32639))


def test_int32_to_fp32(rng):
    inputs = [*exact.INT32_CORNERS, *rng.integers(0, 2**32, 1000).tolist()]
    result = fp.from_int32(np.array(inputs, np.uint32).view(np.int32))
    assert patterns(result) == [exact.from_int(x, 32) for x in inputs]


def test_int8_to_fp32_looks_at_the_low_byte_only():
    upper = np.array([0, -1, 0x12345600], np.int32)[:, None] & ~0xFF
    result = fp.from_int8(upper | np.arange(256, dtype=np.int32))
    expected = [*range(128), *range(-128, 0)]
    np.testing.assert_array_equal(result, [expected] * 3)
    assert result.dtype == np.float32


def test_accumulator_is_rounded_once(rng):
    values = [sign * (1 << length) + step for length in range(52) for sign in (-1, 1)
              for step in (-1, 0, 1)]
    for length in range(25, 52):        # a tie, and a tie disturbed far below
        odd = int(rng.integers(2**23, 2**24)) | 1
        tie = (odd << 1 | 1) << length - 25
        values += [tie, tie - 1, tie + 1, -tie, -tie - 1, -tie + 1]
    expected = [exact.from_int(value & 2**64 - 1, 64) for value in values]
    assert patterns(fp.acc_to_fp32(np.array(values, np.int64))) == expected


@pytest.mark.parametrize(("name", "sign"), [("add_int32", 1), ("sub_int32", -1)])
def test_int32_wraps(name, sign):
    corners = np.array(exact.INT32_CORNERS, np.uint32).view(np.int32)
    result = getattr(fp, name)(corners[:, None], corners)
    wide = corners.astype(np.int64)
    expected = (wide[:, None] + sign * wide) & 0xFFFFFFFF
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result.view(np.uint32), expected)


def test_operands_are_left_alone_and_results_are_new(rng):
    for name in PAIRS:
        a, b = floats(np.resize(exact.CORNERS, (2, 64)))
        before = a.tobytes(), b.tobytes()
        result = getattr(fp, name)(a, b)
        result.view(np.uint32)[...] = 0
        assert (a.tobytes(), b.tobytes()) == before
