"""The clock of a tile on an ECP5: a PLL behind the oscillator of the board.

``clock = oscillator * multiply / divide``, and ``vco = clock * output`` must lie within the range
of the PLL (Lattice FPGA-DS-02012, ECP5 family data sheet: sysCLOCK PLL timing).
"""

from typing import NamedTuple

from amaranth.hdl import Const, Instance

__all__ = ["PllSettings", "pll", "settings"]

_VCO_MHZ = 400, 800
_PHASE_DETECTOR_MHZ = 3.125     #: least frequency behind the input divider
_LARGEST = 128                  #: of every divider
#: By how much the clock may differ from what is asked for.
_TOLERANCE = 0.005


class PllSettings(NamedTuple):
    """Dividers of the input, of the feedback and of the output."""
    divide: int
    multiply: int
    output: int


def settings(oscillator, mhz):
    """`PllSettings` for a clock of ``mhz`` from an ``oscillator``, both in MHz.

    Raises
    ------
    ValueError
        If the PLL has none.
    """
    for divide in range(1, min(_LARGEST, int(oscillator / _PHASE_DETECTOR_MHZ)) + 1):
        multiply = round(mhz * divide / oscillator)
        if not 1 <= multiply <= _LARGEST:
            continue
        clock = oscillator * multiply / divide
        output = int(_VCO_MHZ[1] / clock)
        if abs(clock / mhz - 1) <= _TOLERANCE and 1 <= output <= _LARGEST \
                and clock * output >= _VCO_MHZ[0]:
            return PllSettings(divide, multiply, output)
    raise ValueError(f"Clock must be one that the PLL makes of {oscillator} MHz, not {mhz!r} MHz: "
                     "take a multiple of 5 from 10 to 400")


def pll(oscillator, mhz, *, source, clock, locked):
    """`Instance` of a PLL: ``source`` of ``oscillator`` MHz to ``clock`` of ``mhz``."""
    found = settings(oscillator, mhz)
    phase = found.output // 2       # keeps the edges of the output with those of the input
    return Instance(
        "EHXPLLL",
        p_CLKI_DIV=found.divide, p_CLKFB_DIV=found.multiply, p_CLKOP_DIV=found.output,
        p_CLKOP_ENABLE="ENABLED", p_CLKOP_CPHASE=phase, p_CLKOP_FPHASE=0,
        p_FEEDBK_PATH="CLKOP", p_PLLRST_ENA="DISABLED", p_INTFB_WAKE="DISABLED",
        p_STDBY_ENABLE="DISABLED", p_DPHASE_SOURCE="DISABLED", p_OUTDIVIDER_MUXA="DIVA",
        i_CLKI=source, i_CLKFB=clock, i_RST=Const(0, 1), i_STDBY=Const(0, 1),
        i_PLLWAKESYNC=Const(0, 1), i_ENCLKOP=Const(0, 1), i_PHASESEL0=Const(0, 1),
        i_PHASESEL1=Const(0, 1), i_PHASEDIR=Const(1, 1), i_PHASESTEP=Const(1, 1),
        i_PHASELOADREG=Const(1, 1), o_CLKOP=clock, o_LOCK=locked)
