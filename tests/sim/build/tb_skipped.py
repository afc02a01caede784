"""A cocotb module of which one test is skipped."""

import cocotb


@cocotb.test()
async def runs(dut):
    dut.en.value = 0


@cocotb.test(skip=True)
async def is_skipped(dut):
    dut.en.value = 0
