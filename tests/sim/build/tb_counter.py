"""cocotb tests of the counter in counter.py; how many there are is counted in test_run.py."""

import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge


async def start(dut):
    dut.en.value = 0
    dut.rst.value = 1
    Clock(dut.clk, 2, unit="ns").start()
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    await RisingEdge(dut.clk)


@cocotb.test(timeout_time=1, timeout_unit="us")
async def counts_while_enabled(dut):
    await start(dut)
    dut.en.value = 1
    await ClockCycles(dut.clk, 6)
    assert int(dut.count.value) == 5  # registers are read as they were before the edge


@cocotb.test(timeout_time=1, timeout_unit="us")
async def holds_while_disabled(dut):
    await start(dut)
    await ClockCycles(dut.clk, 6)
    assert int(dut.count.value) == int(os.environ.get("EXPECTED_COUNT", "0"))


@cocotb.test(timeout_time=1, timeout_unit="us")
@cocotb.parametrize(cycles=[1, 2, 3])
async def counts_exactly(dut, cycles):
    await start(dut)
    dut.en.value = 1
    await ClockCycles(dut.clk, cycles)
    dut.en.value = 0
    await ClockCycles(dut.clk, 2)
    assert int(dut.count.value) == cycles
