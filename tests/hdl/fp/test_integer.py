# amaranth: UnusedElaboratable=no
import pytest

from hdl.fp.integer import IntAdd
from tests.hdl.fp.harness import first_cycle, results
from tests.support import exact


@pytest.mark.parametrize("depth", [1, 2, 6])
def test_result_appears_after_depth_cycles(depth):
    dut = IntAdd(depth=depth)
    assert dut.depth == depth
    assert first_cycle(dut, {"a": 0}, {"a": 1}) == depth


@pytest.mark.parametrize("subtract", [0, 1])
def test_corner_pairs_wrap(subtract):
    pairs = [(a, b) for a in exact.INT32_CORNERS[::2] for b in exact.INT32_CORNERS[::2]]
    operands = [{"a": a, "b": b, "subtract": subtract} for a, b in pairs]
    expected = [(a - b if subtract else a + b) % 2**32 for a, b in pairs]
    assert results(IntAdd(), operands) == expected


def test_depth_is_checked():
    with pytest.raises(ValueError, match="Pipeline depth must be a positive integer, not 0"):
        IntAdd(depth=0)
