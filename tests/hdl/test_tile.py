from dataclasses import replace

import pytest

from hdl.arch import isa
from hdl.arch.encoding import crc16
from hdl.arch.errors import Fault
from hdl.arch.host import HostOp
from hdl.arch.presets import NANO
from hdl.arch.queues import queue_index, queues
from hdl.arch.timing import START_LEAD, timing
from hdl.emit import emit
from hdl.tile import SLICES, Tile
from tests.hdl.host import Host, Recorder, program
from tests.support.pysim import run

#: No power of two of SRAM words, so that addresses beyond the slice exist.
CFG = replace(NANO, mem_words=48, icu_words=16)
ROW = bytes([0x11, 0x22, 0x33, 0x44])
OTHER = bytes([0xA0, 0xB1, 0xC2, 0xD3])


def execute(bench, cfg=CFG, name="tile"):
    """Run ``bench(ctx, host, tile)`` and return the recorder of its events."""
    tile = Tile(cfg)
    recorder = Recorder(cfg, tile)

    async def testbench(ctx):
        await bench(ctx, Host(ctx, cfg, tile), tile)

    run(tile, testbench, background=[recorder.bench], name=name)
    return recorder


def errors(*faults):
    return sum(1 << fault for fault in faults)


def copy(cfg, source, target, delay=0):
    """Queues that copy word 3 of ``source`` to word 5 of ``target``, with a READ at 0."""
    east = cfg.position(target) > cfg.position(source)
    t_d, t_skew = timing(cfg)["mem_read", "READ"].t_d, timing(cfg)["mem_write", "WRITE"].t_skew
    wait = t_d + cfg.hops(source, target) - t_skew + delay
    read = {"address": 3, "east_en": int(east), "west_en": int(not east), "east": 2, "west": 2}
    write = {"address": 5, "source": 2, "source_west": int(not east), "source_last": 1}
    return wait, {f"{source}_read": [("READ", read)],
                  f"{target}_write": [("NOP", {"wait": wait - 1}), ("WRITE", write)]}


def test_copies_take_the_hops_and_delays_of_the_table():
    pairs = [("mem0", "mem1"), ("mem0", "mem3"), ("mem3", "mem0"), ("mem2", "mem1")]
    writes, issues = [], []

    async def bench(ctx, host, tile):
        for source, target in pairs:
            wait, queue_lines = copy(CFG, source, target)
            words = program(CFG, **queue_lines)
            await host.load(words, sram={(source, 3): ROW, (target, 5): OTHER})
            start = await host.start()
            await host.finish()
            assert ctx.get(tile.errors) == 0
            assert await host.read(target, 5) == ROW
            assert await host.read(source, 3) == ROW
            write_td = timing(CFG)["mem_write", "WRITE"].t_d
            writes.append((start + wait + write_td, target, 5, ROW))
            for name, cycle, index in ((f"{source}.read", start, 3),
                                       (f"{target}.write", start + wait, 5)):
                crc = crc16(words[name][-2], isa.word_bytes(CFG, "mem_" + name.split(".")[1]))
                issues.append((cycle, name, crc, index))

    events = execute(bench, name="copy")
    assert events.writes == writes
    assert sorted(events.issues) == sorted(issues)
    assert events.arrivals == []


def test_copy_a_cycle_off_reads_nothing_and_loses_the_value():
    async def bench(ctx, host, tile):
        for delay in (-1, 1):
            _, queue_lines = copy(CFG, "mem0", "mem2", delay)
            await host.load(program(CFG, **queue_lines), sram={("mem0", 3): ROW})
            await host.start()
            await host.finish()
            assert ctx.get(tile.errors) == errors(Fault.STREAM_INVALID, Fault.STREAM_LOST)
            await host.command(HostOp.CLEAR)

    execute(bench, name="copy_off")


def test_start_in_time_and_late():
    _, queue_lines = copy(CFG, "mem0", "mem1")
    starts = []

    async def bench(ctx, host, tile):
        await host.load(program(CFG, **queue_lines), sram={("mem0", 3): ROW})
        starts.append(await host.start(after=START_LEAD))
        await host.finish()
        assert ctx.get(tile.errors) == 0
        await host.start(after=START_LEAD - 1)
        assert not ctx.get(tile.running)
        await host.finish()
        assert ctx.get(tile.errors) == errors(Fault.START_PAST)
        await host.command(HostOp.CLEAR)
        assert ctx.get(tile.errors) == 0
        starts.append(await host.start(after=START_LEAD + 300))     # a second run, without reset
        await host.finish()
        assert ctx.get(tile.errors) == 0

    events = execute(bench, name="start")
    assert [(cycle, queue) for cycle, queue, *_ in events.issues if queue == "mem0.read"] == \
        [(start, "mem0.read") for start in starts]
    assert len(starts) == 2


def test_steps_of_the_start_reach_the_queues():
    loop = [("LOOP", {"count": 0}), ("READ", {"address": 1, "address_terms": (1,), "ends": 1})]
    seen = []

    async def bench(ctx, host, tile):
        tables = {"mem0.read": [(0, 0, 0), (0, 0xFFFFF, 3)]}
        await host.load(program(CFG, mem0_read=loop), tables)
        for first, steps in ((2, 4), (0, 1), (7, 0)):
            seen.append((await host.start(first_step=first, steps=steps), first, max(steps, 1)))
            await host.finish()

    events = execute(bench, name="steps")
    assert [(cycle, index) for cycle, _, _, index in events.issues] == \
        [(start + 1 + i, 1 + 3 * (first + i)) for start, first, steps in seen for i in range(steps)]


def test_running_lasts_from_start_until_every_queue_has_halted():
    async def bench(ctx, host, tile):
        await host.load(program(CFG, mem0_read=[("NOP", {"wait": 60})]))
        await host.start(after=30)
        numbers = queue_index(CFG)
        running = 0
        while ctx.get(tile.running):
            running += 1
            halted = ctx.get(tile.halted)
            if halted != (1 << len(numbers)) - 1 and running > 40:
                assert halted == (1 << len(numbers)) - 1 - (1 << numbers["mem0.read"])
            await ctx.tick()
        assert 30 + 60 - START_LEAD <= running <= 30 + 60 + START_LEAD

    execute(bench, name="running")


@pytest.mark.parametrize("when", ["before", "behind"])
def test_host_access_while_running_is_refused(when):
    """``before`` the start time, and ``behind`` it."""
    ops = [HostOp.SRAM, HostOp.WORD, HostOp.TABLE, HostOp.READ, HostOp.START]

    async def bench(ctx, host, tile):
        lines = [("NOP", {"wait": 50}), ("READ", {"address": 9, "address_terms": (1,)})]
        await host.load(program(CFG, mem0_read=lines), {"mem0.read": [(0, 0, 0), (0, 1, 1)]},
                        {(name, 0): ROW for name in CFG.slices("mem")})
        for op in ops:
            await host.start(after=20)
            await ctx.tick().repeat(2 if when == "before" else 30)
            assert ctx.get(tile.running) and ctx.get(tile.errors) == 0
            data = host.start_data(5000) if op == HostOp.START else (1 << CFG.lanes * 8 * 4) - 1
            await host.command(op, select=0xF if op == HostOp.SRAM else 0, address=0, data=data)
            await host.finish()
            assert ctx.get(tile.errors) == errors(Fault.HOST_BUSY)
            assert await host.read("mem1", 0) == ROW
            await host.command(HostOp.CLEAR)

    events = execute(bench, name="busy")
    assert [index for *_, index in events.issues] == [9] * len(ops)


@pytest.mark.parametrize("words", [{"mem_words": 8, "icu_words": 32},
                                   {"mem_words": 32, "icu_words": 8}])
def test_host_access_beyond_a_memory_does_nothing(words):
    cfg = replace(NANO, **words)
    table = [(0, 0, 0), *[(0, 1, 1)] * 7]
    lines = [("LOOP", {"count": 0}), ("READ", {"address_terms": (7,), "ends": 1})]

    async def bench(ctx, host, tile):
        sram = {(name, i): bytes([i] * 4) for name in cfg.slices("mem")
                for i in range(cfg.mem_words)}
        await host.load(program(cfg, mem0_read=lines), {"mem0.read": table}, sram)
        for address in range(8, 32):
            number = queue_index(cfg)["mem0.read"]
            if address >= cfg.mem_words:
                await host.command(HostOp.SRAM, select=0xF, address=address, data=0)
            if address >= cfg.icu_words:
                await host.command(HostOp.WORD, select=number, address=address, data=31)
            await host.command(HostOp.TABLE, select=number, address=address, data=0)
        for (name, address), content in sram.items():
            assert await host.read(name, address) == content
        await host.start(first_step=1)
        await host.finish()
        assert ctx.get(tile.errors) == 0

    events = execute(bench, cfg, name="beyond")
    assert [index for *_, index in events.issues] == [1]


READ_EAST = ("READ", {"east_en": 1, "east": 1})
NOP = ("NOP", {})
FAULTY = {
    Fault.STREAM_INVALID: {"mem1_write": [("WRITE", {"source": 4})]},
    # mem0's value is at mem1 when that writes the same stream; then both reach the edge unread,
    # unless mem3 clears them.
    Fault.STREAM_OVERWRITE: {
        "mem0_read": [READ_EAST], "mem1_read": [NOP, READ_EAST],
        "mem2_write": [("NOP", {"wait": 4}), ("WRITE", {"source": 1, "source_last": 1})]},
    Fault.STREAM_LOST: {"mem3_read": [("READ", {"east_en": 1})]},
    # An LW and an ABC read the same value, both `last`.
    Fault.STREAM_CONFLICT: {
        "mem0_read": [("READ", {"west_en": 1, "west": 1})],
        "mxm0_weight": [("NOP", {"wait": 2}),
                        ("LW", {"source": 1, "source_west": 1, "source_last": 1})],
        "mxm0_act": [("NOP", {"wait": 2}),
                     ("ABC", {"source": 1, "source_west": 1, "source_last": 1})]},
    Fault.SRAM_COLLISION: {
        "mem0_read": [("READ", {"east_en": 1, "east": 1})],
        "mem1_write": [("NOP", {"wait": 1}),
                       ("WRITE", {"source": 1, "source_last": 1, "address": 7})],
        "mem1_read": [("NOP", {"wait": 2}), ("READ", {"address": 7})]},
    Fault.SRAM_ADDRESS: {"mem3_read": [("READ", {"address": 50})]},
    # Both queues start on link 0 in the cycle in which mem1's value is at the c2c slice.
    Fault.LINK_BUSY: {
        "mem1_read": [READ_EAST],
        "link0_send": [("NOP", {"wait": 2}), ("SEND", {"links": 1, "source": 1})],
        "host_send": [("NOP", {"wait": 2}), ("SEND", {"links": 1, "source": 1, "source_last": 1})]},
    Fault.FIFO_UNDERFLOW: {"link0_recv": [("RECV", {})]},
    Fault.ICU_WORD: {"host_send": [("LOOP", {"ends": 1})]},
}


def test_every_fault_sets_its_bit_alone_until_cleared():
    found = {}

    async def bench(ctx, host, tile):
        for fault, queue_lines in FAULTY.items():
            await host.load(program(CFG, **queue_lines),
                            sram={(name, 0): ROW for name in CFG.slices("mem")})
            await host.start()
            assert ctx.get(tile.errors) == 0
            await host.finish()
            found[fault] = ctx.get(tile.errors)
            await host.command(HostOp.CLEAR)
            await ctx.tick().repeat(10)
            assert ctx.get(tile.errors) == 0

    execute(bench, name="fault")
    assert found == {fault: errors(fault) for fault in FAULTY}


@pytest.mark.parametrize("trace", [False, True])
def test_trace_port_is_optional(trace):
    tile = Tile(CFG, trace=trace)
    texts = emit(tile, "tile")
    assert trace == any("traced" in text for text in texts.values())
    assert {"issues", "writes", "arrivals"} & set(tile.signature.members) == \
        ({"issues", "writes", "arrivals"} if trace else set())


def test_every_queue_has_a_unit():
    """A queue whose unit the tile does not build would issue into nothing."""
    kinds = {queue.slice.rstrip("0123456789") for queue in queues(CFG)}
    assert kinds <= set(SLICES)
    assert all(queue.kind in SLICES[queue.slice.rstrip("0123456789")].issues
               for queue in queues(CFG))
