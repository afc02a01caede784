"""Modulo scheduling: the iterations of a loop follow each other at less than the length of one.

Iteration ``i`` is iteration 0 shifted by ``i * period`` (Rau, "Iterative modulo scheduling", MICRO
27, 1994), so what an iteration takes is taken in every period: cells count modulo the period.  Each
queue has a LOOP of its own, so all that an iteration issues on one queue lies within one period,
which begins where it suits the queue; between queues iterations overlap without prologue or
epilogue.  Edges to the next iteration (*carried*) may ask for one period less.
"""

import heapq
from collections import Counter, defaultdict

from ..errors import ScheduleError
from .listing import Placed, Problem, neighbours, schedule

__all__ = ["LoopSchedule", "least_period", "modulo_schedule"]

#: Periods that are tried, from the least on: one in so many parts of it.
_GRAIN = 48


class LoopSchedule:
    """Iterations at equal distances.

    Attributes
    ----------
    turns : int
        How many.
    period : int
        Cycles from one to the next.
    issues : list of Issue
        Of iteration 0.
    end : int
        First cycle in which nothing of the last iteration is under way any more, from the start of
        the first, and its last period is over.
    """

    def __init__(self, turns, period, length, issues):
        self.turns = turns
        self.period = period
        self.issues = issues
        self.end = (turns - 1) * period + max(length, period)


def modulo_schedule(cfg, clusters, edges, carried, turns, first=1):
    """Place the clusters of one iteration for the shortest period that is found.

    Parameters
    ----------
    cfg, clusters, edges, first
        As of `listing.schedule`, of one iteration.
    carried : list of Edge
        From an iteration to the next.
    turns : int
        Iterations.

    Returns
    -------
    LoopSchedule
        Where no period finds room, iterations follow each other without overlap.

    Raises
    ------
    ScheduleError
        As `listing.schedule`, and when a tile waits for another: all they share is the period.
    """
    tiles = _by_tile(clusters, edges, carried)
    loops = [_Loop(cfg, *tile, first) for tile in tiles]
    closed = max(loop.alone() for loop in loops)
    period = least_period(cfg, clusters)
    while period < closed:
        placed = []
        for loop in loops:
            placed.append(loop.place(period))
            if placed[-1] is None:
                break
        else:
            problems = [loop.problem for loop in loops]
            return LoopSchedule(
                turns, period, max(map(Problem.end, problems, placed)),
                [issue for of in map(Problem.issues, problems, placed) for issue in of])
        period += max(1, period // _GRAIN)
    return LoopSchedule(turns, closed, max(loop.closed.end for loop in loops),
                        [issue for loop in loops for issue in loop.closed.issues])


def _by_tile(clusters, edges, carried):
    """Clusters, edges and carried edges of each tile."""
    found = defaultdict(lambda: ([], [], []))
    for cluster in clusters:
        found[cluster.tile][0].append(cluster)
    for kind, some in enumerate((edges, carried), 1):
        for edge in some:
            if edge.source.tile != edge.target.tile:
                raise ScheduleError(f"{edge.target.cluster.name} waits for another tile: a loop "
                                    "whose iterations overlap cannot")
            found[edge.source.tile][kind].append(edge)
    return found.values()


def least_period(cfg, clusters):
    """Cycles that the busiest unit of a tile has to do in every iteration; ALUs share their work.

    No period is shorter.
    """
    work = Counter()
    for cluster in clusters:
        for slot in cluster.slots:
            work[slot.tile, slot.queue if isinstance(slot.queue, str) else "alus"] += 1
    alus = Counter()
    for (tile, queue), count in work.items():
        if queue == "alus" or queue.startswith("alu"):
            alus[tile] += count
    pooled = [-(-count // len(cfg.alus)) for count in alus.values()]
    return max([1, *pooled, *(count for (_, queue), count in work.items() if queue != "alus")])


class _Loop:
    """Clusters of an iteration on one tile, and what joins them, to each other and to the next
    iteration's.

    Attributes
    ----------
    problem : Problem
    closed : Schedule
        Of an iteration alone.
    """

    def __init__(self, cfg, clusters, edges, carried, first):
        self.problem = problem = Problem(cfg, clusters, edges, first)
        self.closed = schedule(cfg, clusters, edges, first)
        self._queues = {number for (kind, *_), number in problem.resources.items()
                        if kind == "queue"}
        self._after, self._ahead = neighbours(clusters, carried)
        self._carried = [(edge.source, edge.target, edge.distance) for edge in carried]
        self._prints = {id(mine): mine for mine in problem.forward.prints}
        # what a cluster takes of a queue, and asks of itself in the next iteration
        self._least = max([1 + self._spread(mine) for mine in self._prints.values()]
                          + [source.offset + distance - target.offset
                             for source, target, distance in self._carried
                             if source.cluster is target.cluster])
        urgent = [-left for left in problem.urgency]
        weights = [-any(slot.op in ("LW", "ABC") for slot in cluster.slots) for cluster in clusters]
        # the most urgent first; as without overlap; what is bound to the order of the weights first
        self._ranks = (urgent, list(self.closed.start.values()),
                       list(zip(weights, urgent, strict=True)))

    def alone(self):
        """Period of iterations that do not overlap."""
        starts = self.closed.start
        return max([self.closed.end] + [
            starts[source.cluster] + source.offset + distance
            - starts[target.cluster] - target.offset
            for source, target, distance in self._carried])

    def place(self, period):
        """Place every cluster; returns `Placed`, or None where one finds no room."""
        if period < self._least:
            return None
        folded = {number: mine.folded(period) for number, mine in self._prints.items()}
        if None in folded.values():
            return None
        return next(filter(None, (self._place(period, rank, folded) for rank in self._ranks)),
                    None)

    def _place(self, period, rank, folded):
        """The same in the order of ``rank`` where edges leave it."""
        problem = self.problem
        before, behind, prints = problem.forward
        taken = [0] * len(problem.resources)
        windows = {}        # by queue: cycles of its first and last issue
        starts, choices = [None] * len(prints), [None] * len(prints)
        waiting = [len(others) for others in before]
        ready = [(rank[i], i) for i, waits in enumerate(waiting) if not waits]
        heapq.heapify(ready)
        while ready:
            _, number = heapq.heappop(ready)
            mine = prints[number]
            low, high = _within(self._fixed(mine), windows, period,
                                *self._reach(number, starts, period))
            found = self._find(mine, folded[id(mine)], taken, windows, period, low, high)
            if found is None:
                return None
            starts[number], choices[number] = found
            _take(folded[id(mine)], taken, period, *found)
            for resource, cycle in self._issued(mine, *found):
                first, last = windows.get(resource, (cycle, cycle))
                windows[resource] = min(first, cycle), max(last, cycle)
            for other, _ in behind[number]:
                waiting[other] -= 1
                if not waiting[other]:
                    heapq.heappush(ready, (rank[other], other))
        return Placed(starts, choices)

    def _reach(self, number, starts, period):
        """First and last start that edges to what has been placed, and the period, allow."""
        before, _, prints = self.problem.forward
        low = self.problem.first - min(0, prints[number].first)
        for other, lag in before[number]:
            low = max(low, starts[other] + lag)
        for other, lag in self._after[number]:
            if starts[other] is not None:
                low = max(low, starts[other] + lag - period)
        high = low + period - 1
        for other, lag in self._ahead[number]:
            if starts[other] is not None:
                high = min(high, starts[other] + period - lag)
        return low, high

    def _fixed(self, mine):
        """Queue and offset of the instructions that have no choice."""
        return [cell for cell in mine.fixed if cell[0] in self._queues]

    def _spread(self, mine):
        """Cycles from the first to the last instruction of a cluster on the same queue."""
        offsets = defaultdict(list)
        for resource, offset in self._fixed(mine):
            offsets[resource].append(offset)
        return max((max(some) - min(some) for some in offsets.values()), default=0)

    def _issued(self, mine, start, chosen):
        """Queue and cycle of every instruction of a placed cluster."""
        cells = self._fixed(mine)
        for options, number in zip(mine.choices[:len(mine.units)], chosen, strict=False):
            cells = cells + options[number]
        return [(resource, start + offset) for resource, offset in cells]

    def _find(self, mine, folded, taken, windows, period, low, high):
        """The first start from ``low`` to ``high`` that has room, and the choice; or None."""
        begin = low % period
        blocked = folded.blocked(taken, begin)
        for delay in range(high - low + 1):
            if blocked >> delay & 1:
                continue
            barred = set()
            while (chosen := folded.choose(taken, (begin + delay) % period,
                                           barred=barred)) is not None:
                late = self._late(mine, windows, period, low + delay, chosen)
                if late is None:
                    return low + delay, chosen
                barred.add(late)
        return None

    def _late(self, mine, windows, period, start, chosen):
        """Number of the first choice, and of what was chosen, that does not leave an ALU in one
        period; None where all do."""
        cells = self._fixed(mine)
        for i, number in enumerate(chosen[:len(mine.units)]):
            (resource, offset), = mine.choices[i][number]
            others = [other for queue, other in cells if queue == resource]
            if _within([(resource, offset)], windows, period, start, start) != (start, start) or \
                    any(abs(offset - other) >= period for other in others):
                return i, number
            cells.append((resource, offset))
        return None


def _within(cells, windows, period, low, high):
    """The part of ``low`` to ``high`` from which instructions leave each queue in one period."""
    for resource, offset in cells:
        if resource in windows:
            first, last = windows[resource]
            low = max(low, last - period + 1 - offset)
            high = min(high, first + period - 1 - offset)
    return low, high


def _take(folded, taken, period, start, chosen):
    """Mark what a cluster takes, in three periods: as far as a search looks."""
    cells = list(folded.fixed)
    for options, number in zip(folded.choices, chosen, strict=True):
        cells += options[number]
    for resource, offset in cells:
        bit = 1 << (start + offset) % period
        taken[resource] |= bit | bit << period | bit << 2 * period
