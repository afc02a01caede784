"""Clock and reset of the tests of bridges."""

from cocotb.clock import Clock
from cocotb.triggers import ClockCycles

__all__ = ["PERIOD", "reset"]

#: Of the clock, in ns.
PERIOD = 2


async def reset(dut):
    """Start the clock, with the line at rest, and reset."""
    dut.rx.value = 1
    dut.rst.value = 1
    Clock(dut.clk, PERIOD, unit="ns").start()
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    await ClockCycles(dut.clk, 4)
