"""The top level of a board: dividers of the PLL, and what is emitted."""

import pytest

from hdl.arch.presets import NANO
from hdl.board import BoardTop
from hdl.board.pll import settings
from hdl.board.top import TOP
from hdl.emit import emit


@pytest.mark.parametrize("mhz", [10, 25, 50, 60, 64, 75, 80, 100])
def test_pll_makes_the_clock_within_its_range(mhz):
    found = settings(25, mhz)
    clock = 25 * found.multiply / found.divide
    assert clock == pytest.approx(mhz, rel=0.005)
    assert 400 <= clock * found.output <= 800
    assert 25 / found.divide >= 3.125
    assert all(1 <= divider <= 128 for divider in found)


@pytest.mark.parametrize("mhz", [2, 900])
def test_clock_that_the_pll_cannot_make_is_refused(mhz):
    with pytest.raises(ValueError, match=f"one that the PLL makes of 25 MHz, not {mhz} MHz"):
        settings(25, mhz)


def test_tile_gets_clock_and_reset_of_the_pll():
    text = "\n".join(emit(BoardTop(NANO, mhz=50, baud=1_000_000), TOP).values())
    pll, = [block.partition(");")[0] for block in text.split("EHXPLLL")[1:]]
    clock = pll.partition(".CLKOP(")[2].partition(")")[0]
    _, _, top = text.partition(f"module {TOP}(")
    instance = top.partition("serial_tile  serial (")[2] or top.partition("serial_tile serial (")[2]
    connections = instance.partition(");")[0]
    assert f".clk({clock})" in connections
    assert ".rst(reset)" in connections
