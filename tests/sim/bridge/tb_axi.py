"""cocotb tests of the loader over AXI4-Stream to a nano tile; counted in test_axi.py."""

import os

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from hdl.arch.binary import SystemBinary, TileBinary
from hdl.arch.bridge import BridgeOp, Result
from hdl.arch.host import HostOp
from sim.bridge.board import Board
from sim.bridge.link import RequestLink
from sim.bridge.records import identity_request, split_answer
from sim.rtl.loader import Loader
from tests.sim.bridge.bus import Bus
from tests.sim.bridge.checks import check_echo, check_product
from tests.sim.bridge.driving import reset
from tests.sim.bridge.programs import CFG, SYSTEM

SEED = int(os.environ["ONCYCLE_SEED"])
TIME = {"timeout_time": 2, "timeout_unit": "ms"}
PATIENCE = 20_000       #: cycles


class BusLink(RequestLink):
    """Requests over a `Bus`: filled up with zeros to whole words, without frames."""

    name = "the bus"

    def __init__(self, bus):
        self._bus = bus

    async def begin(self):
        """A bus has nothing that could be broken off."""

    async def ask(self, records, returned):
        records += bytes(-len(records) % 4)
        words = np.frombuffer(records, "<u4").tolist()
        sending = cocotb.start_soon(self._bus.send(words))
        answer = await self._bus.receive(PATIENCE)
        await sending
        return split_answer(np.array(answer, "<u4").tobytes())


async def connected(dut, **pauses):
    bus = Bus(dut, np.random.default_rng(SEED), **pauses)
    await reset(dut)
    board = Board(BusLink(bus), SYSTEM)
    await board.connect()
    return board, bus


@cocotb.test(**TIME)
@cocotb.parametrize(pauses=[{}, {"idle": 0.5}, {"stall": 0.7}, {"idle": 0.3, "stall": 0.3}])
async def product_is_computed(dut, pauses):
    board, bus = await connected(dut, **pauses)
    program, seen = await check_product(board, SEED)
    assert seen.cycles == program.plan.cycles(1)
    assert bus.held and bool(bus.waited) == ("stall" in pauses)


@cocotb.test(**TIME)
async def vectors_go_to_the_tile_and_back(dut):
    board, _ = await connected(dut, idle=0.2, stall=0.2)
    await check_echo(board, SEED)


@cocotb.test(**TIME)
async def sink_that_takes_nothing_holds_up_the_requests(dut):
    _, bus = await connected(dut)
    bus.stall = 1.0
    records = identity_request(CFG).records * 2
    words = np.frombuffer(records + bytes(-len(records) % 4), "<u4").tolist()
    sending = cocotb.start_soon(bus.send(words))
    await ClockCycles(dut.clk, 2000)
    assert not sending.done()
    bus.stall = 0.0
    await sending
    returned, trailer = split_answer(np.array(await bus.receive(PATIENCE), "<u4").tobytes())
    assert trailer == (Result.OK, 2) and returned[:12] == returned[12:]


@cocotb.test(**TIME)
async def bad_requests_are_refused_and_the_next_is_executed(dut):
    board, bus = await connected(dut, idle=0.2, stall=0.2)
    link = BusLink(bus)
    good = identity_request(CFG).records
    head = bytes([HostOp.SRAM.value, 17, 0, 1, 0])      # more data than the 16 bytes of a row
    for records, expected in [
            (b"\xff\xff\xff\xff", (Result.UNKNOWN, 0)),
            (good + b"\x0c", (Result.UNKNOWN, 1)),
            (good + bytes([BridgeOp.PUT.value]) + b"\x09\0\0\0", (Result.CUT, 1)),
            (good[:4], (Result.CUT, 0)),
            (head + bytes(17), (Result.LONG, 0)),
            (bytes(4), (Result.OK, 0)),
            (bytes([BridgeOp.TAKE.value, 2, 0, 0, 0, 255, 255]) + good, (Result.ROOM, 0))]:
        _, trailer = await link.ask(records, 0)
        assert trailer == expected, (records, trailer)
        assert (await link.ask(good, 12))[1] == (Result.OK, 1)
    loader = Loader(SYSTEM, SystemBinary([TileBinary()]), [])
    await board.play(loader.start([50_000], 0, 1))
    assert (await link.ask(bytes([HostOp.READ.value, 0, 0, 0, 0]), 16))[1] == (Result.RUNNING, 0)
    assert (await board.status()).errors == 0
