"""List scheduling of clusters: longest path first, earliest cycle that is free.

The result is complete: cycles, units, stream numbers and the `last` bits.
"""

import heapq
from collections import defaultdict

from ..errors import ScheduleError
from .streams import issues_of, registers
from .tables import Tables

__all__ = ["Schedule", "schedule"]

#: A cluster that finds no place within this many cycles of its earliest start never will.
_HORIZON = 1 << 20


class Schedule:
    """Clusters with their start cycles.

    Attributes
    ----------
    start : dict of Cluster to int
        Cycle of each cluster's first issue.
    issues : list of Issue
        The instructions with cycles and streams.
    end : int
        First cycle in which nothing is issued, written or moved any more.
    """

    def __init__(self):
        self.start = {}
        self.issues = []
        self.end = 0


def schedule(cfg, clusters, edges, first=1):
    """Place ``clusters`` so that every edge holds and nothing is used twice.

    Parameters
    ----------
    cfg : TileConfig
    clusters : list of Cluster
    edges : list of Edge
    first : int
        First cycle that may be used; 1 leaves the cycle that a LOOP word needs.

    Returns
    -------
    Schedule

    Raises
    ------
    ScheduleError
        When the edges form a cycle, or a cluster does not fit.
    """
    incoming, outgoing, waiting = _graph(clusters, edges)
    urgency = _urgency(clusters, outgoing, incoming)
    result, tables = Schedule(), Tables()
    order = {cluster: number for number, cluster in enumerate(clusters)}
    ready = [(-urgency[c], order[c], c) for c in clusters if not waiting[c]]
    heapq.heapify(ready)
    while ready:
        _, _, cluster = heapq.heappop(ready)
        earliest = max((result.start[edge.source.cluster] + edge.source.offset + edge.distance
                        - edge.target.offset for edge in incoming[cluster]), default=first)
        _place(cfg, tables, cluster, max(first, earliest), result)
        for edge in outgoing[cluster]:
            waiting[edge.target.cluster] -= 1
            if not waiting[edge.target.cluster]:
                target = edge.target.cluster
                heapq.heappush(ready, (-urgency[target], order[target], target))
    return result


def _graph(clusters, edges):
    incoming, outgoing, waiting = defaultdict(list), defaultdict(list), defaultdict(int)
    for edge in edges:
        if edge.source.cluster is edge.target.cluster:
            continue
        incoming[edge.target.cluster].append(edge)
        outgoing[edge.source.cluster].append(edge)
        waiting[edge.target.cluster] += 1
    return incoming, outgoing, waiting


def _urgency(clusters, outgoing, incoming):
    """Cycles from the start of each cluster to the end along its longest path."""
    left = {cluster: len(outgoing[cluster]) for cluster in clusters}
    stack = [cluster for cluster in clusters if not left[cluster]]
    urgency = {}
    while stack:
        cluster = stack.pop()
        own = max(slot.offset + cluster.times(slot).t_d for slot in cluster.slots)
        urgency[cluster] = max([own] + [urgency[edge.target.cluster] + edge.source.offset
                                        + edge.distance - edge.target.offset
                                        for edge in outgoing[cluster]])
        for edge in incoming[cluster]:
            left[edge.source.cluster] -= 1
            if not left[edge.source.cluster]:
                stack.append(edge.source.cluster)
    if len(urgency) < len(clusters):
        stuck = next(cluster for cluster in clusters if cluster not in urgency)
        raise ScheduleError(f"{stuck.name} waits for itself: its order edges form a cycle")
    return urgency


def _place(cfg, tables, cluster, earliest, result):
    """Put ``cluster`` at its first free cycle from ``earliest`` on."""
    fixed = [(use.resource, use.offset, use.length) for use in cluster.uses]
    fixed += [(_queue(slot, slot.queue), slot.offset, 1) for slot in cluster.slots
              if isinstance(slot.queue, str)]
    paths = [registers(cluster, bundle) for bundle in cluster.bundles]
    taken = 0
    for resource, offset, length in fixed:
        taken |= tables.conflicts(resource, offset, length, earliest)
    for slot in cluster.slots:
        if not isinstance(slot.queue, str):
            taken |= _all_taken([[(_queue(slot, queue), slot.offset)] for queue in slot.queues],
                                tables, earliest)
    for path, bundle in zip(paths, cluster.bundles, strict=True):
        taken |= _all_taken([[(register.resource(base), register.offset) for register in path]
                             for base in range(0, cfg.streams, bundle.width)], tables, earliest)
    delay = _next_free(taken, 0)
    while delay < _HORIZON:
        choice = _choose(cfg, tables, cluster, paths, fixed, earliest + delay)
        if choice:
            break
        delay = _next_free(taken, delay + 1)
    else:
        raise ScheduleError(f"{cluster.name} finds no free cycle within {_HORIZON} of {earliest}")
    start = earliest + delay
    units, streams, cells = choice
    for resource, cycle in cells:
        tables.reserve(resource, cycle, 1, cluster.name)
    result.start[cluster] = start
    result.issues += issues_of(cluster, units, streams, start)
    result.end = max(result.end, *(start + slot.offset + cluster.times(slot).t_d + 1
                                   for slot in cluster.slots),
                     *(start + offset + length for _, offset, length in fixed))


def _queue(slot, name):
    return ("queue", slot.tile, name)


def _next_free(taken, delay):
    """First bit from ``delay`` on that is 0 in ``taken``."""
    rest = ~(taken >> delay)
    return delay + (rest & -rest).bit_length() - 1 if rest else _HORIZON


def _all_taken(choices, tables, earliest):
    """Bit ``i``: each of ``choices`` (lists of (resource, offset)) has a conflict at
    ``earliest + i``."""
    taken = -1
    for choice in choices:
        this = 0
        for resource, offset in choice:
            this |= tables.conflicts(resource, offset, 1, earliest)
        taken &= this
        if not taken:
            break
    return taken


def _choose(cfg, tables, cluster, paths, fixed, start):
    """Units and streams of ``cluster`` at ``start``: queue by slot, base by bundle and all cells
    they take, or None where they do not fit."""
    mine = {(resource, start + offset + i) for resource, offset, length in fixed
            for i in range(length)}
    if len(mine) < sum(length for _, _, length in fixed):
        raise ScheduleError(f"{cluster.name} needs one unit twice in a cycle")

    def take(cells):
        if any(cell in mine or tables.taken(*cell) for cell in cells):
            return False
        mine.update(cells)
        return True

    units, streams = {}, []
    for slot in cluster.slots:
        units[id(slot)] = next((queue for queue in slot.queues if queue == slot.queue or
                                take([(_queue(slot, queue), start + slot.offset)])), None)
        if units[id(slot)] is None:
            return None
    for path, bundle in zip(paths, cluster.bundles, strict=True):
        base = next((base for base in range(0, cfg.streams, bundle.width)
                     if take([(register.resource(base), start + register.offset)
                              for register in path])), None)
        if base is None:
            return None
        streams.append(base)
    return units, streams, mine
