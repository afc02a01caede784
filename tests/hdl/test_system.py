# amaranth: UnusedElaboratable=no
from dataclasses import replace

import pytest
from amaranth import ResetInserter, Signal

from hdl.arch.config import pair, single
from hdl.arch.errors import Fault
from hdl.arch.host import HostOp
from hdl.arch.presets import NANO
from hdl.arch.timing import link_arrival, timing
from hdl.system import DelayLine, System, system_verilog
from tests.hdl.host import Host, Recorder, program
from tests.support.pysim import run

CFG = replace(NANO, mem_words=16, icu_words=16)
ROWS = [bytes([0x10 * i + lane for lane in range(4)]) for i in range(1, 9)]


class Side:
    """The members of one tile of a system, under the names that a tile gives them."""

    def __init__(self, system, tile):
        self._system = system
        self._tile = tile

    def __getattr__(self, name):
        return getattr(self._system, f"tile{self._tile}_{name}")


@pytest.mark.parametrize("longest", [1, 2, 5, 8])
def test_delay_line_delays_by_its_latency(longest, rng):
    for latency in range(1, longest + 1):
        line, reset = DelayLine(2, longest), Signal()
        sent = [(int(rng.integers(2)), int(rng.integers(1 << 16))) for _ in range(40)]

        async def bench(ctx, line=line, reset=reset, sent=sent, latency=latency):
            ctx.set(line.latency, latency)
            for attempt in range(2):        # what the first leaves in the buffer must not come out
                seen = []
                for valid, value in sent:
                    ctx.set(line.source.valid, valid if attempt else 1)
                    ctx.set(line.source.data, value)
                    seen.append((ctx.get(line.target.valid), ctx.get(line.target.data)))
                    await ctx.tick()
                ctx.set(reset, 1)
                await ctx.tick()
                ctx.set(reset, 0)
            for cycle, (valid, value) in enumerate(seen):
                expected = sent[cycle - latency] if cycle >= latency else (0, None)
                assert valid == expected[0]
                assert not valid or value == expected[1]

        run(ResetInserter(reset)(line), bench, name="delay_line")


def test_delay_line_without_latency_is_refused():
    with pytest.raises(ValueError, match="^Largest link latency must be at least 1 cycle, not 0$"):
        DelayLine(2, 0)


def transfer(cfg, rows):
    """The cycle of the first SEND, and queues that send words 0 .. rows - 1 of mem1 on link 0."""
    flits = cfg.port(0).flits(cfg.lanes)
    first = timing(cfg)["mem_read", "READ"].t_d + cfg.hops("mem1", "c2c")
    repeat = {"count": rows - 1, "interval": flits, "address_stride": 1}
    send = {k: v for k, v in repeat.items() if k != "address_stride"}
    return first, {
        "mem1_read": [("READ", {"east_en": 1, "east": 3, "wait": flits - 1}), ("REPEAT", repeat)],
        "link0_send": [("NOP", {"wait": first - 1}),
                       ("SEND", {"source": 3, "source_last": 1, "links": 1, "wait": flits - 1}),
                       ("REPEAT", send)]}


@pytest.mark.parametrize("latency", [1, 7, 16])
def test_vectors_arrive_when_the_timing_table_says(latency):
    system = System(pair(CFG, latency=16), max_latency=20)
    sides = [Side(system, tile) for tile in range(2)]
    recorders = [Recorder(CFG, side) for side in sides]
    first, sending = transfer(CFG, 3)
    flits = CFG.port(0).flits(CFG.lanes)
    arrivals = [link_arrival(CFG, 0, latency, first + i * flits) for i in range(3)]
    take = arrivals[0] + 1      # RECV of each vector in the cycle behind its arrival
    wait = timing(CFG)["recv", "RECV"].t_d + CFG.hops("c2c", "mem2")
    repeat = {"count": 2, "interval": flits}
    receiving = {
        "link0_recv": [("NOP", {"wait": take - 1}),
                       ("RECV", {"east_en": 1, "east": 5, "wait": flits - 1}), ("REPEAT", repeat)],
        "mem2_write": [("NOP", {"wait": take + wait - 1}),
                       ("WRITE", {"source": 5, "source_last": 1, "address": 8, "wait": flits - 1}),
                       ("REPEAT", {**repeat, "address_stride": 1})]}
    starts = []

    async def bench(ctx):
        for link in range(2):
            ctx.set(getattr(system, f"latency{link}"), latency)
        hosts = [Host(ctx, CFG, side) for side in sides]
        rows = {("mem1", i): row for i, row in enumerate(ROWS[:3])}
        await hosts[0].load(program(CFG, **sending), sram=rows)
        await hosts[1].load(program(CFG, **receiving))
        time = ctx.get(system.tile0_cycle) + 20
        starts.append(time)
        for host in hosts:
            host.put(HostOp.START, data=host.start_data(time))
        await ctx.tick()
        for host in hosts:
            host.put(HostOp.NONE)
        for host in hosts:
            await host.finish()
        assert [ctx.get(side.errors) for side in sides] == [0, 0]
        assert [await hosts[1].read("mem2", 8 + i) for i in range(3)] == ROWS[:3]

    run(system, bench, background=[recorder.bench for recorder in recorders], name="pair")
    [start] = starts
    assert recorders[0].arrivals == []
    assert recorders[1].arrivals == [(start + cycle, "link0", row)
                                     for cycle, row in zip(arrivals, ROWS, strict=False)]


def test_fifo_overflow_is_at_the_receiver():
    system = System(pair(CFG))
    sides = [Side(system, tile) for tile in range(2)]
    recorder = Recorder(CFG, sides[1])
    depth = CFG.port(0).fifo
    _, sending = transfer(CFG, depth + 2)

    async def bench(ctx):
        for link in range(2):
            ctx.set(getattr(system, f"latency{link}"), 3)
        hosts = [Host(ctx, CFG, side) for side in sides]
        for host in hosts:
            await host.load(program(CFG, **(sending if host is hosts[0] else {})),
                            sram={("mem1", i): row for i, row in enumerate(ROWS[:depth + 2])})
        await hosts[0].start()
        await hosts[0].finish()
        assert ctx.get(system.tile0_errors) == 0
        assert ctx.get(system.tile1_errors) == 1 << Fault.FIFO_OVERFLOW

    run(system, bench, background=[recorder.bench], name="overflow")
    assert [row for *_, row in recorder.arrivals] == ROWS[:depth]


@pytest.mark.parametrize("host_latency", [1, 4])
def test_host_link_in_both_directions(host_latency):
    system = System(replace(single(CFG), host_latency=host_latency))
    side = Side(system, 0)
    recorder = Recorder(CFG, side)
    width = CFG.host.bytes
    sent_cycles, received, starts = [], [], []
    vector = ROWS[4]

    async def flits(ctx):
        async for _, _, cycle, valid, value in ctx.tick().sample(
                system.tile0_cycle, side.host_tx.valid, side.host_tx.data):
            if valid:
                received.append((cycle, value.to_bytes(width, "little")))

    async def bench(ctx):
        host = Host(ctx, CFG, side)
        for i in range(0, CFG.lanes, width):
            ctx.set(side.host_rx.valid, 1)
            ctx.set(side.host_rx.data, int.from_bytes(vector[i:i + width], "little"))
            sent_cycles.append(ctx.get(system.tile0_cycle))
            await ctx.tick()
        ctx.set(side.host_rx.valid, 0)
        # FORWARD gives it back to the host: the host's link is the one behind the ports.
        lines = [("FORWARD", {"links": 1 << len(CFG.ports)})]
        await host.load(program(CFG, host_recv=lines))
        starts.append(await host.start())
        await host.finish()
        assert ctx.get(system.tile0_errors) == 0

    run(system, bench, background=[recorder.bench, flits], name="host_link")
    assert recorder.arrivals == [(sent_cycles[-1] + host_latency, "host", vector)]
    [start] = starts
    assert received == [(start + 1 + f + host_latency, vector[f * width:(f + 1) * width])
                        for f in range(CFG.host.flits(CFG.lanes))]


def test_latency_beyond_the_lines_is_refused():
    with pytest.raises(ValueError, match="^Largest link latency must be at least the 16 cycles"):
        System(pair(CFG), max_latency=8)


def test_verilog_has_every_unit_once():
    two, three = (system_verilog(replace(pair(CFG), tiles=tiles)) for tiles in (2, 3))
    assert list(two) == list(three)
    assert [name for name in two if two[name] != three[name]] == ["oncycle_system"]
    assert list(two)[-2:] == ["link_2_bytes_64_cycles", "oncycle_system"]
