"""Random programs, faults and all, on the emulator and on the naive machine."""

import numpy as np
import pytest

from hdl.arch import isa
from hdl.arch.binary import SystemBinary, TileBinary
from hdl.arch.config import AluConfig, Link, PortConfig, SystemConfig, TileConfig
from hdl.arch.encoding import encode
from hdl.arch.queues import queues
from sim.emulator import Machine
from tests.sim.emulator.naive import NaiveSystem
from tests.sim.emulator.naive_icu import queue_cycles
from tests.sim.emulator.support import events

CYCLES = 400
RUNS = 8


def random_config(rng, lanes):
    plan = ["mem"] * int(rng.integers(2, 5)) + ["mxm"] * int(rng.integers(1, 3)) + \
        ["sxm", "vxm", "c2c"]
    rng.shuffle(plan)
    counts, floorplan = {}, []
    for kind in plan:
        number = counts[kind] = counts.get(kind, -1) + 1
        floorplan.append(kind if kind in ("vxm", "c2c") else f"{kind}{number}")
    ports = tuple(PortConfig(bytes=int(rng.integers(1, lanes + 2)), fifo=int(rng.choice([4, 8])))
                  for _ in range(2))
    return TileConfig(
        lanes=lanes, streams=int(rng.choice([4, 8, 12])), floorplan=tuple(floorplan),
        mem_words=int(rng.choice([5, 16, 23])), alus=(AluConfig(),), accumulators=4, activations=2,
        accumulator_bits=int(rng.integers(24, 31)), icu_words=64,
        loop_levels=int(rng.integers(1, 4)), ports=ports, host=PortConfig(bytes=lanes, fifo=4))


def random_system(rng, lanes):
    """Three tiles, joined where port widths allow, with latencies of 1 to 9."""
    tile = random_config(rng, lanes)
    links = [Link(source=a, source_port=k, target=(a + 1 + k) % 3, target_port=k,
                  latency=int(rng.integers(1, 10)))
             for a in range(3) for k in range(2) if rng.random() < 0.8]
    return SystemConfig(tile=tile, tiles=3, links=tuple(links),
                        host_latency=int(rng.integers(1, 5)))


def random_fields(rng, cfg, kind, op, busy):
    """Random fields of a unit word; ``busy``: how many streams are used, so that they meet."""
    fields = {}
    for name, field in isa.layout(cfg, kind, isa.KINDS[kind].ops[op]):
        width = field.width
        if name in ("op", "ends", "wait"):
            continue
        if name in ("source", "east", "west", "target"):
            fields[name] = int(rng.integers(0, min(busy, cfg.streams)))
        elif name.endswith("_terms"):
            fields[name] = rng.integers(0, 8, cfg.loop_levels).tolist()
        elif name in ("a_source", "b_source"):
            fields[name] = int(rng.integers(0, 1 << width if rng.random() < 0.2 else 4))
        elif name in ("a", "b"):
            fields[name] = int(rng.integers(0, 5))
        elif name == "mode":
            fields[name] = int(rng.integers(0, 3))
        elif name == "count_log2":
            fields[name] = int(rng.integers(0, 3))
        elif name in ("accumulator", "activation"):
            fields[name] = int(rng.integers(0, getattr(cfg, name + "s")))
        else:
            fields[name] = int(rng.integers(0, 1 << width))
    return fields


def random_words(rng, cfg, kind, busy):
    """About 12 words with LOOPs that mostly end, REPEATs, and now and then a faulty one."""
    ops = [op.name for op in isa.formats(cfg, kind)]
    lines, opened = [], 0

    def add(op, **fields):
        lines.append(encode(cfg, kind, op, **fields))

    add("NOP", wait=int(rng.integers(0, 12)))
    for _ in range(int(rng.integers(1, 12))):
        choice = rng.random()
        wait = int(rng.choice([0, 0, 0, 1, 2, 5]))
        ends = int(rng.integers(0, opened + 1)) if rng.random() < 0.4 else 0
        if choice < 0.2 and opened < cfg.loop_levels:
            add("LOOP", count=int(rng.integers(0, 4)), wait=wait)
            opened += 1
            continue
        if choice < 0.3:
            add("NOP", wait=wait, more=int(rng.random() < 0.05), ends=ends)
        else:
            op = str(rng.choice(ops))
            repeats = rng.random() < 0.3
            add(op, **random_fields(rng, cfg, kind, op, busy), wait=wait,
                ends=0 if repeats else ends)
            if repeats:
                strides = {f"{index.name}_stride": int(rng.integers(-2, 2))
                           for index in isa.KINDS[kind].indices}
                add("REPEAT", count=int(rng.integers(0, 5)), interval=int(rng.integers(0, 4)),
                    wait=wait, ends=ends, **strides)
        opened -= ends
    if opened and rng.random() < 0.8:
        add("NOP", ends=opened)
    if rng.random() < 0.9:
        add("HALT")
    if rng.random() < 0.03:
        lines[int(rng.integers(len(lines)))] = 31
    return lines


def random_binary(rng, system):
    cfg, tiles = system.tile, []
    busy = int(rng.choice([2, 4, 16]))
    for _ in range(system.tiles):
        words, tables = {}, {}
        for queue in queues(cfg):
            if rng.random() < 0.8:
                words[queue.name] = random_words(rng, cfg, queue.kind, busy)
                tables[queue.name] = [(0, 0, 0)] + [
                    (int(rng.integers(0, 3)), int(rng.integers(0, 8)), int(rng.integers(-3, 4)))
                    for _ in range(7)]
        sram = {name: {0: rng.bytes(cfg.lanes * cfg.mem_words)} for name in cfg.slices("mem")}
        tiles.append(TileBinary(words, tables, sram))
    return SystemBinary(tiles, first_step=int(rng.integers(0, 50)), steps=int(rng.integers(1, 4)))


def ends_in_time(system, binary):
    """Whether every queue halts early enough for everything to have happened within CYCLES."""
    for tile in binary.tiles:
        for queue in queues(system.tile):
            source = queue_cycles(system.tile, queue.kind, tile.words.get(queue.name, [1]),
                                  tile.tables.get(queue.name, ()), 0, binary.steps)
            if sum(1 for _ in zip(range(CYCLES), source, strict=False)) > CYCLES - 120:
                return False
    return True


def compare(system, binary, host_input=()):
    machine = Machine(system)
    machine.load(binary)
    result = machine.start(host_input=host_input)
    naive = NaiveSystem(system, binary)
    naive.run(CYCLES, host_input)
    assert [row[:3] for row in events(result.issues)] == [row[:3] for row in naive.issues]
    assert events(result.issues) == naive.issues
    assert events(result.writes) == naive.sram_writes
    assert events(result.arrivals) == naive.arrivals
    assert events(result.host) == naive.host
    for number, tile in enumerate(naive.tiles):
        found = {fault: first.cycle for fault, first in result.faults[number].items()}
        assert found == tile.faults
        for name, words in machine.sram(number).items():
            assert words.tobytes() == b"".join(tile.sram[name])
    return result


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_random_programs_do_what_the_naive_machine_does(rng, lanes):
    met, runs, seen = set(), 0, np.zeros(4, int)
    while runs < RUNS:
        system = random_system(rng, lanes)
        binary = random_binary(rng, system)
        if not ends_in_time(system, binary):
            continue
        runs += 1
        flits = system.tile.host.flits(lanes)
        host_input = [(int(tile), int(cycle), rng.bytes(lanes)) for tile in range(3)
                      for cycle in range(int(rng.integers(9)), 40, flits + int(rng.integers(9)))]
        result = compare(system, binary, host_input)
        for faults in result.faults:
            met.update(fault.name for fault in faults)
        tables = result.issues, result.writes, result.arrivals, result.host
        seen += [len(table) for table in tables]
    assert all(seen > 30), seen
    assert met >= {"STREAM_INVALID", "STREAM_OVERWRITE", "STREAM_LOST", "STREAM_CONFLICT",
                   "SRAM_COLLISION", "SRAM_ADDRESS", "LINK_BUSY", "FIFO_UNDERFLOW",
                   "FIFO_OVERFLOW", "ICU_WORD"}, met
