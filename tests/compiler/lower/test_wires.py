"""The order of vectors on wires: as they come, and never one that sticks."""

from dataclasses import replace

import pytest

from compiler.lower.builder import Builder
from compiler.lower.chain import At, Chain
from compiler.lower.wires import in_time
from compiler.schedule.listing import schedule
from hdl.arch.config import ring
from hdl.arch.presets import DEMO

SYSTEM = ring(DEMO, 4)


class Cluster:
    def __init__(self, name):
        self.name = name


class Slot:
    offset = 0

    def __init__(self, name):
        self.cluster = Cluster(name)


class Edge:
    def __init__(self, source, target, distance):
        self.source, self.target, self.distance = source, target, distance


def order(slots, edges, wires, room=16):
    return in_time([slot.cluster for slot in slots], edges, wires, lambda end: room)


def test_the_first_to_come_goes_first():
    late, early, first, second = slots = [Slot(name) for name in "abcd"]
    before = Slot("before")
    edges = [Edge(before, late, 100), Edge(late, first, 10), Edge(early, second, 10)]
    wires = {(1, 0): [(late, first), (early, second)]}
    assert order([before, *slots], edges, wires) == {(1, 0): [1, 0]}
    edges[0] = Edge(before, late, 0)
    assert order([before, *slots], edges, wires) == {(1, 0): [0, 1]}


def test_vectors_of_one_instruction_stay_together():
    late, early, *takes = slots = [Slot(name) for name in "abcdef"]
    before = Slot("before")
    edges = [Edge(before, late, 100), *(Edge(late, take, 10) for take in takes[:2]),
             *(Edge(early, take, 10) for take in takes[2:])]
    wires = {(1, 0): [(late, takes[0]), (late, takes[1]), (early, takes[2]), (early, takes[3])]}
    assert order([before, *slots], edges, wires) == {(1, 0): [2, 3, 0, 1]}


def test_what_sticks_is_found():
    one, other, first, second = slots = [Slot(name) for name in "abcd"]
    wires = {(1, 0): [(one, first), (other, second)]}
    arrivals = [Edge(one, first, 10), Edge(other, second, 10)]
    # the first in the FIFO waits for the one behind it
    late = Slot("late")
    edges = [*arrivals, Edge(second, late, 1), Edge(late, first, 1)]
    assert order([one, other, second, late, first], edges, wires) is None
    # nobody takes anything before all has been sent, and there is no room for all
    edges = [*arrivals, Edge(one, first, 1), Edge(other, first, 1)]
    assert order(slots, edges, wires, room=2) is None
    # beside what begins its way there is room for four that pass
    assert order(slots, edges, wires, room=2 + 4) == {(1, 0): [0, 1]}


def relayed(far_first):
    """Tile 3 sends through tile 0 to tile 1, tile 0 to tile 1; named in this order or the other."""
    builder = Builder(SYSTEM)

    def chain(tile, build):
        one = Chain(SYSTEM.tile, f"chain of tile {tile}", tile)
        build(one)
        builder.add(one.cluster())

    def far():
        chain(3, lambda c: c.send(c.read(At(("mem0",), 0)), [0]))
        chain(0, lambda c: c.forward(0, [0]))
        chain(1, lambda c: c.write(c.recv(0), At(("mem7",), 0)))

    def near():
        chain(0, lambda c: c.send(c.read(At(("mem0",), 0)), [0]))
        chain(1, lambda c: c.write(c.recv(0), At(("mem7",), 1)))

    for part in (far, near) if far_first else (near, far):
        part()
    return builder


@pytest.mark.parametrize("far_first", [False, True])
def test_a_tiles_own_vector_does_not_wait_for_one_from_afar(far_first):
    builder = relayed(far_first)
    written = {}
    for step in ("named", "as they come"):
        body = schedule(SYSTEM.tile, builder.clusters, builder.edges)
        written[step] = {issue.index[0]: issue.start for issue in body.issues
                         if issue.op == "WRITE"}
        builder.reorder_wires()
    early = written["as they come"]
    assert early[1] < early[0]
    assert (written["named"][1] > written["named"][0]) == far_first
    assert max(early.values()) <= max(written["named"].values())


def test_the_fifo_at_the_end_of_a_link_does_not_overflow():
    """Many vectors through a FIFO of 4, taken in the order in which they were sent."""
    system = ring(replace(DEMO, ports=tuple(replace(port, fifo=4) for port in DEMO.ports)), 4)
    builder = Builder(system)
    for number in range(12):
        for tile in (0, 1):
            one = Chain(system.tile, f"vector {number} of tile {tile}", tile)
            if tile == 0:
                one.send(one.read(At(("mem0",), number)), [0])
            else:
                one.write(one.recv(0), At(("mem7",), number))
            builder.add(one.cluster())
    builder.reorder_wires()
    body = schedule(system.tile, builder.clusters, builder.edges)
    sends, takes = (sorted(issue.start for issue in body.issues if issue.op == op)
                    for op in ("SEND", "RECV"))
    link = system.links[0]
    flight = system.tile.port(0).flits(system.tile.lanes) + link.latency
    for number, send in enumerate(sends):
        assert sum(take < send + flight for take in takes) >= number - 3
