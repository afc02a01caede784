"""Plans become words, and the words say what the plan said."""

import numpy as np
import pytest

from compiler.assemble import assemble
from compiler.errors import AssemblyError
from compiler.plan import Issue, Plan, Region, Term, expand
from compiler.verify import events
from hdl.arch import trace
from hdl.arch.config import single
from hdl.arch.encoding import crc16, encode
from hdl.arch.isa import word_bytes
from hdl.arch.presets import DEMO, NANO
from hdl.arch.queues import queue_index, queues


def _read(start, address=0, terms=(), queue="mem0.read", **fields):
    return Issue(0, queue, "READ", start, tuple(sorted({"east_en": 1, **fields}.items())),
                 (address,), (tuple(terms),))


def _write(start, address=0, terms=(), predicate=None):
    return Issue(0, "mem1.write", "WRITE", start, (("source_last", 1),), (address,),
                 (tuple(terms),), predicate)


def _plan(region, cfg=NANO):
    return Plan(Region(0, region.start + region.period, 1, children=[region]), single(cfg))


def _from_words(binary, cfg, steps, first_step):
    """Issue and write columns of the expanded binary, in the order of `expand`."""
    binary.steps, binary.first_step = steps, first_step
    numbers = queue_index(cfg)
    issues, writes = [], []
    for event in events(cfg, binary):
        word = encode(cfg, event.queue.kind, event.op, **event.fields)
        issues.append((event.cycle, event.tile, numbers[event.queue.name],
                       crc16(word, word_bytes(cfg, event.queue.kind)),
                       trace.pack_index(cfg, event.queue.kind, event.indices.values())))
        if event.op == "WRITE" and event.writes:
            writes.append((event.cycle + 1, event.tile, event.queue.unit,
                           event.indices["address"]))
    return sorted(issues), sorted(writes)


def _check(plan, cfg=NANO, steps=3, first_step=5):
    binary, plan = assemble(plan)
    binary.check(plan.system)
    table = expand(plan, steps, first_step)
    issues, writes = _from_words(binary, cfg, steps, first_step)
    columns = ["cycle", "tile", "unit", "crc", "index"]
    assert sorted(map(tuple, table["issues"][columns].tolist())) == issues
    columns = ["cycle", "tile", "unit", "address"]
    assert sorted(map(tuple, table["writes"][columns].tolist())) == writes
    return binary


def _random_region(rng, depth, levels, budget):
    """A region with random issues of two queues and, while depth is left, random loops inside."""
    count = int(rng.integers(1, 4))
    region = Region(0, 0, count if depth else None)
    cursor = 1
    for _ in range(int(rng.integers(1, 5))):
        if depth < levels - 1 and rng.random() < 0.4 and budget > 0:
            child = _random_region(rng, depth + 1, levels, budget - 1)
            child.start = cursor
            region.children.append(child)
            cursor += child.count * child.period + 1
            continue
        terms = [Term(level, int(rng.integers(3)), int(rng.integers(1, 4)),
                      int(rng.integers(1, 3))) for level in range(depth + 1) if rng.random() < 0.3]
        stride, gap = int(rng.integers(0, 5)), int(rng.choice([1, 2, 3, 300]))
        for i in range(int(rng.integers(1, 6))):
            at = cursor + i * gap
            region.issues.append(_read(at, (7 + i * stride) % 64, terms))
            if rng.random() < 0.5:
                region.issues.append(_write(at, i, (), Term(0, 0, 1, 1) if i % 2 else None))
        cursor = at + 1 + int(rng.choice([0, 1, 5, 700]))
    region.period = cursor + int(rng.choice([0, 1, 255, 256, 257, 1000]))
    return region


@pytest.mark.parametrize("case", range(60))
def test_words_expand_to_the_planned_events(case):
    rng = np.random.default_rng(case)
    region = _random_region(rng, 0, NANO.loop_levels, 3)
    try:
        _check(_plan(region))
    except AssemblyError as error:      # a random tree may need more words than the queue has
        assert "instruction words" in str(error) or "table entries" in str(error), error


def test_random_plans_mostly_fit():
    fits = 0
    for case in range(60):
        region = _random_region(np.random.default_rng(case), 0, NANO.loop_levels, 3)
        try:
            assemble(_plan(region))
            fits += 1
        except AssemblyError:
            pass
    assert fits > 40


@pytest.mark.parametrize("gap", [0, 1, 254, 255, 256, 257, 511, 512, 70000])
def test_gaps_of_every_length_are_kept(gap):
    region = Region(0, gap + 9, None, [_read(1), _read(2 + gap, 3)])
    _check(_plan(region))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 50])
@pytest.mark.parametrize("interval", [1, 2, 255])
def test_a_run_takes_one_word_and_a_repeat(length, interval):
    issues = [_read(1 + i * interval, i) for i in range(length)]
    binary = _check(_plan(Region(0, (length - 1) * interval + 5, None, issues)))
    words = len(binary.tiles[0].words["mem0.read"])
    assert words == {1: 3, 2: 4}.get(length, 4)     # LOOP, the run, HALT


def test_indices_that_wrap_are_one_run():
    issues = [Issue(0, "mxm0.weight", "LW", 1 + i, (("count_log2", 0),), (i % 16,), ((),))
              for i in range(40)]
    binary = _check(_plan(Region(0, 50, None, issues), DEMO), DEMO)
    assert len(binary.tiles[0].words["mxm0.weight"]) == 4


def test_coinciding_loop_ends_cost_nothing():
    inner = Region(1, 3, 4, [_read(1), _read(2, 1)])
    outer = Region(1, 13, 2, children=[inner])
    binary = _check(_plan(Region(0, 27, None, children=[outer])))
    words = [word & 31 for word in binary.tiles[0].words["mem0.read"]]
    assert words.count(2) == 3 and len(words) == 6      # three LOOPs, two READs, HALT
    assert binary.tiles[0].words["mem0.read"][4] >> 5 & 7 == 3


@pytest.mark.parametrize("region,message", [
    (Region(0, 9, None, [_read(0)]), "mem0.read has no free cycle at -1 for LOOP"),
    (Region(0, 9, None, [_read(3)], [Region(2, 3, 2, [_read(1)])]),
     "mem0.read has no free cycle at 3 for READ"),
    (Region(0, 9, None, [_read(1), _read(1, 4)]), "mem0.read has no free cycle at 1 for READ"),
    (Region(0, 3, None, [_read(1), _read(7)]), "needs more than the 3 cycles of its loop"),
    (Region(0, 900, None, [_read(1 + 2 * i, i * i % 61) for i in range(64)]),
     "needs 67 instruction words, the queue holds 64: raise TileConfig.icu_words"),
    (Region(0, 99, None, [_read(1 + i, 0, [Term(0, 0, 1, i + 1)]) for i in range(8)]),
     "needs more than 8 table entries"),
    (Region(0, 9, None, [_read(1, 99)]), "mem_read READ.address must be in 0..63, not 99"),
    (Region(0, 99, None, children=[Region(1, 20, 2, children=[Region(1, 9, 2, children=[
        Region(1, 4, 2, [_read(1)])])])]), "nests 4 LOOPs, the queue holds 3"),
])
def test_what_does_not_fit_is_one_clear_error(region, message):
    with pytest.raises(AssemblyError, match=message):
        assemble(_plan(region))


def test_words_of_one_queue_do_not_depend_on_steps():
    region = Region(0, 9, None, [_read(1)])
    one, _ = assemble(_plan(region))
    assert {len(queue) for queue in one.tiles[0].words.values()} == {3}
    assert {queue.name for queue in queues(NANO)} > set(one.tiles[0].words)
