"""Figures of programs against the expanded plan and the binary."""

import numpy as np
import pytest

from compiler.plan import Issue, Plan, Region, expand
from hdl.arch.config import single
from hdl.arch.presets import NANO
from hdl.arch.queues import link_names, queues
from sim.report.figures import (
    busy_cycles,
    instruction_bytes,
    instruction_memory,
    link_vectors,
    sram_words,
    step_cycles,
    stretches,
)
from tests.sim.commands.programs import SYSTEM, save_copy, save_matvec


@pytest.fixture(params=[save_copy, save_matvec])
def program(request, rng, tmp_path):
    return request.param(rng, tmp_path / "p.npz")


def _counts(table, shape):
    found = np.zeros(shape, int)
    np.add.at(found, (table["tile"], table["unit"]), 1)
    return found


def test_busy_cycles_are_the_issues_of_a_step_and_the_time_on_the_wire(program):
    events = expand(program.plan, 1)
    all_queues = queues(NANO)
    busy = busy_cycles(program.plan)
    issues = _counts(events["issues"], busy.shape)
    arrived = _counts(events["arrivals"], (2, len(link_names(NANO)))) * NANO.ports[0].flits(4)
    for number, queue in enumerate(all_queues):
        if queue.kind == "recv":
            np.testing.assert_array_equal(busy[:, number], arrived[:, queue.unit])
        elif queue.kind == "send":
            np.testing.assert_array_equal(busy[::-1, number], arrived[:, queue.unit])
        else:
            np.testing.assert_array_equal(busy[:, number], issues[:, number])


def test_link_vectors_are_the_arrivals_of_a_step(program):
    sent = link_vectors(program.plan)
    assert sent.sum() == len(expand(program.plan, 1)["arrivals"])


def test_stretches_hold_every_instruction_and_no_more_than_the_step(program):
    parts = stretches(program.plan)
    top = [part for part in parts if part.depth == 0]
    assert sum(part.issues * part.runs for part in top) == len(expand(program.plan, 1)["issues"])
    assert sum(part.total for part in top) <= step_cycles(program.plan)


def test_nested_loops():
    def issue(start):
        return Issue(tile=0, queue="mem0.read", op="READ", start=start, fields=(), index=(0,),
                     terms=((),))

    inner = Region(2, 3, 4, [issue(0)])
    outer = Region(5, 20, 2, [issue(0), issue(15)], [inner])
    step = Region(0, 50, None, [issue(1), issue(47)], [outer])
    plan = Plan(Region(0, 50, 1, [], [step]), single(NANO))
    assert busy_cycles(plan)[0, 0] == 2 + 2 * (2 + 4)
    assert [part[:-1] for part in stretches(plan)] == [
        (0, 0, 5, 1, 5, 1), (0, 5, 20, 2, 40, 6), (1, 0, 2, 1, 4, 1), (1, 2, 3, 4, 24, 1),
        (1, 14, 6, 1, 12, 1), (0, 45, 5, 1, 5, 1)]


def test_instruction_memory_is_the_binarys(program):
    rows = {row.kind: row for row in instruction_memory(program)}
    tiles = program.binary.tiles
    assert sum(row.words for row in rows.values()) == \
        sum(len(words) for tile in tiles for words in tile.words.values())
    read = rows["mem_read"]
    assert read.largest == len(tiles[read.tile].words[read.queue])
    assert read.bytes == 6 * read.words         # 44 bits each
    assert rows["sxm"].words == 0


def test_instruction_bytes_of_a_tile_are_those_its_file_stores(program, tmp_path):
    found = instruction_bytes(program)
    with np.load(tmp_path / "p.npz") as file:
        for kind in found:
            for tile, size in enumerate(found[kind]):
                names = [queue.name for queue in queues(NANO) if queue.kind == kind]
                stored = [file[f"words/{tile}/{name}"].size for name in names
                          if f"words/{tile}/{name}" in file]
                assert size == sum(stored)
    assert sum(found["mem_read"]) > 0


def test_sram_words_are_counted_once(program):
    used = sram_words(program)
    assert used.shape == (2, 4)
    for (tile, slice_), count in np.ndenumerate(used):
        name = NANO.slices("mem")[slice_]
        words = set()
        for address, content in program.binary.tiles[tile].sram.get(name, {}).items():
            words |= set(range(address, address + len(content) // NANO.lanes))
        for symbol in program.symbols.values():
            if symbol.tile == tile and name in symbol.slices:
                words |= set(range(symbol.address, symbol.address + symbol.words))
        assert count == len(words)
    assert SYSTEM.tiles == len(used)
