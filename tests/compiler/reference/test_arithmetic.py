import numpy as np
import pytest

from compiler.reference.arithmetic import (
    ordered_sum,
    to_activation,
    to_float,
    to_int8,
)
from tests.compiler.reference.scalar import nearest_float, ordered

F = np.float32


def test_sums_round_once_to_nearest_even(rng):
    halves = [(1 << 24) + 1, (1 << 24) + 3, (1 << 25) + 2, (1 << 25) + 6, (1 << 39) + (1 << 15)]
    around = [n + d for n in halves for d in (-1, 0, 1)]
    numbers = around + [-n for n in around] + [0, 1, -1]
    numbers += [int(n) for n in rng.integers(-(1 << 40), 1 << 40, 500)]
    expected = [nearest_float(n) for n in numbers]
    for kind in (np.int64, np.float64):
        np.testing.assert_array_equal(to_float(np.array(numbers, kind)), expected)


def test_one_rounding_is_not_two():
    # through float32 halves the lower part would be lost first
    number = (1 << 39) + (1 << 15) + 1
    assert to_float(np.array([number])) == F(2.0**39 + 2.0**16)


@pytest.mark.parametrize(("x", "activation", "int8"), [
    (0.5, 0, 0), (1.5, 2, 2), (2.5, 2, 2), (-0.5, 0, 0), (-1.5, -2, -2), (-2.5, -2, -2),
    (127.49, 127, 127), (127.5, 128, 127), (-128.5, -128, -128), (-129.0, -129, -128),
    (32638.5, 32638, 127), (32639.4, 32639, 127), (32640.0, 32639, 127), (-1e9, -32639, -128),
    (np.inf, 32639, 127), (-np.inf, -32639, -128), (np.nan, 0, 0), (1e-40, 0, 0),
])
def test_conversions_round_to_even_and_saturate(x, activation, int8):
    assert to_activation(F([x])) == activation
    assert to_int8(F([x])) == int8


def test_every_activation_has_two_int8_limbs():
    values = to_activation(np.arange(-40000, 40000, dtype=F)).astype(np.int64)
    high, low = values + 128 >> 8, (values + 128 & 255) - 128
    np.testing.assert_array_equal(high * 256 + low, values)
    for limb in (high, low):
        assert limb.min() >= -128 and limb.max() <= 127


@pytest.mark.parametrize("lanes", [1, 4, 16])
@pytest.mark.parametrize("count", [1, 3, 16, 17, 63, 64, 65, 128, 200, 330])
def test_sums_have_the_documented_order(count, lanes, rng):
    x = np.square(rng.normal(0, 100, (5, count))).astype(F)
    for start in (None, F(1e-3)):
        expected = [[ordered(row, lanes, start or F(0))] for row in x]
        np.testing.assert_array_equal(ordered_sum(x, lanes, start), expected)


def test_the_order_matters():
    # 16 ones in entry 1 are lost one by one behind 2**24 in the same entry, but not in another
    x = np.zeros(64 * 17, F)
    x[0] = 2.0**24
    same, other = x.copy(), x.copy()
    same[64::64] = 1
    other[16 + 64 :: 64] = 1
    assert ordered_sum(same, 16) == 2.0**24
    assert ordered_sum(other, 16) == 2.0**24 + 16


def test_absent_elements_and_hidden_slots_change_nothing(rng):
    x = np.square(rng.normal(0, 1, 37)).astype(F)
    longer = np.concatenate([x, np.zeros(300, F)])
    assert ordered_sum(x, 16) == ordered_sum(longer, 16)


def test_subnormal_numbers_are_kept():
    tiny = F(2.0**-140)
    assert ordered_sum(np.array([tiny, tiny]), 16) == 2 * tiny
