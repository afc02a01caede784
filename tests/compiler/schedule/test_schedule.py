"""Clusters keep their distances, schedules keep their edges, bounds stay below schedules."""

from dataclasses import replace

import numpy as np
import pytest

from compiler.errors import CompileError, ScheduleError
from compiler.lower.builder import Builder
from compiler.lower.chain import At, Chain, Entry
from compiler.lower.matvec import matvec_program
from compiler.schedule import bound as work_bound
from compiler.schedule.bound import schedule_bound
from compiler.schedule.footprint import Footprint, Resources, fits
from compiler.schedule.listing import schedule
from compiler.schedule.problem import Bundle, Cluster, Edge, Slot, alus_for
from hdl.arch.config import AluConfig, pair, single
from hdl.arch.presets import DEMO, FPGA, NANO
from hdl.arch.timing import rules


def _copy(cfg, source, target, address=0):
    chain = Chain(cfg, f"{source} to {target} {address}", 0)
    chain.write(chain.read(At((source,), address)), At((target,), address), [None])
    return chain.cluster()


def test_a_copy_takes_the_delay_of_the_read_and_the_hops():
    cluster = _copy(DEMO, "mem1", "mem6")
    read, write = cluster.slots
    assert write.offset - read.offset == 1 + DEMO.hops("mem1", "mem6")


def test_distances_that_contradict_each_other_are_refused():
    reads = [Slot(0, f"mem{i}.read", "READ", index=(0,), terms=((),)) for i in range(2)]
    writes = [Slot(0, f"mem{i}.write", "WRITE", index=(0,), terms=((),)) for i in (4, 5)]
    bundles = [Bundle(1, [(reads[0], 0)], [(writes[0], "source", 0), (writes[1], "source", 0)]),
               Bundle(1, [(reads[1], 0)], [(writes[1], "source", 0)])]
    Cluster(DEMO, "fine", [*reads, *writes], bundles)
    chain = Chain(DEMO, "late", 0)
    value = chain.alu("PASS", chain.read(At(DEMO.slices("mem")[:4], 0)))
    chain.alu("ADD", chain.alu("PASS", value), value)       # a result exists in one cycle only
    with pytest.raises(ScheduleError, match="ADD cannot meet all its operands|PASS cannot meet"):
        chain.cluster()


def test_instructions_that_nothing_joins_are_refused():
    slots = [Slot(0, f"mem{i}.read", "READ", index=(0,), terms=((),)) for i in range(2)]
    with pytest.raises(ScheduleError, match="not joined by streams"):
        Cluster(DEMO, "two", slots, [])


def test_clusters_of_one_queue_take_turns():
    clusters = [_copy(NANO, "mem0", "mem1", i) for i in range(5)]
    body = schedule(NANO, clusters, [])
    starts = sorted(body.start.values())
    assert starts == [1, 2, 3, 4, 5]
    assert body.end == 5 + 1 + NANO.hops("mem0", "mem1") + 2


def test_values_that_would_meet_take_different_streams():
    # Both pass position 3 in cycle 3 if they start together: mem0 is one hop west of mem1.
    clusters = [_copy(NANO, "mem0", "mem3"), _copy(NANO, "mem1", "mem2", 1)]
    body = schedule(NANO, clusters, [Edge(clusters[0].slots[0], clusters[1].slots[0], 1)])
    streams = {dict(issue.fields)["east"] for issue in body.issues if issue.op == "READ"}
    assert sorted(body.start.values()) == [1, 2] and len(streams) == 2


def test_too_few_streams_delay():
    cfg = NANO
    clusters = [_copy(cfg, name, "mem3", i) for i in range(3) for name in ("mem0", "mem1", "mem2")]
    body = schedule(cfg, clusters, [])
    assert len({start + cluster.slots[1].offset for cluster, start in body.start.items()}) == 9


@pytest.mark.parametrize("seed", range(8))
def test_edges_hold_and_the_bound_is_below_the_schedule(seed):
    rng = np.random.default_rng(seed)
    names = DEMO.slices("mem")
    clusters = [_copy(DEMO, *rng.choice(names, 2, replace=False), i) for i in range(40)]
    edges = [Edge(clusters[i].slots[0], clusters[j].slots[0], int(rng.integers(-3, 20)))
             for i, j in np.sort(rng.integers(0, 40, (60, 2)), axis=1) if i != j]
    body = schedule(DEMO, clusters, edges)
    for edge in edges:
        first, second = (body.start[slot.cluster] + slot.offset
                         for slot in (edge.source, edge.target))
        assert second >= first + edge.distance
    bound, _ = schedule_bound(DEMO, clusters, edges)
    assert 0 < bound <= max(body.start[c] + c.slots[1].offset for c in clusters)


def test_the_bound_of_work_on_one_unit_is_its_work():
    clusters = [_copy(NANO, "mem0", "mem1", i) for i in range(20)]
    bound, why = schedule_bound(NANO, clusters, [])
    # 20 reads, pooled over four slices, and the last copy's way to its write.
    assert bound == 20 // 4 - 1 + 1 + 1 + NANO.hops("mem0", "mem1")
    assert why.startswith("mem_")


def test_the_bound_follows_the_longest_path():
    clusters = [_copy(NANO, "mem0", "mem1", i) for i in range(4)]
    edges = [Edge(a.slots[0], b.slots[0], 50) for a, b in zip(clusters, clusters[1:], strict=False)]
    assert schedule_bound(NANO, clusters, edges) == (3 * 50 + 1 + 1 + 1, "path")


def test_edges_in_a_circle_are_refused():
    clusters = [_copy(NANO, "mem0", "mem1", i) for i in range(2)]
    first, second = (cluster.slots[0] for cluster in clusters)
    with pytest.raises(ScheduleError, match="waits for itself"):
        schedule(NANO, clusters, [Edge(first, second, 1), Edge(second, first, 1)])


def _cells(print_, chosen):
    return sorted(print_.fixed + [cell for options, number in zip(print_.choices, chosen,
                                                                  strict=True)
                                  for cell in options[number]])


def _longest(clusters, edges):
    """Least cycles from cluster i to j by number, or None: all paths of a graph in order."""
    count = len(clusters)
    found = [[None] * count for _ in range(count)]
    for j in range(count):
        for edge in edges:
            if edge.target.cluster is clusters[j]:
                i = clusters.index(edge.source.cluster)
                step = edge.source.offset + edge.distance - edge.target.offset
                for k in range(count):
                    far = 0 if k == i else found[k][i]
                    if far is not None and (found[k][j] is None or far + step > found[k][j]):
                        found[k][j] = far + step
    return found


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_asks_every_kind_of_unit_whose_work_can_raise_it(seed, monkeypatch):
    """Against a bound that asks all kinds at every join, and finds distances in its own way."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(work_bound, "_joins", lambda cluster: True)
    names = NANO.slices("mem")
    clusters = [_copy(NANO, *rng.choice(names, 2, replace=False), i) for i in range(100)]
    # 32 side by side from one to the next, three times, and some more across
    pairs = [(first, k, 0) for first in (0, 33, 66) for k in range(first + 1, first + 33)]
    pairs += [(k, first + 33, 20) for first in (0, 33, 66) for k in range(first + 1, first + 33)]
    pairs += [(i, j, 0) for i, j in np.sort(rng.integers(0, 100, (10, 2)), axis=1) if i != j]
    edges = [Edge(clusters[i].slots[0], clusters[j].slots[0], least + int(rng.integers(-1, 3)))
             for i, j, least in pairs]
    far = _longest(clusters, edges)
    start = [0] * 100
    for v in range(100):
        before = [u for u in range(v) if far[u][v] is not None]
        start[v] = max([0] + [start[u] + far[u][v] for u in before])
        for slot in range(2):       # reads, then writes
            work = [(start[u] + clusters[u].slots[slot].offset,
                     far[u][v] - clusters[u].slots[slot].offset) for u in before]
            if len(work) >= 2 * len(names):
                head, behind = (np.array(column) for column in zip(*work, strict=True))
                start[v] = max(start[v], work_bound._work(head, np.ones(len(head), int), len(names),
                                                     behind))
    ends = max(at + 1 + cluster.slots[1].offset for at, cluster in zip(start, clusters,
                                                                       strict=True))
    assert schedule_bound(NANO, clusters, edges)[0] >= ends


@pytest.mark.parametrize("seed", range(20))
def test_the_work_of_units_bounds_like_every_subset_cut_by_head_and_distance(seed):
    rng = np.random.default_rng(seed)
    count, units = int(rng.integers(2, 40)), int(rng.integers(1, 4))
    head, behind = rng.integers(0, 50, count), rng.integers(0, 50, count)
    took = rng.integers(1, 4, count)
    found = 0
    for cut in np.quantile(head, np.arange(12) / 12):
        for least in behind[head >= cut]:
            chosen = (head >= cut) & (behind >= least)
            found = max(found, head[head >= cut].min() + -(-took[chosen].sum() // units)
                        - took.max() + least)
    assert work_bound._work(head, took, units, behind) == found


def test_clusters_of_one_shape_differ_in_tile_place_and_name_only():
    def product(tile, word, immediate, streams=4):
        chain = Chain(DEMO, f"{tile} {word}", tile)
        value = chain.alu("MUL", chain.read(At(DEMO.slices("mem")[:streams], word)), immediate)
        chain.write(value, At(DEMO.slices("mem")[4:], word + 1))
        return chain.cluster()
    one, other = product(0, 3, 2.0), product(1, 70, 0.5)
    assert one.shape is other.shape
    assert _copy(DEMO, "mem0", "mem6").shape is not _copy(DEMO, "mem0", "mem5").shape
    issues = schedule(DEMO, [one, other], []).issues
    by_tile = [[issue for issue in issues if issue.tile == tile] for tile in range(2)]
    for mine, word, immediate in zip(by_tile, (3, 70), (0x40000000, 0x3F000000), strict=True):
        assert {issue.index for issue in mine if issue.op == "READ"} == {(word,)}
        assert {issue.index for issue in mine if issue.op == "WRITE"} == {(word + 1,)}
        product, = (dict(issue.fields) for issue in mine if issue.op == "MUL")
        assert product["immediate"] == immediate
    # tiles have their own units: the two do not wait for each other
    assert [issue.start for issue in by_tile[0]] == [issue.start for issue in by_tile[1]]


def test_what_is_blocked_is_what_meets_a_cell_that_is_taken():
    resources = Resources()
    cluster = _copy(NANO, "mem0", "mem1")
    mine = Footprint(NANO, cluster, resources)
    taken = [0] * len(resources)
    chosen = mine.choose(taken, 5)
    mine.take(taken, 5, chosen)
    for start in range(1, 10):
        meets = any(taken[resource] >> start + offset & 1 for resource, offset in mine.fixed)
        assert (mine.blocked(taken, 1) >> start - 1 & 1) == meets == (start == 5)
    # one more on each stream, and then none
    for turn in range(1, NANO.streams):
        mine.fixed = []     # units aside
        assert mine.choose(taken, 5) == [turn]
        mine.take(taken, 5, [turn])
    assert mine.choose(taken, 5) is None and mine.blocked(taken, 5) & 1


def test_seen_from_behind_a_cluster_takes_the_same_cells():
    mine = Footprint(DEMO, _copy(DEMO, "mem0", "mem6"), Resources())
    behind = mine.mirrored()
    assert _cells(behind, [2]) == sorted((resource, -offset)
                                         for resource, offset in _cells(mine, [2]))
    assert behind.first == -max(offset for _, offset in _cells(mine, [0])) and mine.first == 0


def test_a_cluster_that_meets_itself_does_not_fit():
    at = At(DEMO.slices("mem")[:4], 0)
    for words, fit in ((1, True), (0, False)):
        chain = Chain(DEMO, "twice", 0)
        value = chain.alu("MUL", chain.read(at), 2.0)
        for _ in range(words):
            value = chain.alu("PASS", value)
        chain.write(chain.alu("ADD", value, chain.alu("MUL", chain.read(at), 3.0)
                              if not words else chain.read(at)), at)
        assert fits(DEMO, chain.cluster()) == fit


@pytest.mark.parametrize("seed", range(6))
def test_improved_schedules_hold_and_are_no_longer(seed):
    rng = np.random.default_rng(seed)
    names = NANO.slices("mem")
    clusters = [_copy(NANO, *rng.choice(names, 2, replace=False), i) for i in range(60)]
    edges = [Edge(clusters[i].slots[0], clusters[j].slots[0], int(rng.integers(-3, 30)))
             for i, j in np.sort(rng.integers(0, 60, (50, 2)), axis=1) if i != j]
    list_, improved = (schedule(NANO, clusters, edges, rounds=rounds) for rounds in (0, 8))
    assert improved.end <= list_.end
    for body in (list_, improved):
        assert min(body.start.values()) >= 1
        for edge in edges:
            first, second = (body.start[slot.cluster] + slot.offset
                             for slot in (edge.source, edge.target))
            assert second >= first + edge.distance
        units = [(issue.queue, issue.start) for issue in body.issues]
        assert len(set(units)) == len(units)


def test_entries_are_read_once_the_result_is_there():
    builder = Builder(single(DEMO))
    quad = DEMO.slices("mem")[:4]
    first, second = (Chain(DEMO, name, 0) for name in ("keep", "use"))
    first.alu("PASS", first.read(At(quad, 0)), on=1, keep=2)
    second.write(second.alu("MUL", Entry(2), 2.0, on=1), At(DEMO.slices("mem")[4:], 1))
    for chain in (first, second):
        builder.add(chain.cluster())
    body = schedule(DEMO, builder.clusters, builder.edges)
    at = {issue.op: issue.start for issue in body.issues}
    assert at["MUL"] == at["PASS"] + DEMO.alus[1].depth


def test_a_word_is_read_behind_its_write():
    builder = Builder(single(NANO))
    for source, target in (("mem0", "mem1"), ("mem1", "mem2")):
        builder.add(_copy(NANO, source, target, 3))
    body = schedule(NANO, builder.clusters, builder.edges)
    write = next(i.start for i in body.issues if i.queue == "mem1.write")
    read = next(i.start for i in body.issues if i.queue == "mem1.read")
    assert read == write + rules(NANO).write_to_read


def test_a_receive_without_a_send_is_refused():
    chain = Chain(DEMO, "receive", 1)
    chain.write(chain.recv(0), At(("mem0",), 0), [None])
    with pytest.raises(CompileError, match="nothing was sent on link 0 to tile 1"):
        Builder(pair(DEMO)).add(chain.cluster())


def test_alus_are_found_by_feature():
    assert alus_for(FPGA, "MUL") == ("alu0", "alu2")
    assert alus_for(FPGA, "RSQRT") == ("alu2",)
    assert alus_for(DEMO, "EXP2") == ("alu3",)
    assert len(alus_for(DEMO, "ADD")) == len(DEMO.alus)
    with pytest.raises(ScheduleError, match="EXP2 needs an ALU with the feature 'special'"):
        alus_for(replace(NANO, alus=(AluConfig(),)), "EXP2")


def test_schedules_are_reproducible():
    weights = np.arange(-64, 64, dtype=np.int8).reshape(8, 16)
    plans = [matvec_program(pair(NANO), weights, np.arange(8)) for _ in range(2)]
    issues = [plan.root.children[0].issues for plan, _ in plans]
    assert issues[0] == issues[1]
