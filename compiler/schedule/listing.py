"""List scheduling of clusters: longest path first, earliest cycle that is free.

The result is complete: cycles, stream numbers and the `last` bits.
"""

import heapq
from collections import defaultdict

from ..errors import ScheduleError
from ..plan import Issue
from .problem import producer_planes
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
    uses = [(("queue", slot.tile, slot.queue), slot.offset, 1) for slot in cluster.slots]
    uses += [(use.resource, use.offset, use.length) for use in cluster.uses]
    paths = [_path(cluster, bundle) for bundle in cluster.bundles]
    taken = 0
    for resource, offset, length in uses:
        taken |= tables.conflicts(resource, offset, length, earliest)
    for path, bundle in zip(paths, cluster.bundles, strict=True):
        taken |= _streams_taken(cfg, tables, path, bundle, earliest)
    delay = 0
    while delay < _HORIZON:
        if not taken >> delay & 1:
            start = earliest + delay
            streams = _choose(cfg, tables, cluster, paths, start)
            if streams is not None:
                break
        delay += 1
    else:
        raise ScheduleError(f"{cluster.name} finds no free cycle within {_HORIZON} of {earliest}")
    for resource, offset, length in uses:
        tables.reserve(resource, start + offset, length, cluster.name)
    result.start[cluster] = start
    result.issues += _issues(cluster, streams, start)
    result.end = max(result.end, *(start + slot.offset + cluster.times(slot).t_d + 1
                                   for slot in cluster.slots),
                     *(start + offset + length for _, offset, length in uses))


def _path(cluster, bundle):
    """Stream registers that ``bundle`` occupies: (tile, direction, plane, boundary, offset).

    ``boundary`` is the position the value moves on from; ``offset`` the cycle, from the cluster's
    start, in which it is written into that register.
    """
    registers = []
    west = _runs_west(cluster, bundle)
    for producer, first in bundle.producers:
        origin = cluster.position(producer)
        written = producer.offset + cluster.times(producer).t_d
        for plane in range(first, first + producer_planes(producer, bundle)):
            readers = [cluster.position(consumer) for consumer, _, begin, count in bundle.consumers
                       if begin <= plane < begin + count]
            if not readers:
                raise ScheduleError(f"{cluster.name}: nobody reads plane {plane} of a bundle")
            for hop in range(max(abs(reader - origin) for reader in readers)):
                registers.append((producer.tile, west, plane, origin + (-hop if west else hop),
                                  written + hop))
    return registers


def _runs_west(cluster, bundle):
    sides = {cluster.position(consumer) < cluster.position(producer)
             for producer, _ in bundle.producers for consumer, *_ in bundle.consumers}
    if len(sides) > 1:
        raise ScheduleError(f"{cluster.name}: a bundle runs in one direction only")
    return sides.pop()


def _bases(cfg, width):
    return range(0, cfg.streams, width)


def _resource(register, base):
    tile, west, plane, boundary, _ = register
    return ("stream", tile, west, base + plane, boundary)


def _streams_taken(cfg, tables, path, bundle, earliest):
    """Bit ``i``: no group of streams is free for a cluster started at ``earliest + i``."""
    taken = -1
    for base in _bases(cfg, bundle.width):
        this = 0
        for register in path:
            this |= tables.conflicts(_resource(register, base), register[4], 1, earliest)
        taken &= this
        if not taken:
            break
    return taken


def _choose(cfg, tables, cluster, paths, start):
    """Reserve streams for every bundle at ``start``; their bases, or None if they do not fit."""
    chosen, mine = [], set()
    for path, bundle in zip(paths, cluster.bundles, strict=True):
        for base in _bases(cfg, bundle.width):
            wanted = [(_resource(register, base), start + register[4]) for register in path]
            if not any(cell in mine or tables.conflicts(cell[0], 0, 1, cell[1]) & 1
                       for cell in wanted):
                chosen.append(base)
                mine.update(wanted)
                break
        else:
            return None
    for resource, cycle in mine:
        tables.reserve(resource, cycle, 1, cluster.name)
    return chosen


def _issues(cluster, streams, start):
    """`Issue` of every slot, with its stream fields."""
    fields = {id(slot): dict(slot.fields) for slot in cluster.slots}
    for bundle, base in zip(cluster.bundles, streams, strict=True):
        west = _runs_west(cluster, bundle)
        side = "west" if west else "east"
        for producer, first in bundle.producers:
            fields[id(producer)] |= {f"{side}_en": 1, side: base + first}
        for number, (consumer, operand, begin, count) in enumerate(bundle.consumers):
            fields[id(consumer)] |= {operand: base + begin, f"{operand}_west": int(west),
                                     f"{operand}_last": int(_last(cluster, bundle, number, begin,
                                                                  count))}
    return [Issue(tile=slot.tile, queue=slot.queue, op=slot.op, start=start + slot.offset,
                  fields=tuple(sorted(fields[id(slot)].items())), index=slot.index,
                  terms=slot.terms or ((),) * len(slot.index), predicate=slot.predicate)
            for slot in cluster.slots]


def _last(cluster, bundle, number, begin, count):
    """Whether consumer ``number`` is the last reader of all its planes (else of none)."""
    sign = -1 if _runs_west(cluster, bundle) else 1
    verdicts = set()
    for plane in range(begin, begin + count):
        readers = [(sign * cluster.position(consumer), -i)
                   for i, (consumer, _, first, planes) in enumerate(bundle.consumers)
                   if first <= plane < first + planes]
        verdicts.add(max(readers)[1] == -number)
    if len(verdicts) > 1:
        raise ScheduleError(f"{cluster.name}: an operand is the last reader of some planes only")
    return verdicts.pop()
