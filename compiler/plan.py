"""The plan: every instruction issue with its cycle, as affine sets.

A plan is a tree of regions.  A region is a stretch of time that runs ``count`` times, one run every
``period`` cycles on every queue of every tile; it holds issues and smaller regions.  An issue at
``start`` of its region therefore happens at::

    sum over the regions around it of (region.start + i[region] * region.period) + issue.start

The root runs once and starts at event cycle 0.  The region just below it is the step level: its
count is the number of steps the host asks for, and its index starts at the host's first step.
Plans never look at instruction words to know when something happens: the words are made from them.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hdl.arch import trace
from hdl.arch.encoding import crc16
from hdl.arch.isa import index_bits, word_bytes
from hdl.arch.queues import queue_index, queues
from hdl.arch.timing import departure, link_arrival, of

__all__ = ["Term", "Issue", "Region", "Plan", "added", "expand", "iterations", "stepped"]


class Term(NamedTuple):
    """``((i >> shift) & mask) * step`` of the region at depth ``level`` (0: the step level)."""
    level: int
    shift: int
    mask: int
    step: int

    @classmethod
    def counting(cls, level, count, step):
        """``step`` more in each of ``count`` iterations."""
        return cls(level, 0, (1 << (count - 1).bit_length()) - 1, step)


@dataclass(frozen=True)
class Issue:
    """One planned instruction of a region, or a SYNC, at which its queue's time stands still.

    Parameters
    ----------
    tile, queue, op : int, str, str
        Where, and the opcode's name.
    start : int
        Cycle within the region.
    fields : tuple of (str, int)
        Operand fields, without indices.
    index : tuple of int
        Base of each index of the queue's kind.
    terms : tuple of tuple of Term
        What the loops add, for each index.
    predicate : Term or None
        Of a WRITE: it writes where ``((step >> shift) & mask) == predicate.step``.
    word : int or None
        Its instruction word, once assembled.
    """

    tile: int
    queue: str
    op: str
    start: int
    fields: tuple = ()
    index: tuple = ()
    terms: tuple = ()
    predicate: Term | None = None
    word: int | None = None


@dataclass
class Region:
    """A stretch of ``period`` cycles, run ``count`` times; ``count`` None: the host's steps."""

    start: int
    period: int
    count: int | None
    issues: list = field(default_factory=list)
    children: list = field(default_factory=list)

    def walk(self, depth=-1, path=()):
        """Yield every region, its depth (the root is -1) and the regions from the root to it."""
        path = (*path, self)
        yield self, depth, path
        for child in self.children:
            yield from child.walk(depth + 1, path)


@dataclass
class Plan:
    """A schedule for a system: the root region and what it was made for."""

    root: Region
    system: object

    def cycles(self, steps):
        """Cycles from the start to the end of the last region of ``steps`` steps."""
        return max((child.start + child.period * _count(child, steps)
                    for child in self.root.children), default=self.root.period)


def stepped(system, body):
    """A `Plan` whose every step is the `Schedule` ``body``."""
    step = Region(start=0, period=body.end, count=None, issues=body.issues)
    return Plan(Region(0, body.end, 1, children=[step]), system)


def _count(region, steps):
    return steps if region.count is None else region.count


def iterations(path, first_step, steps):
    """Start cycle of each run of the last region of ``path``, and the index of each level in it."""
    start = np.zeros(1, np.int64)
    levels = []
    for depth, region in enumerate(path, -1):
        index = np.arange(_count(region, steps), dtype=np.int64)
        start = (start[:, None] + region.start + index * region.period).reshape(-1)
        if depth >= 0:
            levels = [np.repeat(level, len(index)) for level in levels]
            first = first_step if depth == 0 else 0
            levels.append(np.tile(index + first, len(start) // len(index)))
    return start, levels


def added(terms, levels, count):
    """What ``terms`` add in each of ``count`` iterations."""
    value = np.zeros(count, np.int64)
    for term in terms:
        value += ((levels[term.level] >> term.shift) & term.mask) * term.step
    return value


class _Columns:
    """Collects columns of events and builds one sorted record array."""

    def __init__(self, dtype):
        self._dtype = np.dtype(dtype)
        self._parts = []

    def add(self, cycle, **columns):
        part = np.zeros(len(cycle), self._dtype)
        part["cycle"] = cycle
        for name, column in columns.items():
            part[name] = column
        self._parts.append(part)

    def array(self):
        table = np.concatenate(self._parts) if self._parts else np.zeros(0, self._dtype)
        return table[np.lexsort((table["unit"], table["tile"], table["cycle"]))]


def expand(plan, steps, first_step=0):
    """Every event of ``steps`` steps.

    Returns
    -------
    dict of str to numpy record array
        ``issues`` (`trace.ISSUE`), ``writes`` (cycle, tile, unit, address) and ``arrivals`` (cycle,
        tile, unit), sorted by cycle, tile and unit.
    """
    cfg = plan.system.tile
    issues = _Columns(trace.ISSUE)
    writes = _Columns([column for column in trace.write_record(cfg) if column[0] != "data"])
    arrivals = _Columns([column for column in trace.arrival_record(cfg) if column[0] != "data"])
    for region, _, path in plan.root.walk():
        start, levels = iterations(path, first_step, steps)
        alike = defaultdict(list)
        for issue in region.issues:
            if issue.op == "SYNC":      # a wait is no event
                continue
            alike[issue.queue, issue.op, issue.terms, issue.predicate].append(issue)
        for group in alike.values():
            _expand_group(plan.system, group, start, levels, issues, writes, arrivals)
    return {"issues": issues.array(), "writes": writes.array(), "arrivals": arrivals.array()}


def _expand_group(system, group, start, levels, issues, writes, arrivals):
    """Events of the issues ``group`` of one queue name, opcode, terms and predicate."""
    cfg = system.tile
    one = group[0]
    number = queue_index(cfg)[one.queue]
    queue = queues(cfg)[number]
    t_d = of(cfg, queue, one.op).t_d
    cycle = (start[:, None] + np.array([issue.start for issue in group])).reshape(-1)
    tile = np.tile([issue.tile for issue in group], len(start))
    packed, offset = np.zeros(len(cycle), np.int64), 0
    for i, width in enumerate(index_bits(cfg, queue.kind)):
        bases = np.array([issue.index[i] for issue in group])
        index = (added(one.terms[i], levels, len(start))[:, None] + bases).reshape(-1)
        index &= (1 << width) - 1
        packed |= index << offset
        offset += width
    size = word_bytes(cfg, queue.kind)
    crc = np.tile([crc16(issue.word, size) for issue in group], len(start))
    issues.add(cycle, tile=tile, unit=number, index=packed, crc=crc)
    if one.op == "WRITE":
        holds = np.ones(len(start), bool)
        if one.predicate:
            term = one.predicate
            holds = (levels[term.level] >> term.shift) & term.mask == term.step
        holds = np.repeat(holds, len(group))
        writes.add(cycle[holds] + t_d, tile=tile[holds], unit=queue.unit, address=packed[holds])
    elif queue.kind in ("send", "recv") and one.op != "POST":
        for issue in group:
            _arrivals(arrivals, system, issue, start + issue.start + departure(cfg, queue.kind))


def _arrivals(columns, system, issue, leaving):
    cfg = system.tile
    fields = dict(issue.fields)
    vectors = 4 if fields.get("quad") else 1
    for port in range(len(cfg.ports)):
        link = system.outgoing(issue.tile, port)
        if fields.get("links", 0) >> port & 1 and link:
            for vector in range(vectors):
                at = link_arrival(cfg, port, link.latency, leaving, vector)
                columns.add(at, tile=link.target, unit=link.target_port)
