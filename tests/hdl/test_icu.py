from dataclasses import replace

import pytest

from hdl.arch import isa
from hdl.arch.encoding import crc16, encode
from hdl.arch.presets import NANO
from hdl.arch.timing import ICU_LEAD
from hdl.arch.trace import pack_index
from hdl.icu import Icu
from tests.hdl.icu_model import Issue, interpret, random_program, random_table
from tests.support.pysim import run

CFG = replace(NANO, icu_words=48, loop_levels=4)
#: Cycles from `go` to the first issue: fetch, then the lead.
GO_TO_ISSUE = 1 + ICU_LEAD


async def load(ctx, icu, cfg, kind, words, table):
    layout = isa.table_layout(cfg, kind)
    for address, word in enumerate(words):
        ctx.set(icu.load.word_en, 1)
        ctx.set(icu.load.address, address)
        ctx.set(icu.load.data, word)
        await ctx.tick()
    ctx.set(icu.load.word_en, 0)
    for address, (shift, mask, step) in enumerate(table):
        ctx.set(icu.load.table_en, 1)
        ctx.set(icu.load.address, address)
        entry = layout.const({"shift": shift, "mask": mask, "step": step}).as_bits()
        ctx.set(icu.load.data, entry)
        await ctx.tick()
    ctx.set(icu.load.table_en, 0)


async def start(ctx, icu, cfg, kind, first_step, steps, limit):
    """Issues until the queue has halted, and the number of faults."""
    ctx.set(icu.first_step, first_step)
    ctx.set(icu.steps, steps)
    ctx.set(icu.go, 1)
    await ctx.tick()
    ctx.set(icu.go, 0)
    issues, faults, idle = [], 0, 0
    for cycle in range(1, limit):
        if ctx.get(icu.fault):
            faults += 1
        if ctx.get(icu.issue.valid):
            assert not ctx.get(icu.halted)
            word = ctx.get(icu.issue.word)
            indices = ()
            if hasattr(icu.issue, "index"):
                names = [index.name for index in isa.KINDS[kind].indices]
                indices = tuple(ctx.get(icu.issue.index[name]) for name in names)
            assert ctx.get(icu.traced.valid)
            assert ctx.get(icu.traced.crc) == crc16(word, isa.word_bytes(cfg, kind))
            assert ctx.get(icu.traced.index) == pack_index(cfg, kind, indices)
            issues.append(Issue(cycle - GO_TO_ISSUE, word, indices, ctx.get(icu.issue.step),
                                bool(ctx.get(icu.issue.predicate))))
        else:
            assert not ctx.get(icu.traced.valid)
        idle = idle + 1 if ctx.get(icu.halted) else 0
        if idle > 5:
            return issues, faults
        await ctx.tick()
    raise AssertionError("the queue did not halt")


def execute(kind, runs, cfg=CFG, name=None):
    """Run (words, table, first step, steps) one after another without a reset between them."""
    icu = Icu(cfg, kind)
    found = []

    async def bench(ctx):
        assert ctx.get(icu.halted)
        for words, table, first_step, steps in runs:
            await load(ctx, icu, cfg, kind, words, table)
            found.append(await start(ctx, icu, cfg, kind, first_step, steps, 20_000))

    run(icu, bench, name=name)
    return found


def program_of_bounded_length(rng, cfg, kind, steps):
    while True:
        words = random_program(rng, cfg, kind)
        table = random_table(rng, cfg, kind)
        if len(words) <= cfg.icu_words:
            issues = interpret(cfg, kind, words, table, 0, steps).issues
            if 10 <= len(issues) and issues[-1].cycle < 4000:
                return words, table


@pytest.mark.parametrize("kind", isa.KINDS)
def test_random_programs_issue_like_the_interpreter(kind, rng):
    runs = []
    for _ in range(12):
        steps = int(rng.integers(1, 5))
        first = int(rng.integers(0, (1 << isa.COUNTER_BITS) - steps))
        runs.append((*program_of_bounded_length(rng, CFG, kind, steps), first, steps))
    for (words, table, first, steps), (issues, faults) in zip(
            runs, execute(kind, runs), strict=True):
        expected = interpret(CFG, kind, words, table, first, steps)
        assert issues == expected.issues
        assert not faults and not expected.fault


def test_second_run_starts_afresh(rng):
    words, table = program_of_bounded_length(rng, CFG, "mem_write", 3)
    runs = [(words, table, 5, 3), (words, table, 5, 3), (words, table, 6, 1)]
    first, again, other = execute("mem_write", runs)
    assert first == again
    assert other[0] == interpret(CFG, "mem_write", words, table, 6, 1).issues


def encoded(kind, *program, cfg=CFG):
    return [encode(cfg, kind, op, **fields) for op, fields in program]


def test_full_depth_and_coinciding_ends():
    depth = CFG.loop_levels
    words = encoded("mem_read", *[("LOOP", {"count": 2})] * depth,
                    ("READ", {"address": 1, "ends": depth}), ("READ", {"address": 2}), ("HALT", {}))
    [(issues, faults)] = execute("mem_read", [(words, (), 0, 1)])
    assert not faults
    inner = [issue for issue in issues if issue.indices == (1,)]
    loops = 2 ** depth - 1      # LOOP words executed: level l is entered 2 ** l times
    assert len(inner) == 2 ** depth
    assert issues[-1] == issues[-1]._replace(indices=(2,), cycle=loops + 2 ** depth)


def test_step_counts_from_the_first_step_and_selects_by_predicate():
    words = encoded("mem_write", ("LOOP", {"count": 0}),
                    ("WRITE", {"predicate": 1, "ends": 1, "address_terms": (2,)}), ("HALT", {}))
    table = [(0, 0, 0), (1, 3, 2), (0, 7, 2)]
    [(issues, _)] = execute("mem_write", [(words, table, 1_000, 9)])
    assert [issue.step for issue in issues] == list(range(1_000, 1_009))
    assert [issue.predicate for issue in issues] == [(s >> 1) & 3 == 2 for s in range(1_000, 1_009)]
    assert [issue.indices[0] for issue in issues] == [(s & 7) * 2 for s in range(1_000, 1_009)]


def test_long_nop():
    words = encoded("send", ("NOP", {"more": 2, "wait": 3}), ("SEND", {}), ("HALT", {}))
    [(issues, _)] = execute("send", [(words, (), 0, 1)])
    assert [issue.cycle for issue in issues] == [2 * 256 + 3 + 1]


READ, WAIT, HALT = ("READ", {"address": 3}), ("NOP", {}), ("HALT", {})
FAULTY = {
    "loop_too_deep": [*[("LOOP", {"count": 2})] * (CFG.loop_levels + 1), READ, HALT],
    "ends_of_no_loop": [READ, ("READ", {"ends": 1}), HALT],
    "more_ends_than_loops": [("LOOP", {"count": 3}), ("READ", {"ends": 2}), HALT],
    "loop_with_ends": [("LOOP", {"count": 3}), READ, ("LOOP", {"count": 1, "ends": 1}), HALT],
    "repeat_first": [("REPEAT", {"count": 2}), HALT],
    "repeat_behind_nop": [READ, WAIT, ("REPEAT", {"count": 2}), HALT],
    "repeat_behind_loop": [READ, ("LOOP", {"count": 2}), ("REPEAT", {"count": 2, "ends": 1}), HALT],
}


@pytest.mark.parametrize("case", FAULTY)
def test_faulty_word_halts_and_is_reported_once(case):
    words = encoded("mem_read", *FAULTY[case])
    expected = interpret(CFG, "mem_read", words)
    assert expected.fault
    good = encoded("mem_read", READ, HALT)
    before, bad, after = execute("mem_read", [(lines, (), 0, 1) for lines in (good, words, good)])
    assert bad == (expected.issues, 1)
    assert before == after == (interpret(CFG, "mem_read", good).issues, 0)


def test_unknown_opcode_halts():
    words = [*encoded("mem_read", READ), 31, *encoded("mem_read", READ, HALT)]
    [(issues, faults)] = execute("mem_read", [(words, (), 0, 1)])
    assert (issues, faults) == (interpret(CFG, "mem_read", words).issues, 1)
    assert len(issues) == 1


def test_running_past_the_last_word_halts():
    words = encoded("mem_read", *[READ] * CFG.icu_words)
    [(issues, faults)] = execute("mem_read", [(words, (), 0, 1)])
    assert (len(issues), faults) == (CFG.icu_words, 1)


def test_entry_0_needs_no_loading():
    words = encoded("mem_write", ("LOOP", {"count": 3}), ("WRITE", {"address": 9, "ends": 1}), HALT)
    table = [(0, 0xFFFFF, 7)] * isa.TABLE_ENTRIES
    [(issues, _)] = execute("mem_write", [(words, table, 3, 1)])
    assert [(issue.indices, issue.predicate) for issue in issues] == [((9,), True)] * 3
