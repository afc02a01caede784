"""Gives a component the inputs of a file, cycle by cycle, and writes its outputs to another."""

import json
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def outputs_of_the_component(dut):
    stimulus = json.loads(Path("stimulus.json").read_text())
    inputs = {getattr(dut, port): values for port, values in stimulus["inputs"].items()}
    outputs = {port: getattr(dut, port) for port in stimulus["outputs"]}
    for handle in inputs:
        handle.value = 0
    dut.rst.value = 1
    Clock(dut.clk, 2, unit="ns").start()
    for _ in range(2):
        await FallingEdge(dut.clk)
    dut.rst.value = 0
    found = {port: [] for port in outputs}
    for values in zip(*inputs.values(), strict=True):
        for handle, value in zip(inputs, values, strict=True):
            handle.value = int(value, 16)
        await ReadOnly()
        for port, handle in outputs.items():
            found[port].append(hex(int(handle.value)))
        await FallingEdge(dut.clk)
    Path("outputs.json").write_text(json.dumps(found))
