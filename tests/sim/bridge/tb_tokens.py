"""cocotb test of a model's tokens over a serial line; counted in test_tokens.py."""

import os

import cocotb
import numpy as np

from compiler.program import load
from hdl.arch.binary import SystemBinary, TileBinary
from sim.bridge.board import Board
from sim.bridge.link import SerialLink
from sim.bridge.wire import Noise, Wire
from sim.decoding import host_tokens
from sim.image import initial_sram
from tests.sim.bridge.driving import PERIOD, reset
from tests.sim.bridge.programs import DIVISOR

SEED = int(os.environ["ONCYCLE_SEED"])


@cocotb.test(timeout_time=100, timeout_unit="ms")
async def tokens_come_over_the_line(dut):
    program = load(os.environ["ONCYCLE_PROGRAM"])
    system, binary = program.system, program.binary
    await reset(dut)
    noise = Noise(np.random.default_rng(SEED), flips=1e-4)
    wire = Wire(dut, DIVISOR, PERIOD, to_board=noise)
    link = SerialLink(wire)
    board = Board(link, system)
    await board.connect()
    # Rows that the program leaves to chance are not sent: no result may depend on them.
    chance = initial_sram(system, SystemBinary([TileBinary()]), SEED)
    loader = await board.load(binary, initial_sram(system, binary, SEED), chance)
    steps = int(os.environ["ONCYCLE_STEPS"])
    seen = await board.run(loader, 0, steps, limit=program.plan.cycles(steps) + 1000)
    assert seen.faults == (0,) and seen.running == ()
    assert seen.cycles == program.plan.cycles(steps)
    assert " ".join(map(str, host_tokens(seen.host))) == os.environ["ONCYCLE_TOKENS"]
    dut._log.info("%d bytes there, %d of them damaged, %d back, %d requests, %d repeats",
                  wire.sent, noise.done, wire.received, link.requests, link.repeats)
    assert noise.done and link.repeats
