"""cocotb tests of the loader over a serial line to a nano tile; counted in test_serial.py."""

import os

import cocotb
import numpy as np

from hdl.arch.binary import BinaryError, SystemBinary, TileBinary
from hdl.arch.config import single
from hdl.arch.encoding import encode
from hdl.arch.errors import Fault
from hdl.arch.presets import FPGA
from sim.bridge.board import Board
from sim.bridge.frames import frame
from sim.bridge.link import BridgeError, SerialLink
from sim.bridge.wire import Noise, Wire
from sim.image import initial_sram
from sim.rtl.loader import Loader
from tests.sim.bridge.checks import LIMIT, check_echo, check_product
from tests.sim.bridge.driving import PERIOD, reset
from tests.sim.bridge.programs import CFG, DIVISOR, SYSTEM, echo

SEED = int(os.environ["ONCYCLE_SEED"])
TIME = {"timeout_time": 20, "timeout_unit": "ms"}


async def begin(dut):
    dut.s_tvalid.value = 0      # the bus, which is not used
    await reset(dut)


async def connected(dut, **noise):
    """A board behind a line, its link and its wire."""
    await begin(dut)
    wire = Wire(dut, DIVISOR, PERIOD, **noise)
    link = SerialLink(wire)
    board = Board(link, SYSTEM)
    await board.connect()
    return board, link, wire


def nothing():
    """A loader of which only commands are used that need no program."""
    return Loader(SYSTEM, SystemBinary([TileBinary()]), [])


async def fails(awaitable, error, words):
    try:
        await awaitable
    except error as found:
        assert words in str(found), found
    else:
        raise AssertionError(f"no error with the words: {words}")


@cocotb.test(**TIME)
async def product_is_computed(dut):
    board, link, wire = await connected(dut)
    program, seen = await check_product(board, SEED)
    assert seen.cycles == program.plan.cycles(1)
    assert link.repeats == link.damaged == 0
    dut._log.info("%d bytes there, %d back, %d requests", wire.sent, wire.received, link.requests)


@cocotb.test(**TIME)
@cocotb.parametrize(number=[1, 2, 3])
async def noise_changes_no_result(dut, number):
    rng = np.random.default_rng([SEED, number])
    noise = {"to_board": Noise(rng, flips=1e-3, drops=3e-4),
             "from_board": Noise(rng, flips=3e-3, drops=2e-3)}
    board, link, wire = await connected(dut, **noise)
    await check_product(board, SEED + number)
    await check_echo(board, SEED + number)
    dut._log.info("%d of %d bytes damaged there, %d of %d back: %d requests, %d repeats",
                  noise["to_board"].done, wire.sent, noise["from_board"].done, wire.received,
                  link.requests, link.repeats)
    assert link.repeats >= 1 and noise["to_board"].done and noise["from_board"].done


@cocotb.test(**TIME)
async def vectors_go_to_the_tile_and_back(dut):
    board, *_ = await connected(dut)
    await check_echo(board, SEED)


@cocotb.test(**TIME)
async def two_loads_back_to_back(dut):
    board, *_ = await connected(dut)
    binary = echo()
    await board.load(binary, initial_sram(SYSTEM, binary, SEED + 1))
    await check_product(board, SEED)


@cocotb.test(**TIME)
async def broken_load_is_begun_again(dut):
    board, link, wire = await connected(dut)
    loader = nothing()
    await board.play(loader.load_program())
    await wire.write(frame(b"\1" + bytes(range(100)))[:60])     # the host dies within a frame
    for _ in range(2):
        board = Board(SerialLink(wire), SYSTEM)
        await board.connect()
        await board.play(loader.load_program())
    await check_product(board, SEED)


@cocotb.test(**TIME)
async def program_of_another_configuration_is_refused(dut):
    _, _, wire = await connected(dut)
    await fails(Board(SerialLink(wire), single(FPGA)).connect(), BinaryError,
                f"configuration {FPGA.digest}, the board has {CFG.digest}")


@cocotb.test(**TIME)
async def wrong_rate_is_reported_and_does_no_harm(dut):
    await begin(dut)
    wrong = Wire(dut, 3 * DIVISOR - 1, PERIOD)
    await fails(SerialLink(wrong, attempts=2).begin(), BridgeError, "the rate")
    board = Board(SerialLink(Wire(dut, DIVISOR, PERIOD)), SYSTEM)
    await board.connect()
    status = await board.status()
    assert not status.running and not status.errors and not status.lost


@cocotb.test(**TIME)
async def board_that_is_off_is_reported(dut):
    await begin(dut)
    dut.rst.value = 1
    await fails(SerialLink(Wire(dut, DIVISOR, PERIOD), attempts=2).begin(), BridgeError,
                "Nothing answers at the simulation")


@cocotb.test(**TIME)
async def reading_a_running_tile_is_refused(dut):
    board, *_ = await connected(dut)
    loader = nothing()
    await board.play(loader.start([1_000_000], 0, 1))
    await fails(board.read_sram(loader), BridgeError, "the tile is running")
    await fails(board.play(loader.start([1_000_000], 0, 1)), BridgeError, "refused record 0 of 1")
    await board.play(loader.clear())
    status = await board.status()
    assert status.running and not status.errors and int(dut.leds.value) & 1


@cocotb.test(**TIME)
async def endless_program_is_given_up(dut):
    board, *_ = await connected(dut)
    words = [encode(CFG, "mem_read", "LOOP", count=0),
             encode(CFG, "mem_read", "NOP", wait=255, ends=1), encode(CFG, "mem_read", "HALT")]
    binary = SystemBinary([TileBinary(words={"mem1.read": words})])
    loader = await board.reload(binary)
    seen = await board.run(loader, 0, 100_000, limit=LIMIT)
    assert seen.running == ((0, "mem1.read"),) and seen.cycles > LIMIT


@cocotb.test(**TIME)
async def start_that_is_too_early_is_a_fault(dut):
    board, *_ = await connected(dut)
    loader = nothing()
    await board.play(loader.start([1], 0, 1))
    assert (await board.status()).errors == 1 << Fault.START_PAST
    assert int(dut.leds.value) & 2
    await board.play(loader.clear())
    assert (await board.status()).errors == 0
