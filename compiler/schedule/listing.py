"""List scheduling of clusters, improved by going over the schedule from behind and from the front.

The result is complete: cycles, units, stream numbers and the `last` bits.
"""

import heapq
from collections import defaultdict

from ..errors import ScheduleError
from .footprint import Footprint, Resources, misfit
from .streams import issues_of

__all__ = ["ROUNDS", "Schedule", "schedule"]

#: A cluster that finds no place within this many cycles of its earliest start never will.
_HORIZON = 1 << 20
#: Cycles in vain after which it is asked whether a cluster fits at all.
_TRIES = 64
#: Rounds of improvement, backward and forward, at most.
ROUNDS = 8
#: Rounds without a gain before the best schedule is taken.
_PATIENCE = 2


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

    def __init__(self, start, issues, end):
        self.start = start
        self.issues = issues
        self.end = end


def schedule(cfg, clusters, edges, first=1, rounds=ROUNDS):
    """Place ``clusters`` so that every edge holds and nothing is used twice.

    The first list is in order of urgency, the longest path to the end.  Then all clusters are moved
    as late as they can be, the last ones first, and as early as they can be, the first ones first
    (double justification, Valls, Ballestin and Quintanilla 2005), while that helps.

    Parameters
    ----------
    cfg : TileConfig
    clusters : list of Cluster
    edges : list of Edge
    first : int
        First cycle that may be used; 1 leaves the cycle that a LOOP word needs.
    rounds : int
        At most so many rounds of improvement; each takes twice as long as the first list.

    Returns
    -------
    Schedule

    Raises
    ------
    ScheduleError
        When the edges form a cycle, or a cluster does not fit.
    """
    graph = _Graph(clusters, edges)
    urgency = _urgency(graph)
    resources = Resources()
    prints = {cluster: Footprint(cfg, cluster, resources) for cluster in clusters}
    placed = _place_all(cfg, graph, prints, resources, {c: -urgency[c] for c in clusters}, first)
    best, end = placed, _end(placed)
    behind = graph.reversed()
    mirrored = {cluster: mine.mirrored() for cluster, mine in prints.items()}
    idle = 0
    for _ in range(rounds if clusters else 0):
        late = _place_all(cfg, behind, mirrored, resources,
                          {c: -start for c, start in placed.start.items()}, 0)
        placed = _place_all(cfg, graph, prints, resources,
                            {c: -start for c, start in late.start.items()}, first)
        now = _end(placed)
        idle = 0 if now < end else idle + 1
        if now < end:
            best, end = placed, now
        if idle == _PATIENCE:
            break
    issues = [issue for cluster in clusters for issue in
              _issues(cluster, prints[cluster], best.start[cluster], best.chosen[cluster])]
    return Schedule(best.start, issues, end)


class _Graph:
    """Clusters, and by cluster the others before and behind it with the least lag of starts."""

    def __init__(self, clusters, edges):
        self.clusters = clusters
        lags = {}
        for edge in edges:
            source, target = edge.source.cluster, edge.target.cluster
            if source is not target:
                lag = edge.source.offset + edge.distance - edge.target.offset
                lags[source, target] = max(lag, lags.get((source, target), lag))
        self.before, self.behind = defaultdict(list), defaultdict(list)
        for (source, target), lag in lags.items():
            self.before[target].append((source, lag))
            self.behind[source].append((target, lag))

    def reversed(self):
        other = object.__new__(_Graph)
        other.clusters = self.clusters
        other.before, other.behind = self.behind, self.before
        return other


def _urgency(graph):
    """Cycles from the start of each cluster to the end along its longest path."""
    left = {cluster: len(graph.behind[cluster]) for cluster in graph.clusters}
    stack = [cluster for cluster in graph.clusters if not left[cluster]]
    urgency = {}
    while stack:
        cluster = stack.pop()
        own = max(slot.offset + cluster.times(slot).t_d for slot in cluster.slots)
        urgency[cluster] = max([own] + [urgency[other] + lag
                                        for other, lag in graph.behind[cluster]])
        for other, _ in graph.before[cluster]:
            left[other] -= 1
            if not left[other]:
                stack.append(other)
    if len(urgency) < len(graph.clusters):
        stuck = next(cluster for cluster in graph.clusters if cluster not in urgency)
        raise ScheduleError(f"{stuck.name} waits for itself: its order edges form a cycle")
    return urgency


class _Placed:
    """Start of each cluster, and the number of the option for each of its choices."""

    def __init__(self):
        self.start = {}
        self.chosen = {}


def _place_all(cfg, graph, prints, resources, rank, first):
    """Place every cluster as early as it can be, in the order of ``rank`` where edges leave it."""
    placed, taken = _Placed(), [0] * len(resources)
    number = {cluster: i for i, cluster in enumerate(graph.clusters)}
    waiting = {cluster: len(graph.before[cluster]) for cluster in graph.clusters}
    ready = [(rank[c], number[c], c) for c in graph.clusters if not waiting[c]]
    heapq.heapify(ready)
    while ready:
        _, _, cluster = heapq.heappop(ready)
        mine = prints[cluster]
        start = max([first - min(0, mine.first)] +
                    [placed.start[other] + lag for other, lag in graph.before[cluster]])
        placed.start[cluster], placed.chosen[cluster] = _place(cfg, cluster, mine, taken, start)
        for other, _ in graph.behind[cluster]:
            waiting[other] -= 1
            if not waiting[other]:
                heapq.heappush(ready, (rank[other], number[other], other))
    return placed


def _place(cfg, cluster, mine, taken, earliest):
    """Put ``cluster`` at its first free cycle from ``earliest`` on; returns it and the choice."""
    blocked = mine.blocked(taken, earliest)
    delay = _next_free(blocked, 0)
    tries = 0
    while delay < _HORIZON:
        chosen = mine.choose(taken, earliest + delay)
        if chosen is not None:
            mine.take(taken, earliest + delay, chosen)
            return earliest + delay, chosen
        delay = _next_free(blocked, delay + 1)
        tries += 1
        if tries == _TRIES and (why := misfit(cfg, cluster)):
            raise ScheduleError(why)
    raise ScheduleError(f"{cluster.name} finds no free cycle within {_HORIZON} of {earliest}")


def _next_free(blocked, delay):
    """First bit from ``delay`` on that is 0 in ``blocked``."""
    rest = ~(blocked >> delay)
    return delay + (rest & -rest).bit_length() - 1 if rest else _HORIZON


def _end(placed):
    """First cycle in which no cluster issues, writes or moves anything any more."""
    return max((start + max(max(slot.offset + cluster.times(slot).t_d + 1
                                for slot in cluster.slots),
                            max((use.offset + use.length for use in cluster.uses), default=0))
                for cluster, start in placed.start.items()), default=0)


def _issues(cluster, mine, start, chosen):
    """The instructions of a placed cluster."""
    units, streams = chosen[:len(mine.units)], chosen[len(mine.units):]
    names = {id(slot): slot.queue for slot in cluster.slots}
    names |= {id(slot): slot.queues[unit] for slot, unit in zip(mine.units, units, strict=True)}
    bases = [base * bundle.width for base, bundle in zip(streams, cluster.bundles, strict=True)]
    return issues_of(cluster, names, bases, start)
