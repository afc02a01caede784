# amaranth: UnusedElaboratable=no
import pytest

from hdl.fp.add import FpAdd
from tests.hdl.fp.harness import first_cycle, results
from tests.support import exact

PAIRS = [(a, b) for a in exact.CORNERS for b in exact.CORNERS]


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 6, 7, 9])
def test_result_appears_after_depth_cycles(depth):
    dut = FpAdd(depth=depth)
    assert dut.depth == depth
    zero = {"a": 0, "b": 0}
    assert first_cycle(dut, zero, {"a": exact.ONE, "b": exact.ONE}) == depth


def test_corner_pairs_are_added():
    operands = [{"a": a, "b": b, "subtract": 0} for a, b in PAIRS]
    assert results(FpAdd(), operands) == [exact.add(a, b) for a, b in PAIRS]


def test_corner_pairs_are_subtracted():
    operands = [{"a": a, "b": b, "subtract": 1} for a, b in PAIRS]
    assert results(FpAdd(), operands) == [exact.sub(a, b) for a, b in PAIRS]


def test_ties_and_cancellation_at_every_distance():
    pairs = [
        (upper << 23 | fraction, (lower << 23 | other) ^ sign)
        for upper in (30, 200)
        for lower in range(upper - 28, upper + 1)
        for sign in (0, exact.SIGN)
        for fraction, other in [
            (0, 0), (1, 0), (0, 1), (0x7FFFFF, 0x7FFFFF), (0x7FFFFF, 0), (0x400000, 0x400000),
            (0, 0x7FFFFF), (1, 1), (0x555555, 0x2AAAAA)]
    ]
    operands = [{"a": a, "b": b, "subtract": 0} for a, b in pairs]
    assert results(FpAdd(), operands) == [exact.add(a, b) for a, b in pairs]


@pytest.mark.parametrize("depth", [1, 3, 8])
def test_other_depths_give_the_same_results(depth, rng):
    pairs = rng.integers(0, 2**32, (300, 2)).tolist()
    operands = [{"a": a, "b": b, "subtract": i % 2} for i, (a, b) in enumerate(pairs)]
    expected = [(exact.add, exact.sub)[i % 2](a, b) for i, (a, b) in enumerate(pairs)]
    assert results(FpAdd(depth=depth), operands) == expected


@pytest.mark.parametrize("depth", [0, -1, 2.0, None])
def test_depth_is_checked(depth):
    message = f"Pipeline depth must be a positive integer, not {depth!r}"
    with pytest.raises(ValueError, match=message):
        FpAdd(depth=depth)
