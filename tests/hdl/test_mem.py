from dataclasses import replace

import pytest

from hdl.arch.encoding import encode
from hdl.arch.errors import Fault
from hdl.arch.presets import NANO
from hdl.arch.timing import rules, timing
from hdl.mem import Mem
from tests.support.pysim import run

#: No power of two, so that addresses beyond the slice exist.
CFG = replace(NANO, mem_words=48)


def vector(rng):
    return int(rng.integers(1 << 8 * CFG.lanes))


class Driver:
    """Issues instructions into a Mem, one cycle each."""

    def __init__(self, ctx, mem):
        self._ctx = ctx
        self._mem = mem

    def issue(self, side, op, address, *, predicate=1, **insn):
        port = getattr(self._mem, side)
        self._ctx.set(port.valid, 1)
        self._ctx.set(port.word, encode(CFG, f"mem_{side}", op, **insn))
        self._ctx.set(port.index.address, address)
        self._ctx.set(port.predicate, predicate)

    def put(self, *vectors, tap="tap"):
        """What the streams give to WRITE, or lane 0 of four streams to GATHER."""
        data = getattr(self._mem, tap).data
        for i, value in enumerate(vectors):
            self._ctx.set(data[i], value)

    async def tick(self):
        await self._ctx.tick()
        self._ctx.set(self._mem.read.valid, 0)
        self._ctx.set(self._mem.write.valid, 0)

    async def write(self, address, value, **options):
        self.issue("write", "WRITE", address, **options)
        self.put(value)
        await self.tick()

    async def idle(self, cycles=4):
        for _ in range(cycles):
            await self.tick()


def execute(bench, name):
    mem = Mem(CFG)

    async def testbench(ctx):
        await bench(ctx, mem, Driver(ctx, mem))

    run(mem, testbench, name=f"mem_{name}")


def targets(ctx, mem):
    port = mem.port
    return {d: ctx.get(getattr(port, d)) for d in ("east", "west")
            if ctx.get(getattr(port, f"{d}_en"))}


@pytest.mark.parametrize("op", ["READ", "GATHER"])
def test_delay_of_reads_is_that_of_the_table(op):
    async def bench(ctx, mem, driver):
        await driver.write(5, 0x01020304)
        await driver.idle()
        driver.put(5, 0, 0, 0, tap="gather_tap")
        driver.issue("read", op, 5 if op == "READ" else 0, east_en=1, east=3, west_en=1, west=7)
        for cycle in range(1, 5):
            await driver.tick()
            if cycle == timing(CFG)["mem_read", op].t_d:
                assert targets(ctx, mem) == {"east": 3, "west": 7}
                assert ctx.get(mem.port.data[0]) == 0x01020304
            else:
                assert targets(ctx, mem) == {}
            assert ctx.get(mem.faults) == 0
    execute(bench, f"delay_{op}")


def test_delay_of_write_and_its_trace():
    async def bench(ctx, mem, driver):
        driver.issue("write", "WRITE", 9, source=6, source_west=1, source_last=1)
        driver.put(0xAABBCCDD)
        assert (ctx.get(mem.tap.en), ctx.get(mem.tap.stream), ctx.get(mem.tap.west),
                ctx.get(mem.tap.last)) == (1, 6, 1, 1)
        for cycle in range(4):
            written = ctx.get(mem.written)
            assert written.valid == (cycle == timing(CFG)["mem_write", "WRITE"].t_d)
            if written.valid:
                assert (written.address, written.data) == (9, 0xAABBCCDD)
            await driver.tick()
            assert not ctx.get(mem.tap.en)
    execute(bench, "write")


@pytest.mark.parametrize("distance", range(5))
def test_write_to_read_distance(distance):
    async def bench(ctx, mem, driver):
        await driver.write(7, 0x11111111)
        await driver.idle()
        driver.issue("write", "WRITE", 7)
        driver.put(0x22222222)
        for _ in range(distance):
            await driver.tick()
        driver.issue("read", "READ", 7, east_en=1)
        await driver.tick()
        sees = distance >= rules(CFG).write_to_read
        assert ctx.get(mem.port.data[0]) == (0x22222222 if sees else 0x11111111)
        # The access is in the cycle of the issue, the write `t_d` behind its own.
        collides = distance == timing(CFG)["mem_write", "WRITE"].t_d
        assert ctx.get(mem.faults) == (1 << Fault.SRAM_COLLISION if collides else 0)
    execute(bench, f"distance_{distance}")


def test_false_predicate_reads_the_stream_but_does_not_write():
    async def bench(ctx, mem, driver):
        await driver.write(3, 0x55555555)
        driver.issue("write", "WRITE", 3, predicate=0)
        driver.put(0x66666666)
        assert ctx.get(mem.tap.en)
        await driver.tick()
        assert not ctx.get(mem.written.valid)
        driver.issue("write", "WRITE", CFG.mem_words, predicate=0)
        await driver.tick()
        assert ctx.get(mem.faults) == 0
        driver.issue("read", "READ", 3, east_en=1)
        await driver.tick()
        assert ctx.get(mem.port.data[0]) == 0x55555555
    execute(bench, "predicate")


def test_addresses_outside_the_slice():
    outside = CFG.mem_words

    async def bench(ctx, mem, driver):
        for address in range(outside):
            await driver.write(address, 0x77777777)
        driver.issue("read", "READ", outside, west_en=1)
        await driver.tick()
        assert targets(ctx, mem) == {"west": 0}
        assert ctx.get(mem.port.data[0]) == 0
        assert ctx.get(mem.faults) == 1 << Fault.SRAM_ADDRESS
        driver.issue("write", "WRITE", outside + 3)
        driver.put(0x12345678)
        await driver.tick()
        assert not ctx.get(mem.written.valid)
        assert ctx.get(mem.faults) == 1 << Fault.SRAM_ADDRESS
        await driver.idle()
        for address in range(outside):
            driver.issue("read", "READ", address, east_en=1)
            await driver.tick()
            assert ctx.get(mem.port.data[0]) == 0x77777777
            assert ctx.get(mem.faults) == 0
    execute(bench, "outside")


@pytest.mark.parametrize("base, offset", [
    (0, 0), (5, 20), (20, -5), (47, 0), (0, 47), (0, 48), (1, 47), (0, -1), (3, -4), (0, 256),
    (0, 1 << 30), (0, -(1 << 31)), (40, (1 << 31) - 1)])
def test_gather_adds_and_compares_on_32_bits(base, offset):
    async def bench(ctx, mem, driver):
        for address in range(CFG.mem_words):
            await driver.write(address, address + 1)
        planes = [(offset >> 8 * i & 0xFF) | 0xABCDEF00 for i in range(4)]
        driver.put(*planes, tap="gather_tap")
        driver.issue("read", "GATHER", base, source=4, source_west=1, source_last=1, east_en=1)
        assert (ctx.get(mem.gather_tap.en), ctx.get(mem.gather_tap.count_log2)) == (1, 2)
        assert ctx.get(mem.gather_tap.last) and ctx.get(mem.gather_tap.west)
        await driver.tick()
        await driver.tick()
        address = base + offset
        expected = address + 1 if 0 <= address < CFG.mem_words else 0
        assert ctx.get(mem.port.data[0]) == expected
        assert ctx.get(mem.faults) == 0
    execute(bench, "gather")


def test_gather_wins_over_a_read_behind_it_but_not_over_a_gather():
    async def bench(ctx, mem, driver):
        for address in range(4):
            await driver.write(address, 0x10 + address)
        await driver.idle()
        driver.put(1, 0, 0, 0, tap="gather_tap")
        driver.issue("read", "GATHER", 0, east_en=1, east=2)
        await driver.tick()
        driver.issue("read", "GATHER", 1, east_en=1, east=3)
        await driver.tick()
        assert (targets(ctx, mem), ctx.get(mem.faults)) == ({"east": 2}, 0)
        assert ctx.get(mem.port.data[0]) == 0x11
        driver.issue("read", "READ", 0, west_en=1, west=5)
        await driver.tick()
        assert targets(ctx, mem) == {"east": 3}
        assert ctx.get(mem.faults) == 1 << Fault.SRAM_COLLISION
        assert ctx.get(mem.port.data[0]) == 0x12
        await driver.tick()
        assert (targets(ctx, mem), ctx.get(mem.faults)) == ({}, 0)
    execute(bench, "gather_gather")


def test_gather_collides_with_a_write():
    async def bench(ctx, mem, driver):
        await driver.write(6, 0x1)
        await driver.idle()
        driver.put(6, 0, 0, 0, tap="gather_tap")
        driver.put(0x2)
        driver.issue("read", "GATHER", 0, east_en=1)
        driver.issue("write", "WRITE", 6)
        await driver.tick()
        await driver.tick()
        assert ctx.get(mem.port.data[0]) == 0x1
        assert ctx.get(mem.faults) == 1 << Fault.SRAM_COLLISION
    execute(bench, "gather_write")


def test_random_reads_and_writes_against_a_list(rng):
    async def bench(ctx, mem, driver):
        content = [None] * CFG.mem_words
        expected, pending = None, None
        for _ in range(300):
            if expected is not None:
                assert ctx.get(mem.port.data[0]) == expected
            expected = None
            address = int(rng.integers(CFG.mem_words))
            driver.issue("read", "READ", address, east_en=1)
            known = content[address]
            if pending is not None:         # the write of this cycle is seen from the next on
                content[pending[0]] = pending[1]
            pending = None
            if known is not None:
                expected = known
            if rng.random() < 0.6:
                pending = int(rng.integers(CFG.mem_words)), vector(rng)
                driver.issue("write", "WRITE", pending[0])
                driver.put(pending[1])
            await driver.tick()
        assert sum(word is not None for word in content) > 30
    execute(bench, "random")


def test_host_reads_and_writes():
    async def bench(ctx, mem, driver):
        ctx.set(mem.host.write_en, 1)
        for address in range(CFG.mem_words):
            ctx.set(mem.host.address, address)
            ctx.set(mem.host.write_data, address * 3)
            assert not ctx.get(mem.written.valid)
            await ctx.tick()
        ctx.set(mem.host.write_en, 0)
        ctx.set(mem.host.read_en, 1)
        for address in range(CFG.mem_words):
            ctx.set(mem.host.address, address)
            await ctx.tick()
            assert ctx.get(mem.host.read_data) == address * 3
            assert targets(ctx, mem) == {}
    execute(bench, "host")
