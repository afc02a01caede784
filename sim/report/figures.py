"""Figures of a program, from its plan and binary alone; nothing is run.

A step is one run of the step level; what stands in the plan outside of it is not counted.
"""

from bisect import bisect_right
from math import prod
from typing import NamedTuple

import numpy as np

from hdl.arch.isa import word_bytes
from hdl.arch.queues import link_names, queue_index, queues

__all__ = ["KindMemory", "Stretch", "busy_cycles", "instruction_bytes", "instruction_memory",
           "link_vectors", "sram_words", "step_cycles", "stretches"]


class KindMemory(NamedTuple):
    """Instruction memory of all queues of one kind on all tiles.

    Attributes
    ----------
    kind : str
    words, bytes : int
        Of all of them.
    largest : int
        Words of the queue that has most.
    tile, queue : int, str
        That queue.
    """

    kind: str
    words: int
    bytes: int
    largest: int
    tile: int
    queue: str


class Stretch(NamedTuple):
    """A piece of a step: a loop, or what lies between two loops.

    Attributes
    ----------
    depth : int
        Loops around it.
    start : int
        Cycle of the step (of one run of the loop around it) at which it begins.
    cycles, runs : int
        Cycles of one run, runs one after the other.
    total : int
        Cycles of a step that it takes, all runs of the loops around it counted.
    issues : int
        Instructions of one run, on all tiles.
    loop : bool
    """

    depth: int
    start: int
    cycles: int
    runs: int
    total: int
    issues: int
    loop: bool


def _step(plan):
    """The region of the step level."""
    return plan.root.children[0] if plan.root.children else plan.root


def _count(region):
    return 1 if region.count is None else region.count


def step_cycles(plan):
    """Cycles a step."""
    return _step(plan).period


def _issues_of_step(plan):
    """Every planned issue of a step with the number of times it happens."""
    for region, _, path in _step(plan).walk():
        runs = prod(_count(around) for around in path[1:])
        for issue in region.issues:
            yield issue, runs


def busy_cycles(plan):
    """Cycles of a step in which the unit behind each queue is busy: array of int (tiles, queues).

    A unit is busy in the cycles in which its queue issues; a link (the queues ``send``, outward,
    and ``recv``, inward) in those in which a vector is on its wire.
    """
    cfg = plan.system.tile
    numbers = queue_index(cfg)
    found = np.zeros((plan.system.tiles, len(numbers)), np.int64)
    for issue, runs in _issues_of_step(plan):
        found[issue.tile, numbers[issue.queue]] += runs
    out = link_vectors(plan)
    inward = np.zeros_like(out)
    for link in plan.system.links:
        inward[link.target, link.target_port] = out[link.source, link.source_port]
    for port, name in enumerate(link_names(cfg)):
        flits = cfg.port(port).flits(cfg.lanes)
        found[:, numbers[f"{name}.send"]] = out[:, port] * flits
        found[:, numbers[f"{name}.recv"]] = inward[:, port] * flits
    return found


def link_vectors(plan):
    """Vectors that leave in a step: array of int (tiles, ports); the host is the last port."""
    ports = len(link_names(plan.system.tile))
    found = np.zeros((plan.system.tiles, ports), np.int64)
    for issue, runs in _issues_of_step(plan):
        fields = dict(issue.fields)
        if fields.get("links"):
            leaving = [port for port in range(ports) if fields["links"] >> port & 1]
            found[issue.tile, leaving] += runs * (4 if fields.get("quad") else 1)
    return found


def instruction_memory(program):
    """`KindMemory` of every kind of queue, in the order of the queues."""
    cfg, found = program.system.tile, {}
    for queue in queues(cfg):
        for number, tile in enumerate(program.binary.tiles):
            words = len(tile.words.get(queue.name, ()))
            found.setdefault(queue.kind, []).append((words, number, queue.name))
    rows = []
    for kind, sizes in found.items():
        total = sum(words for words, _, _ in sizes)
        largest, tile, queue = max(sizes, key=lambda size: size[0])
        rows.append(KindMemory(kind, total, total * word_bytes(cfg, kind), largest, tile, queue))
    return rows


def instruction_bytes(program):
    """Bytes of instruction words by kind of queue: dict of str to list, one number a tile."""
    cfg, found = program.system.tile, {}
    for queue in queues(cfg):
        mine = found.setdefault(queue.kind, [0] * program.system.tiles)
        for number, tile in enumerate(program.binary.tiles):
            mine[number] += len(tile.words.get(queue.name, ())) * word_bytes(cfg, queue.kind)
    return found


def sram_words(program):
    """Words that a program has a use for: array of int (tiles, slices).

    Those that it loads, and those that have a name.
    """
    cfg = program.system.tile
    names = cfg.slices("mem")
    pieces = {(tile, name): [] for tile in range(program.system.tiles) for name in names}
    for number, tile in enumerate(program.binary.tiles):
        for name, runs in tile.sram.items():
            pieces[number, name] += [(address, address + len(content) // cfg.lanes)
                                     for address, content in runs.items()]
    for symbol in program.symbols.values():
        for name in symbol.slices:
            pieces[symbol.tile, name].append((symbol.address, symbol.address + symbol.words))
    return np.array([_covered(some) for some in pieces.values()]).reshape(-1, len(names))


def _covered(pieces):
    """Words in the union of ``pieces``, each from its first word to before its last."""
    covered = reached = 0
    for begin, end in sorted(pieces):
        covered += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return covered


def stretches(plan):
    """The pieces of a step in order of time, a loop before what is in it."""
    step = _step(plan)
    return list(_stretches(step, 0, 1))


def _stretches(region, depth, runs):
    """Pieces of ``region``, all of whose runs in a step are ``runs``."""
    loops = sorted(region.children, key=lambda child: child.start)
    starts = [loop.start for loop in loops]
    straight = [0] * (len(loops) + 1)
    for issue in region.issues:
        straight[bisect_right(starts, issue.start)] += 1
    begin = 0
    for number, loop in enumerate([*loops, None]):
        end = region.period if loop is None else loop.start
        if straight[number]:
            yield Stretch(depth, begin, end - begin, 1, (end - begin) * runs, straight[number],
                          False)
        if loop is not None:
            count = _count(loop)
            inside = list(_stretches(loop, depth + 1, runs * count))
            yield Stretch(depth, loop.start, loop.period, count, loop.period * count * runs,
                          sum(part.issues * part.runs for part in inside
                              if part.depth == depth + 1), True)
            if loop.children:       # otherwise the loop says it all
                yield from inside
            begin = loop.start + loop.period * count
