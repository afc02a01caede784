"""Iterations that overlap: a queue has one period for each, edges hold within and between them."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from compiler.errors import CompileError, ScheduleError
from compiler.lower.builder import Builder
from compiler.lower.chain import At, Chain, Entry
from compiler.lower.product import load_block
from compiler.plan import Plan, Region, Term
from compiler.program import from_plan
from compiler.schedule.listing import schedule
from compiler.schedule.modulo import least_period, modulo_schedule
from compiler.schedule.problem import Edge
from compiler.verify import verify_both
from hdl.arch.config import pair, single
from hdl.arch.presets import DEMO
from hdl.arch.timing import rules

TURNS, LEVEL = 6, 1
QUADS = DEMO.slices("mem")[:4], DEMO.slices("mem")[4:]


def _copy(cfg, address, count=1, source="mem1", target="mem6", tile=0):
    """Copies of words that move with the loop."""
    found = []
    for word in range(address, address + count):
        chain = Chain(cfg, f"copy {word}", tile)
        term = Term.counting(LEVEL, TURNS, count)
        chain.write(chain.read(At((source,), word, (term,))), At((target,), word, (term,)), [None])
        found.append(chain.cluster())
    return found


def _squares(builder, turn):
    """Squares of 4 vectors of its own, added up in one entry; what a product leaves in a sum."""
    term = Term.counting(LEVEL, TURNS, 4)
    for word in range(4 * turn, 4 * turn + 4):
        chain = Chain(builder.cfg, f"square {word}", 0)
        value = chain.read(At(QUADS[0], word, (term,)))
        value = chain.alu("ADD", chain.alu("MUL", value, value), Entry(1), on=1, keep=1)
        chain.write(value, At(QUADS[1], word, (term,)))
        builder.add(chain.cluster())
    for mxm in builder.cfg.slices("mxm"):
        load_block(builder, mxm, 0, mxm, At(QUADS[0 if mxm == "mxm1" else 1], 200))
        chain = Chain(builder.cfg, f"{mxm} product", 0)
        chain.multiply(chain.read(At(("mem3",), 210)), mxm, 0, install=1)
        builder.add(chain.cluster())


def _looped(emit=_squares):
    """A loop of what ``emit`` appends: clusters, edges, carried edges."""
    builder = Builder(single(DEMO))
    for turn in range(2):
        emit(builder, turn)
    half = len(builder.clusters) // 2
    part, carried = builder.turning(0, half, 2 * half, LEVEL)
    return part.clusters, part.edges, carried


def _cycles(body):
    """Cycle in iteration 0 of the instructions that are the only ones of their queue, opcode and
    indices."""
    found = Counter((issue.queue, issue.op, issue.index) for issue in body.issues)
    return {key: issue.start for issue in body.issues
            if found[key := (issue.queue, issue.op, issue.index)] == 1}


def test_iterations_overlap_and_every_edge_holds():
    clusters, edges, carried = _looped()
    body = modulo_schedule(DEMO, clusters, edges, carried, TURNS)
    length = max(issue.start for issue in body.issues)
    assert least_period(DEMO, clusters) <= body.period < length
    queues = {}
    for issue in body.issues:
        queues.setdefault(issue.queue, []).append(issue.start)
    for cycles in queues.values():
        assert max(cycles) - min(cycles) < body.period
        assert max(Counter(cycle % body.period for cycle in cycles).values()) == 1
    at = _cycles(body)
    for turns, some in ((0, edges), (1, carried)):
        known = 0
        for edge in some:
            before, after = ((slot.queue, slot.op, slot.index)
                             for slot in (edge.source, edge.target))
            if before in at and after in at:
                assert at[after] + turns * body.period >= at[before] + edge.distance
                known += 1
        assert known > 2


def test_a_program_of_it_is_legal_and_ends_with_its_last_iteration():
    clusters, edges, carried = _looped()
    body = modulo_schedule(DEMO, clusters, edges, carried, TURNS)
    keep = Chain(DEMO, "begin", 0)
    keep.alu("PASS", 0.0, on=1, keep=1)
    clear = [Chain(DEMO, f"begin {mxm}", 0) for mxm in DEMO.slices("mxm")]
    builder = Builder(single(DEMO))
    builder.add(keep.cluster())
    for mxm, chain in zip(DEMO.slices("mxm"), clear, strict=True):
        load_block(builder, mxm, 0, mxm, At(QUADS[0], 200))
        chain.multiply(chain.alu("TO_INT8", 0.0), mxm, 0, clear=1, install=1)
        builder.add(chain.cluster())
    end = Chain(DEMO, "end", 0)
    end.write(end.alu("ADD", end.acc("mxm0", 0), Entry(1), on=1), At(QUADS[1], 300))
    first = schedule(DEMO, builder.clusters, builder.edges)
    last = schedule(DEMO, [end.cluster()], [])
    step = Region(0, 0, None, children=[Region(first.end, body.period, TURNS, body.issues)])
    step.issues += first.issues
    begin = first.end + body.end + 1
    step.issues += [replace(issue, start=issue.start + begin) for issue in last.issues]
    step.period = begin + last.end
    builder.memory.place("words", 0, DEMO.slices("mem"), 256,
                         [np.zeros((256, DEMO.lanes), np.uint8)] * 8)
    program = from_plan(Plan(Region(0, step.period, 1, children=[step]), single(DEMO)),
                        builder.memory)
    assert verify_both(program.system, program.binary) == \
        len(first.issues) + TURNS * len(body.issues) + len(last.issues)


def test_the_busiest_queue_and_the_alus_bound_the_period():
    assert least_period(DEMO, _copy(DEMO, 0, 5)) == 5
    chain = Chain(DEMO, "four", 0)
    value = chain.read(At(QUADS[0], 0))
    for _ in range(9):
        value = chain.alu("PASS", value)
    chain.write(value, At(QUADS[1], 0))
    assert least_period(DEMO, [chain.cluster()]) == 3
    body = modulo_schedule(DEMO, _copy(DEMO, 0, 5), [], [], TURNS)
    assert body.period == 5 and body.end == 5 * 5 + 5 + 1 + DEMO.hops("mem1", "mem6") + 2


def test_what_waits_for_the_iteration_before_asks_for_a_period():
    clusters = _copy(DEMO, 0)
    read, write = clusters[0].slots
    carried = [Edge(write, read, rules(DEMO).write_to_read)]
    body = modulo_schedule(DEMO, clusters, [], carried, TURNS)
    assert body.period >= write.offset + rules(DEMO).write_to_read


def test_what_is_placed_later_waits_for_the_iteration_before_all_the_same():
    (early,), (late,) = _copy(DEMO, 0), _copy(DEMO, 9, source="mem2", target="mem3")
    carried = [Edge(early.slots[1], late.slots[0], 35)]     # early has the longer way to the end
    body = modulo_schedule(DEMO, [early, late], [], carried, TURNS)
    at = _cycles(body)
    assert at["mem2.read", "READ", (9,)] + body.period >= at["mem6.write", "WRITE", (0,)] + 35
    assert body.period < 35


def test_without_a_gain_iterations_follow_each_other():
    first, second = _copy(DEMO, 0, 2)
    late = [Edge(second.slots[1], first.slots[0], 40), Edge(first.slots[1], second.slots[0], 40)]
    body = modulo_schedule(DEMO, [first, second], late[1:], late[:1], TURNS)
    assert body.end == TURNS * body.period
    assert body.period >= 40 + 40


def test_tiles_share_nothing_but_the_period():
    clusters = [*_copy(DEMO, 0, 3), *_copy(DEMO, 0, 7, tile=1)]
    assert modulo_schedule(pair(DEMO).tile, clusters, [], [], TURNS).period == 7
    with pytest.raises(ScheduleError, match="waits for another tile"):
        modulo_schedule(DEMO, clusters, [Edge(clusters[0].slots[1], clusters[-1].slots[0], 9)], [],
                        TURNS)


def test_iterations_of_different_instructions_are_refused():
    def emit(builder, turn):
        builder.add(_copy(DEMO, turn * 2)[0])       # its term says that it moves by 1
    with pytest.raises(CompileError, match="must be of equal instructions"):
        _looped(emit)
