"""List scheduling of clusters, improved by going over the schedule from behind and from the front.

The result is complete: cycles, units, stream numbers and the `last` bits.
"""

import heapq
from collections import defaultdict
from functools import cached_property
from typing import NamedTuple

from ..errors import ScheduleError
from .footprint import Footprint, Resources, misfit
from .streams import issues_of

__all__ = ["Placed", "Problem", "Schedule", "neighbours", "schedule"]

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
    turns : int
        1: it is no loop.
    """

    turns = 1

    def __init__(self, problem, placed):
        self._problem = problem
        self._placed = placed
        self.end = problem.end(placed)

    @property
    def start(self):
        return dict(zip(self._problem.clusters, self._placed.start, strict=True))

    @cached_property
    def issues(self):
        return self._problem.issues(self._placed)

    def improved(self, rounds=ROUNDS):
        """The shortest of this schedule and those of at most so many rounds of improvement."""
        problem, placed = self._problem, self._placed
        best, idle = self, 0
        for _ in range(rounds if problem.clusters else 0):
            late = problem.place(problem.backward, [-start for start in placed.start], 0)
            placed = problem.place(problem.forward, [-start for start in late.start],
                                   problem.first)
            now = Schedule(problem, placed)
            if now.end < best.end:
                best, idle = now, 0
            else:
                idle += 1
            if idle == _PATIENCE:
                break
        return best


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
    problem = Problem(cfg, clusters, edges, first)
    placed = problem.place(problem.forward, [-left for left in problem.urgency], first)
    return Schedule(problem, placed).improved(rounds)


class _Way(NamedTuple):
    """A direction of time: the clusters before and behind each with the least lag of starts, and
    what each takes."""
    before: list
    behind: list
    prints: list


class Placed(NamedTuple):
    """Start of each cluster, and the number of the option for each of its choices."""
    start: list
    chosen: list


class Problem:
    """Clusters by number, and what is known of them before they are placed."""

    def __init__(self, cfg, clusters, edges, first):
        self.cfg = cfg
        self.clusters = clusters
        self.first = first
        self.resources = Resources()
        prints, mirrored = {}, {}
        for cluster in clusters:
            if cluster.shape not in prints:
                mine = Footprint(cfg, cluster, self.resources)
                prints[cluster.shape], mirrored[cluster.shape] = mine, mine.mirrored()
        before, behind = neighbours(clusters, edges)
        self.forward = _Way(before, behind, [prints[cluster.shape] for cluster in clusters])
        self.backward = _Way(behind, before, [mirrored[cluster.shape] for cluster in clusters])
        self.urgency = self._urgency()

    def _urgency(self):
        """Cycles from the start of each cluster to the end along its longest path."""
        before, behind, _ = self.forward
        left = [len(others) for others in behind]
        stack = [number for number, waits in enumerate(left) if not waits]
        urgency, known = [cluster.shape.results for cluster in self.clusters], 0
        while stack:
            number = stack.pop()
            known += 1
            for other, lag in before[number]:
                urgency[other] = max(urgency[other], urgency[number] + lag)
                left[other] -= 1
                if not left[other]:
                    stack.append(other)
        if known < len(left):
            stuck = next(cluster for cluster, waits in zip(self.clusters, left, strict=True)
                         if waits)
            raise ScheduleError(f"{stuck.name} waits for itself: its order edges form a cycle")
        return urgency

    def place(self, way, rank, first):
        """Place every cluster as early as it can be, in the order of ``rank`` where edges leave it;
        returns `Placed`."""
        before, behind, prints = way
        clusters = self.clusters
        taken = defaultdict(lambda: [0] * len(self.resources))     # by tile
        starts, choices = [None] * len(clusters), [None] * len(clusters)
        waiting = [len(others) for others in before]
        ready = [(rank[i], i) for i, waits in enumerate(waiting) if not waits]
        heapq.heapify(ready)
        while ready:
            _, number = heapq.heappop(ready)
            mine = prints[number]
            start = first - min(0, mine.first)
            for other, lag in before[number]:
                start = max(start, starts[other] + lag)
            cluster = clusters[number]
            starts[number], choices[number] = _place(self.cfg, cluster, mine, taken[cluster.tile],
                                                     start)
            for other, _ in behind[number]:
                waiting[other] -= 1
                if not waiting[other]:
                    heapq.heappush(ready, (rank[other], other))
        return Placed(starts, choices)

    def end(self, placed):
        """First cycle in which no cluster issues, writes or moves anything any more."""
        return max((start + cluster.shape.length
                    for cluster, start in zip(self.clusters, placed.start, strict=True)),
                   default=0)

    def issues(self, placed):
        """The instructions of all clusters."""
        return [issue for cluster, mine, *at in zip(self.clusters, self.forward.prints,
                                                    placed.start, placed.chosen, strict=True)
                for issue in _issues(cluster, mine, *at)]


def neighbours(clusters, edges):
    """By cluster, those before it and those behind it with the least lag of starts; no cluster is
    its own neighbour."""
    number = {id(cluster): i for i, cluster in enumerate(clusters)}
    lags = {}
    for edge in edges:
        source, target = edge.source, edge.target
        pair = number[id(source.cluster)], number[id(target.cluster)]
        lag = source.offset + edge.distance - target.offset
        if lag > lags.get(pair, lag - 1) and pair[0] != pair[1]:
            lags[pair] = lag
    before, behind = [[] for _ in clusters], [[] for _ in clusters]
    for (source, target), lag in lags.items():
        before[target].append((source, lag))
        behind[source].append((target, lag))
    return before, behind


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


def _issues(cluster, mine, start, chosen):
    """The instructions of a placed cluster."""
    queues = [slot.queue for slot in cluster.slots]
    for number, unit in zip(mine.units, chosen, strict=False):
        queues[number] = queues[number][unit]
    bases = [base * bundle.width for base, bundle in
             zip(chosen[len(mine.units):], cluster.bundles, strict=True)]
    return issues_of(cluster, queues, bases, start)
