"""Lets a bench that reads and writes files run to its end."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge


@cocotb.test(timeout_time=1, timeout_unit="sec")
async def runs_to_the_end_of_its_file(dut):
    Clock(dut.clk, 2, unit="ns").start()
    await RisingEdge(dut.done)
