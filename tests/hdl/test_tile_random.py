"""Random programs, faults and all, on one tile in Amaranth's simulator and on the emulator."""

from hdl.arch.binary import SystemBinary, TileBinary
from hdl.arch.config import AluConfig, PortConfig, TileConfig, single
from hdl.arch.encoding import encode
from hdl.arch.errors import Fault
from hdl.arch.host import HostOp
from hdl.arch.queues import queues
from hdl.tile import Tile
from sim.emulator import Machine
from tests.hdl.host import Host, Recorder
from tests.sim.emulator.naive_icu import queue_cycles
from tests.sim.emulator.support import events
from tests.sim.emulator.test_random import random_words
from tests.support.pysim import run

CFG = TileConfig(
    lanes=4, streams=8, mem_words=13, icu_words=64, loop_levels=2, reduce_depth=2,
    floorplan=("mem0", "mem1", "vxm", "sxm0", "mem2", "mem3", "c2c"),
    alus=(AluConfig(features=("add", "mul"), depth=3), AluConfig(features=("add", "special"),
                                                                 depth=4)),
    ports=(PortConfig(bytes=4, fifo=4),), host=PortConfig(bytes=4, fifo=4))
RUNS, STEPS, LONGEST = 16, 2, 300


def random_tile(rng):
    """`TileBinary` that fills the SRAM and halts in time."""
    while True:
        busy, words, tables, ends = int(rng.choice([4, 8])), {}, {}, []
        for queue in queues(CFG):
            words[queue.name] = [encode(CFG, queue.kind, "HALT")]
            if queue.slice != "c2c" and rng.random() < 0.9:
                words[queue.name] = random_words(rng, CFG, queue.kind, busy) + words[queue.name]
            tables[queue.name] = [(0, 0, 0)] + [
                (int(rng.integers(3)), int(rng.integers(8)), int(rng.integers(-3, 4)))
                for _ in range(7)]
            cycles = queue_cycles(CFG, queue.kind, words[queue.name], tables[queue.name], 0, STEPS)
            ends.append(sum(1 for _ in zip(range(LONGEST), cycles, strict=False)))
        if max(ends) < LONGEST:
            sram = {name: {0: rng.bytes(CFG.lanes * CFG.mem_words)} for name in CFG.slices("mem")}
            return TileBinary(words, tables, sram)


def on_tile(binaries):
    """(issues, writes, error register) of each of ``binaries``, run one after another."""
    tile, found = Tile(CFG), []
    recorder = Recorder(CFG, tile)

    async def bench(ctx):
        host, size = Host(ctx, CFG, tile), CFG.lanes
        for binary in binaries:
            sram = {(name, address): image[0][size * address:size * (address + 1)]
                    for name, image in binary.sram.items() for address in range(CFG.mem_words)}
            await host.load(binary.words, binary.tables, sram)
            await host.command(HostOp.CLEAR)
            recorder.issues.clear(), recorder.writes.clear()
            start = await host.start(steps=STEPS)
            await host.finish()
            found.append((*(sorted((cycle - start, *rest) for cycle, *rest in rows)
                            for rows in (recorder.issues, recorder.writes)), ctx.get(tile.errors)))

    run(tile, bench, background=[recorder.bench], name="tile_random")
    return found


def on_emulator(binary, garbage):
    """The same of one binary from a new machine, full of what the seed ``garbage`` gives."""
    machine = Machine(single(CFG), garbage)
    machine.load(SystemBinary([binary], 0, STEPS))
    result = machine.start()
    names = {"issues": [queue.name for queue in queues(CFG)], "writes": CFG.slices("mem")}
    rows = [sorted((cycle, names[table][unit], *rest)
                   for cycle, _, unit, *rest in events(getattr(result, table)))
            for table in ("issues", "writes")]
    return *rows, sum(1 << fault for fault in result.faults[0])


def test_tile_does_what_the_emulator_does(rng):
    """But for data that is undefined: what was never written, and which of two results on one
    stream register moves on."""
    binaries = [random_tile(rng) for _ in range(RUNS)]
    met, compared = 0, 0
    for binary, (issues, writes, errors) in zip(binaries, on_tile(binaries), strict=True):
        planned, written, faults = on_emulator(binary, 1)
        _, other, _ = on_emulator(binary, 2)
        assert issues == planned
        assert errors == faults
        assert [row[:3] for row in writes] == [row[:3] for row in written]
        met |= faults
        if not faults >> Fault.STREAM_CONFLICT & 1:
            defined = [a == b for a, b in zip(written, other, strict=True)]
            compared += sum(defined)
            assert [row for row, known in zip(writes, defined, strict=True) if known] == \
                [row for row, known in zip(written, defined, strict=True) if known]
    assert compared > 10
    for fault in ("STREAM_INVALID", "STREAM_OVERWRITE", "STREAM_LOST", "STREAM_CONFLICT",
                  "SRAM_COLLISION", "SRAM_ADDRESS", "ICU_WORD"):
        assert met >> Fault[fault] & 1, fault
