"""The order of vectors on wires, where tiles pass vectors on for others.

A link takes vectors in one order at both ends, and which one is the compiler's to choose.  In that
of the program a tile's own vector would wait for those that come to it from far away and are named
before it.  Here the work is played through: of the clusters that can go the one with the earliest
start along its longest path goes first, and vectors take the wires as they come.  The planes of a
vector stay together on all their way, since some tile may take all four at once.
"""

import heapq
from collections import defaultdict, deque

__all__ = ["in_time"]

#: Vectors that one SEND moves at most.
QUAD = 4


def in_time(clusters, edges, wires, room):
    """The order of vectors on every link.

    Parameters
    ----------
    clusters : list of Cluster
    edges : list of Edge
        From earlier to later clusters, without those that an order on wires asks for.
    wires : dict
        By end of a link: list of (SEND, RECV), one for each vector, of any opcodes that send and
        take.
    room : callable
        Vectors that the FIFO at an end holds.

    Returns
    -------
    dict or None
        By end: numbers of its vectors in their new order.  None where the play gets stuck: a FIFO
        fills up, or its first vector waits for one behind it.
    """
    play = _Play(clusters, edges, wires, room)
    return play.order if play.run() else None


class _Play:
    def __init__(self, clusters, edges, wires, room):
        self._count = len(clusters)
        number = {id(cluster): i for i, cluster in enumerate(clusters)}
        self._behind, self._left = defaultdict(list), [0] * self._count
        before = defaultdict(list)
        for edge in edges:
            source, target = (number[id(slot.cluster)] for slot in (edge.source, edge.target))
            lag = edge.source.offset + edge.distance - edge.target.offset
            self._behind[source].append(target)
            before[target].append((source, lag))
            self._left[target] += 1
        self._start = []        # of each cluster, along its longest path
        for i in range(self._count):
            self._start.append(max([0, *(self._start[source] + lag
                                         for source, lag in before[i])]))
        self._sends, self._takes = (defaultdict(lambda: defaultdict(list)) for _ in range(2))
        for end, vectors in wires.items():
            for vector, (send, recv) in enumerate(vectors):
                self._sends[number[id(send.cluster)]][end].append(vector)
                self._takes[number[id(recv.cluster)]][end].append(vector)
        self._together = self._groups()
        self._due = defaultdict(list)   # by end: the rest of the vectors that are going together
        self._room = room
        self._queues = defaultdict(deque)
        self.order = {end: [] for end in wires}

    def _groups(self):
        """By end and vector: those that one SEND sent with it, on all their way."""
        groups, origins = defaultdict(list), {}
        for i in range(self._count):
            origin = i
            for end, vectors in self._takes.get(i, {}).items():     # what passes a tile
                origin = origins[end, vectors[0]]
            for end, vectors in self._sends.get(i, {}).items():
                groups[end, origin] += vectors
                origins |= {(end, vector): origin for vector in vectors}
        return {(end, vector): group for (end, _), group in groups.items() for vector in group}

    def run(self):
        """Play it; returns whether all clusters have gone."""
        heap = [(self._start[i], i) for i, left in enumerate(self._left) if not left]
        heapq.heapify(heap)
        stalled, done = defaultdict(list), 0
        while heap:
            _, i = heapq.heappop(heap)
            end = self._stalls(i)
            if end is not None:
                stalled[end].append(i)
                continue
            done += 1
            for changed in self._go(i):
                for other in stalled.pop(changed, ()):
                    heapq.heappush(heap, (self._start[other], other))
            for other in self._behind[i]:
                self._left[other] -= 1
                if not self._left[other]:
                    heapq.heappush(heap, (self._start[other], other))
        return done == self._count

    def _stalls(self, i):
        """The end of a link for which cluster ``i`` has to wait, or None."""
        for end, vectors in self._takes[i].items():
            if list(self._queues[end])[:len(vectors)] != vectors:
                return end
        # what begins its way here leaves room for what passes: full FIFOs all around would stick
        spare = 0 if self._takes[i] else QUAD
        for end, vectors in self._sends[i].items():
            queued, due = len(self._queues[end]), self._due[end]
            if due:
                if vectors[0] not in due:
                    return end
            elif queued:
                together = self._together[end, vectors[0]]
                if queued + len(together) + spare > self._room(end):
                    return end
        return None

    def _go(self, i):
        """Let cluster ``i`` go; returns the ends of links that it changes."""
        for end, vectors in self._takes[i].items():
            for _ in vectors:
                self._queues[end].popleft()
        for end, vectors in self._sends[i].items():
            self._queues[end] += vectors
            self.order[end] += vectors
            together = self._together[end, vectors[-1]]
            self._due[end] = together[together.index(vectors[-1]) + 1:]
        return [*self._takes[i], *self._sends[i]]
