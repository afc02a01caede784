"""Two accesses to one SRAM slice, and GATHER, with cycles worked out from docs/architecture.md."""

from dataclasses import replace

import pytest

from hdl.arch.errors import Fault
from hdl.arch.presets import NANO
from tests.sim.emulator.support import lines_at, run_tile

#: mem4 gathers: four slices west of it give the address, mem5 to its east stores what it reads.
CFG = replace(NANO, mem_words=40, icu_words=256, floorplan=(
    "mem0", "mem1", "mem2", "mem3", "mem4", "mem5", "vxm", "c2c"))
WORDS = [bytes([i + 1, 2 * i, 3 * i, 255 - i]) for i in range(40)]


class Bench:
    def __init__(self):
        self.moments = {}
        self.content = {f"mem{plane}": [] for plane in range(4)}
        self.stored = 0

    def gather(self, cycle, offset, **fields):
        """GATHER of mem4 by an int32 on E0 .. E3; the other lanes carry other numbers."""
        for plane in range(4):
            name, rows = f"mem{plane}", self.content[f"mem{plane}"]
            self.at(f"{name}.read", cycle - 1 - (4 - plane), "READ", address=len(rows), east_en=1,
                    east=plane)
            rows.append(bytes([offset >> 8 * plane & 0xFF, 1, 2, 3]))
        self.at("mem4.read", cycle, "GATHER", source_last=1, east_en=1, east=6, **fields)

    def store(self, cycle, stream=6):
        """Store what mem4 writes to its stream in ``cycle``."""
        self.at("mem5.write", cycle + 1, "WRITE", address=self.stored, source=stream, source_last=1)
        self.stored += 1

    def at(self, queue, cycle, op, **fields):
        self.moments.setdefault(queue, []).append((cycle, op, fields))

    def run(self):
        sram = {name: {0: b"".join(rows)} for name, rows in self.content.items()}
        machine, result = run_tile(
            CFG, {name: lines_at(moments) for name, moments in self.moments.items()},
            sram={**sram, "mem4": {0: b"".join(WORDS)}})
        self.faults, = result.faults
        return [machine.sram(0)["mem5"][i].tobytes() for i in range(self.stored)]


@pytest.mark.parametrize("address, offset, word", [
    (0, 0, 0), (0, 17, 17), (5, 7, 12), (39, 0, 39), (30, 9, 39), (30, 10, None), (63, -24, 39),
    (10, -10, 0), (10, -11, None), (0, 40, None), (0, 1 << 8, None), (0, 1 << 16, None),
    (0, 1 << 30, None), (0, -1 << 31, None), (3, 2**31 - 1, None)])
def test_gather_adds_in_32_bits_and_reads_zero_outside(address, offset, word):
    bench = Bench()
    bench.gather(20, offset, address=address)
    bench.store(22)
    assert bench.run() == [bytes(4) if word is None else WORDS[word]]
    assert bench.faults == {}


def test_gathers_follow_each_other():
    bench = Bench()
    for i in range(5):
        bench.gather(20 + i, 3 * i)
        bench.store(22 + i)
    assert bench.run() == [WORDS[3 * i] for i in range(5)]
    assert bench.faults == {}


def test_read_in_the_cycle_of_a_gathers_access_gives_nothing():
    bench = Bench()
    bench.gather(20, 8)
    bench.at("mem4.read", 21, "READ", address=9, east_en=1, east=7)
    bench.at("mem4.read", 22, "READ", address=10, east_en=1, east=6)
    bench.store(22)
    bench.store(23)
    assert bench.run() == [WORDS[8], WORDS[10]]
    assert bench.faults == {Fault.SRAM_COLLISION: (21, "mem4.read")}


def test_read_before_a_gather_and_two_cycles_behind_are_free():
    bench = Bench()
    bench.at("mem4.read", 19, "READ", address=9, east_en=1, east=6)
    bench.gather(20, 8)
    bench.at("mem4.read", 22, "READ", address=10, east_en=1, east=6)
    bench.store(20)
    bench.store(22)
    bench.store(23)
    assert bench.run() == [WORDS[9], WORDS[8], WORDS[10]]
    assert bench.faults == {}


@pytest.mark.parametrize("written, word, collides", [
    (19, "new", False), (20, "new", False), (21, "old", True), (22, "old", False)])
def test_gather_accesses_one_cycle_behind_its_issue(written, word, collides):
    """The word is written in the cycle ``written``, its neighbour in the next one; the GATHER of 20
    reads it in 21."""
    bench = Bench()
    bench.gather(20, 8)
    bench.store(22)
    for i in range(2):
        bench.at("mem5.read", written - 3 + i, "READ", address=30, west_en=1, west=1)
        bench.at("mem4.write", written - 1 + i, "WRITE", address=8 + i, source=1, source_west=1,
                 source_last=1)
    found = bench.run()
    assert found == [WORDS[8] if word == "old" else bytes(4)]
    assert bench.faults == ({Fault.SRAM_COLLISION: (21, "mem4.read")} if collides else {})
