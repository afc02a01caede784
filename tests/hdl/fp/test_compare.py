# amaranth: UnusedElaboratable=no
import pytest

from hdl.fp.compare import CompareOp, FpCompare
from tests.hdl.fp.harness import first_cycle, results
from tests.support import exact

EXPECTED = {
    CompareOp.MAX: exact.maximum,
    CompareOp.MIN: exact.minimum,
    CompareOp.LT: exact.less,
    CompareOp.LE: exact.less_equal,
    CompareOp.EQ: exact.equal,
}


@pytest.mark.parametrize("depth", [1, 2, 3, 6])
@pytest.mark.parametrize("op", CompareOp)
def test_result_appears_after_depth_cycles(op, depth):
    dut = FpCompare(depth=depth)
    assert dut.depth == depth
    # results 2, 2, 1, 1, 1 against those of NaN
    other = exact.ONE if op == CompareOp.EQ else 0x40000000
    before = {"op": op, "a": exact.NAN, "b": 0x40000000}
    a = {CompareOp.MIN: 0x40400000, CompareOp.MAX: 0}.get(op, exact.ONE)
    assert first_cycle(dut, before, {"op": op, "a": a, "b": other}) == depth


@pytest.mark.parametrize("op", CompareOp)
def test_corner_pairs(op):
    pairs = [(a, b) for a in exact.CORNERS for b in exact.CORNERS]
    operands = [{"op": op, "a": a, "b": b} for a, b in pairs]
    assert results(FpCompare(), operands) == [EXPECTED[op](a, b) for a, b in pairs]


def test_operations_follow_each_other_without_a_gap(rng):
    draws = rng.integers(0, 2**32, (400, 2)).tolist()
    ops = [list(CompareOp)[i] for i in rng.integers(0, len(CompareOp), 400)]
    operands = [{"op": op, "a": a, "b": b} for op, (a, b) in zip(ops, draws, strict=True)]
    expected = [EXPECTED[op](a, b) for op, (a, b) in zip(ops, draws, strict=True)]
    for depth in (1, 6):
        assert results(FpCompare(depth=depth), operands) == expected


def test_every_operation_has_an_expectation():
    assert set(EXPECTED) == set(CompareOp)


def test_depth_is_checked():
    with pytest.raises(ValueError, match="Pipeline depth must be a positive integer, not 0"):
        FpCompare(depth=0)
