"""Drives the group of steps of test_emit from a file and writes what it shows."""

import json
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def outputs_of_the_group(dut):
    stimulus = json.loads(Path("stimulus.json").read_text())
    dut.en.value = 0
    dut.back.value = 1
    dut.rst.value = 0
    Clock(dut.clk, 2, unit="ns").start()
    await FallingEdge(dut.clk)
    before = [int(dut.value.value), int(dut.past.value)]
    Path("before_reset.json").write_text(json.dumps(before))
    dut.rst.value = 1
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    found = []
    for en, back in stimulus:
        dut.en.value = en
        dut.back.value = back
        await ReadOnly()
        found.append([int(h.value) for h in (dut.value, dut.past, dut.odd)])
        await FallingEdge(dut.clk)
    Path("outputs.json").write_text(json.dumps(found))
