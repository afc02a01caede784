"""cocotb tests of the machine driver where things go wrong; counted in test_machine.py."""

import os
from pathlib import Path

import cocotb
import numpy as np

from hdl.arch.binary import SystemBinary
from hdl.arch.errors import Fault
from sim.image import initial_sram
from sim.rtl.machine import RtlMachine
from sim.rtl.player import command_file
from tests.sim.rtl.programs import SYSTEM, copy_binary


async def start(dut):
    machine = RtlMachine(dut, SYSTEM, Path(os.environ["ONCYCLE_EXCHANGE"]))
    await machine.reset()
    binary = copy_binary()
    return machine, await machine.load(binary, initial_sram(SYSTEM, binary, 1))


async def fails(awaitable, words):
    try:
        await awaitable
    except RuntimeError as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"no error with the words: {words}")


@cocotb.test(timeout_time=100, timeout_unit="us")
async def batch_without_files_is_refused(dut):
    machine, _ = await start(dut)
    await fails(machine.play([]), "was not played")


@cocotb.test(timeout_time=100, timeout_unit="us")
async def batch_that_ends_within_a_command_is_refused(dut):
    machine, loader = await start(dut)
    batch = loader.read_sram()
    directory = Path(os.environ["ONCYCLE_EXCHANGE"])
    rows = await machine.play(batch)
    assert [len(tile) for tile in rows] == [SYSTEM.tile.mem_words] * 2
    last = directory / command_file(machine.batches - 1, 1)
    last.write_bytes(last.read_bytes()[:-1])
    await fails(machine.replay(machine.batches - 1, 2), "ends within a command")


@cocotb.test(timeout_time=100, timeout_unit="us")
async def start_in_the_past_is_a_fault_until_it_is_cleared(dut):
    machine, loader = await start(dut)
    await machine.play(loader.start([1, machine.cycle + 1000], 0, 1))
    assert machine.faults() == [1 << Fault.START_PAST, 0]
    await machine.play(loader.clear())
    assert machine.faults() == [0, 0]


@cocotb.test(timeout_time=100, timeout_unit="us")
async def reading_a_running_tile_is_a_fault(dut):
    machine, loader = await start(dut)
    await machine.play(loader.start([machine.cycle + 1000] * 2, 0, 1))
    await machine.play(loader.read_sram()[:1])
    assert machine.faults() == [1 << Fault.HOST_BUSY, 0]


@cocotb.test(timeout_time=100, timeout_unit="us")
async def what_is_loaded_is_read_back(dut):
    machine, loader = await start(dut)
    binary = SystemBinary(copy_binary().tiles)
    sram = initial_sram(SYSTEM, binary, 1)
    for expected, observed in zip(sram, await machine.read_sram(loader), strict=True):
        np.testing.assert_array_equal(observed, expected)
