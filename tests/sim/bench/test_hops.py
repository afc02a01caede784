"""The bench of hops: latencies from the timing table, and a tile that nothing disturbs."""

import numpy as np
import pytest

from compiler.verify import verify_both
from hdl.arch.timing import rules, timing
from sim.bench import hops


def cycles(way, hop_count, planes, rng):
    words = rng.integers(0, 256, (planes, hops.SYSTEM.tile.lanes), np.uint8)
    case = hops.hop_program(way, hop_count, planes, words)
    verify_both(hops.SYSTEM, case.program.binary)
    assert hops.differences(case, 1)[0] == []
    return hops.cycles_of(case)


@pytest.mark.parametrize("planes", [1, 4])
def test_latencies_are_those_of_the_timing_table(planes, rng):
    cfg, flits, latency = hops.SYSTEM.tile, 2, hops.SYSTEM.links[0].latency
    times = timing(cfg)
    one = cycles("forward", 1, planes, rng)
    assert one == times["mem_read", "READ"].t_d + cfg.hops("mem0", "c2c") + planes * flits + \
        latency + rules(cfg).arrival_to_recv + times["recv", "RECV"].t_d + \
        max(cfg.hops("c2c", f"mem{4 + plane}") for plane in range(planes)) + \
        times["mem_write", "WRITE"].t_d
    hop = flits + latency + rules(cfg).arrival_to_recv
    assert cycles("forward", 3, planes, rng) == one + 2 * hop
    assert cycles("store", 3, planes, rng) > one + 2 * hop


def test_nothing_of_a_product_moves_for_what_passes_through(rng):
    words = rng.integers(0, 256, (9, hops.SYSTEM.tile.lanes), np.uint8)
    alone, together = (hops.busy_program(np.random.default_rng(1), words, traffic)
                       for traffic in (False, True))
    assert hops.own_issues(alone) == hops.own_issues(together)
    forwards = [issue for issue in together.program.plan.root.children[0].issues
                if issue.op == "FORWARD"]
    ends = max(start for start, *_ in hops.own_issues(alone))
    assert len(forwards) == len(words) and all(issue.start < ends for issue in forwards)
    verify_both(hops.SYSTEM, together.program.binary)
    assert hops.differences(together, 1)[0] == []


def test_other_words_are_a_problem(rng):
    case = hops.hop_program("forward", 2, 1,
                            rng.integers(0, 256, (1, hops.SYSTEM.tile.lanes), np.uint8))
    (tile, at, word), = case.results
    lines, _ = hops.differences(case._replace(results=[(tile, at, word ^ 1)]), 1)
    assert lines == ["forward 2: emulator has other words on tile 2"]
