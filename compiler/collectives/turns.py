"""Tasks that wait for their turn, and the queues in which they do."""

import heapq

__all__ = ["Queue", "Turn"]


class Turn:
    """A task that waits for ``left`` others or flights; they are there from cycle ``since`` on."""

    __slots__ = ("left", "number", "queue", "since", "task", "users")

    def __init__(self, task, number):
        self.task = task
        self.number = number
        self.left = len(task.after) + len(task.takes)
        self.since = 0
        self.users = []             # turns that read its word
        self.queue = None


class Queue:
    """Turns that only differ in what they wait for, and have all they wait for.

    One that takes flights is alone.  ``sources``, ``targets``: wires.  ``ways``: wires on which
    there has to be room before one begins.  ``key``: (start, number) of its entry on the heap.
    """

    __slots__ = ("key", "ready", "soon", "sources", "targets", "task", "ways")

    def __init__(self, task, sources, targets, ways):
        self.task = task            # one of them
        self.sources = sources
        self.targets = targets
        self.ways = ways
        self.soon = []              # heap of (since, number, turn)
        self.ready = []             # heap of (number, turn): nothing but the queue holds them
        self.key = None

    def __bool__(self):
        return bool(self.ready or self.soon)

    def first(self, start, room):
        """(start, number) of the first, if the queue lets none begin before ``start``, and then
        only in a cycle that ``room`` gives: the first with room from a cycle on."""
        start = room(start)
        while self.soon and self.soon[0][0] <= start:
            heapq.heappush(self.ready, heapq.heappop(self.soon)[1:])
        if self.ready:
            return start, self.ready[0][0]
        start = room(self.soon[0][0])
        return start, min(number for since, number, _ in self.soon if since <= start)

    def pop(self, number):
        """Take out the turn that `first` has named."""
        if self.ready:
            return heapq.heappop(self.ready)[-1]
        entry = next(entry for entry in self.soon if entry[1] == number)
        self.soon.remove(entry)
        heapq.heapify(self.soon)
        return entry[-1]
