# amaranth: UnusedElaboratable=no
import pytest

from hdl.fp.mul import FpMul
from tests.hdl.fp.harness import first_cycle, results
from tests.support import exact


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 6, 7, 9])
def test_result_appears_after_depth_cycles(depth):
    dut = FpMul(depth=depth)
    assert dut.depth == depth
    zero = {"a": 0, "b": exact.ONE}
    assert first_cycle(dut, zero, {"a": exact.ONE, "b": exact.ONE}) == depth


def test_corner_pairs():
    pairs = [(a, b) for a in exact.CORNERS for b in exact.CORNERS]
    operands = [{"a": a, "b": b} for a, b in pairs]
    assert results(FpMul(), operands) == [exact.mul(a, b) for a, b in pairs]


def test_results_around_the_smallest_and_the_largest_normal():
    pairs = [
        (upper << 23 | fraction, (total - upper) << 23 | other)
        for total in [*range(98, 132), *range(378, 384)]
        for upper in (total // 2, max(total - 254, 0), min(total, 254))
        if total - upper <= 254
        for fraction, other in [
            (0, 0), (1, 0), (1, 1), (0x7FFFFF, 0x7FFFFF), (0x7FFFFF, 0), (0x3504F3, 0x3504F3),
            (0x3504F3, 0x3504F4), (0x400000, 0x7FFFFF), (0x7FFFFE, 1)]
    ]
    operands = [{"a": a, "b": b} for a, b in pairs]
    assert results(FpMul(), operands) == [exact.mul(a, b) for a, b in pairs]


def test_ties_go_to_even():
    # products of odd numbers that end just below the last bit of a mantissa
    pairs = [
        (127 << 23 | (first << first_zeros) - 2**23, 127 << 23 | (second << second_zeros) - 2**23)
        for first, first_zeros, second, second_zeros in [
            (2**12 + 1, 11, 2**12 + 1, 11), (2**12 + 1, 11, 2**12 + 3, 11),
            (2**12 + 5, 11, 2**12 + 9, 11), (2**12 - 1, 12, 2**13 - 1, 11),
            (2**12 - 3, 12, 2**13 - 1, 11), (2**12 - 5, 12, 2**13 - 3, 11)]
    ]
    for a, b in pairs:
        # half of the last bit, exactly
        assert 2 * abs(exact.value(exact.mul(a, b)) - exact.value(a) * exact.value(b)) == (
            exact.value(exact.mul(a, b) + 1) - exact.value(exact.mul(a, b)))
    operands = [{"a": a, "b": b} for a, b in pairs]
    assert results(FpMul(), operands) == [exact.mul(a, b) for a, b in pairs]


def test_subnormal_operands_of_every_length():
    pairs = [
        ((1 << length) - 1 - low, exponent << 23 | fraction)
        for length in range(1, 24)
        for low in (0, (1 << length) >> 1)
        for exponent in (0, 1, 100, 127, 128, 150, 254)
        for fraction in (0, 1, 0x7FFFFF)
    ]
    pairs += [(b, a) for a, b in pairs]
    operands = [{"a": a, "b": b} for a, b in pairs]
    assert results(FpMul(), operands) == [exact.mul(a, b) for a, b in pairs]


@pytest.mark.parametrize("depth", [1, 3, 8])
def test_other_depths_give_the_same_results(depth, rng):
    pairs = rng.integers(0, 2**32, (300, 2)).tolist()
    operands = [{"a": a, "b": b} for a, b in pairs]
    assert results(FpMul(depth=depth), operands) == [exact.mul(a, b) for a, b in pairs]


def test_depth_is_checked():
    with pytest.raises(ValueError, match="Pipeline depth must be a positive integer, not 0"):
        FpMul(depth=0)
