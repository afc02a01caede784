"""Execution of records, against a host's side of a tile that the test plays."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Shape

from hdl.arch.bridge import BridgeOp, Result, command_bytes, status_layout
from hdl.arch.host import READ_LATENCY, HostOp, command_layout, row_bits, start_layout
from hdl.arch.presets import FPGA, NANO
from hdl.bridge.execute import FLITS, Executor
from tests.hdl.bridge.streams import get_packet, put_packet
from tests.support.pysim import run

BUFFER = 256
CONFIGS = [NANO, replace(FPGA, mem_words=300)]


def record(cfg, op, data=b"", select=0, address=0):
    sizes = command_bytes(cfg)
    return b"".join([bytes([op.value]), len(data).to_bytes(2, "little"),
                     select.to_bytes(sizes["select"], "little"),
                     address.to_bytes(sizes["address"], "little"), data])


def ended(returned, result, count):
    return returned + bytes(-len(returned) % 4) + bytes([result.value, 0]) \
        + count.to_bytes(2, "little")


def row(cfg, address):
    """What the tile returns of a word."""
    return bytes((7 * address + lane) % 256 for lane in range(row_bits(cfg) // 8))


class Bench:
    """Requests to an executor, and the commands that it gives its tile."""

    def __init__(self, cfg, rng=None):
        self.cfg, self.rng = cfg, rng
        self.dut = Executor(cfg, BUFFER)
        self.commands, self.flits, self.cycle = [], [], 0

    async def tile(self, ctx):
        """Commands with their cycle; a READ's row is there exactly when it is due."""
        dut, due = self.dut, {}
        names = [name for name, _ in command_layout(self.cfg)]
        while True:
            ctx.set(dut.host.cycle, self.cycle)
            content = due.pop(self.cycle, b"\xEE" * 3)
            ctx.set(dut.host.read_data, int.from_bytes(content, "little"))
            command = {name: int(ctx.get(getattr(dut.host.command, name)).value)
                       if name == "op" else ctx.get(getattr(dut.host.command, name))
                       for name in names}
            if command["op"]:
                self.commands.append((self.cycle, *command.values()))
            if command["op"] == HostOp.READ.value:
                due[self.cycle + READ_LATENCY] = row(self.cfg, command["address"])
            if ctx.get(dut.to_tile.valid):
                self.flits.append(ctx.get(dut.to_tile.data))
            await ctx.tick()
            self.cycle += 1

    def run(self, requests, before=None):
        """Answers to requests, sent and taken by two processes."""
        answers = []

        async def sender(ctx):
            if before is not None:
                await before(ctx)
            for request in requests:
                await put_packet(ctx, self.dut.request, request, self.rng, 0.3)

        async def receiver(ctx):
            for _ in requests:
                answers.append(await get_packet(ctx, self.dut.answer, self.rng, 0.3))

        run(self.dut, sender, receiver, background=[self.tile])
        return answers


@pytest.mark.parametrize("cfg", CONFIGS, ids=["nano", "fpga"])
def test_records_are_commands(rng, cfg):
    widths = {name: Shape.cast(field.shape).width for name, field in command_layout(cfg)}
    size = command_bytes(cfg)["data"]
    requests, expected = [], []
    for _ in range(12):
        records, returned = [], b""
        for _ in range(int(rng.integers(1, 5))):
            op = HostOp(int(rng.choice([1, 2, 3, 4, 6])))
            select, address = (int(rng.integers(1 << widths[name]))
                               for name in ("select", "address"))
            data = rng.bytes(int(rng.choice([0, 1, size - 1, size, rng.integers(size)])))
            records.append(record(cfg, op, data, select, address))
            expected.append((op.value, select, address, int.from_bytes(data, "little")))
            if op is HostOp.READ:
                returned += row(cfg, address)
        filling = bytes(int(rng.integers(3)))       # zeros between records are skipped
        requests.append((filling.join(records) + filling,
                         ended(returned, Result.OK, len(records))))
    bench = Bench(cfg, rng)
    assert bench.run([request for request, _ in requests]) == [answer for _, answer in requests]
    assert [command[1:] for command in bench.commands] == expected


def test_time_of_a_start_counts_from_its_own_cycle():
    data = start_layout.const({"time": 1000, "first_step": 77, "steps": 5}).as_bits()
    bench = Bench(NANO)
    bench.run([record(NANO, HostOp.START, data.to_bytes(9, "little"))])
    (cycle, op, _, _, given), = bench.commands
    start = start_layout.from_bits(given)
    assert op == HostOp.START.value
    assert (start.time, start.first_step, start.steps) == (cycle + 1000, 77, 5)


def test_what_is_wrong_ends_the_request_and_nothing_of_it_counts():
    clear, size = record(NANO, HostOp.CLEAR), command_bytes(NANO)["data"]
    sram = record(NANO, HostOp.SRAM, b"abcdef", 1, 2)
    cases = [(clear + bytes([op]) + clear, Result.UNKNOWN, 1) for op in (7, 12, 255)]
    cases += [(clear + sram[:end], Result.CUT, 1) for end in range(1, len(sram))]
    cases += [(record(NANO, HostOp.SRAM, bytes(size + 1)) + clear, Result.LONG, 0),
              (b"", Result.OK, 0)]
    read = record(NANO, HostOp.READ)
    fits = (BUFFER - 8) // (row_bits(NANO) // 8)
    cases += [(read * (fits + 1), Result.ROOM, fits)]
    requests, answers = [], []
    for body, result, count in cases:
        requests += [b"\0" + body, clear]
        returned = row(NANO, 0) * count if result is Result.ROOM else b""
        answers += [ended(returned, result, count), ended(b"", Result.OK, 1)]
    bench = Bench(NANO)
    assert bench.run(requests) == answers
    assert all(command[1] in (HostOp.CLEAR.value, HostOp.READ.value) for command in bench.commands)


def test_a_running_tile_gets_clear_alone():
    async def start(ctx):
        ctx.set(bench.dut.host.running, 1)

    bench = Bench(NANO)
    allowed = [record(NANO, HostOp.CLEAR), record(NANO, BridgeOp.STATUS)]
    ops = (HostOp.SRAM, HostOp.WORD, HostOp.TABLE, HostOp.READ, HostOp.START)
    answers = bench.run([b"".join([*allowed, record(NANO, op)]) for op in ops], start)
    assert [answer[-4] for answer in answers] == [Result.RUNNING.value] * len(ops)
    assert [answer[-2] for answer in answers] == [2] * len(ops)
    assert [command[1] for command in bench.commands] == [HostOp.CLEAR.value] * len(ops)


def status(cfg, answer):
    """Fields of an answer to STATUS alone."""
    layout = status_layout(cfg)
    size = layout.size // 8
    assert answer == ended(answer[:size], Result.OK, 1)
    view = layout.from_bits(int.from_bytes(answer[:size], "little"))
    return {name: getattr(view, name) for name, _ in layout}


def test_status_is_that_of_the_tile():
    async def play(ctx):
        host = bench.dut.host
        for running in (1, 0):
            ctx.set(host.running, running)
            await ctx.tick().repeat(50)
        ctx.set(host.errors, 0x5A5)
        ctx.set(host.halted, 0x3FFFF)

    bench = Bench(NANO)
    ask = record(NANO, BridgeOp.STATUS)
    start = record(NANO, HostOp.START, (500).to_bytes(9, "little"))
    found = [status(NANO, answer) for answer in bench.run([ask, start, ask], play)[::2]]
    assert found[0]["stopped"] == 50 and found[0]["errors"] == 0x5A5
    assert found[0]["halted"] == 0x3FFFF and not found[0]["running"]
    assert found[1]["start"] == bench.commands[0][0] + 500
    assert found[1]["cycle"] > bench.commands[0][0]


def test_flits_wait_in_order_and_what_finds_no_room_is_reported():
    taken = BUFFER // 2 - 8
    take = record(NANO, BridgeOp.TAKE, (taken).to_bytes(2, "little"))

    async def flood(ctx):
        for value in range(FLITS + 5):
            ctx.set(bench.dut.from_tile.valid, 1)
            ctx.set(bench.dut.from_tile.data, value)
            await ctx.tick()
        ctx.set(bench.dut.from_tile.valid, 0)
        await ctx.tick().repeat(5)

    bench = Bench(NANO)
    asked = [record(NANO, BridgeOp.STATUS), *[take] * 10, record(NANO, HostOp.CLEAR),
             record(NANO, BridgeOp.STATUS)]
    first, *answers, _, last = bench.run(asked, flood)
    flits = []
    for answer in answers:
        count = int.from_bytes(answer[:2], "little")
        flits += np.frombuffer(answer[2:2 + 2 * count], "<u2").tolist()
    before, after = status(NANO, first), status(NANO, last)
    assert flits == list(range(len(flits))) and before["waiting"] == len(flits) >= FLITS
    assert (before["lost"], after["lost"], after["waiting"]) == (1, 0, 0)


@pytest.mark.parametrize("size", [0, 1, 2, 7, 16])
def test_put_sends_whole_flits(rng, size):
    content = rng.bytes(size)
    bench = Bench(NANO)
    assert bench.run([record(NANO, BridgeOp.PUT, content)]) == [ended(b"", Result.OK, 1)]
    expected = np.frombuffer(content + bytes(size % 2), "<u2").tolist()
    assert bench.flits == expected
