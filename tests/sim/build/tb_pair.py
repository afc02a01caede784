"""cocotb test of two counters that are one hierarchical block."""

from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles


@cocotb.test(timeout_time=1, timeout_unit="us")
async def instances_count_on_their_own(dut):
    dut.en.value = 0b00
    dut.rst.value = 1
    Clock(dut.clk, 2, unit="ns").start()
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    dut.en.value = 0b10
    await ClockCycles(dut.clk, 3)
    dut.en.value = 0b11
    await ClockCycles(dut.clk, 2)
    dut.en.value = 0b00
    await ClockCycles(dut.clk, 2)
    assert int(dut.a.value) == 2
    assert int(dut.b.value) == 5
    undefined = (dut.top_register, dut.block_register, dut.block_memory)
    Path("undefined").write_text(" ".join(f"{int(port.value):#x}" for port in undefined))
