"""The order in which tasks can be done, and the time they take.

`ordered` plays them through with the times of the configuration, a FIFO's room and one vector at a
time on each wire.  The order in which they begin is the program order, in which no FIFO waits in a
circle, and the time at which the last ends is the estimate that algorithms are chosen by.  A task
that a FIFO has held back can begin before one that has begun already, as room in the FIFO counts
from the arrival on; so ports and adders have calendars.

Of all tasks that no FIFO holds, the one that can begin first goes first.  Tasks alike in all that
can hold them stand in one queue.  When the first of a queue can begin changes with every task that
begins, but only ever moves back: the times on the heap of queues are lower bounds, and are worked
out anew for what is on top alone.
"""

import heapq
from collections import defaultdict, deque
from functools import partial

from hdl.arch.timing import rules

from ..lower.layout import vector_quads
from .calendar import Calendar
from .flow import PLANES
from .turns import Queue, Turn

__all__ = ["Blocked", "ordered"]


class Blocked(Exception):
    """The tasks wait for each other: what one needs is behind something else in a FIFO."""


def ordered(network, tasks):
    """Tasks in the order in which they can begin.

    What begins a way leaves room in a FIFO for what is on its way already.  That is enough on a
    ring; where the tasks still block each other, it waits until there is room all along its way.

    Parameters
    ----------
    network : Network
    tasks : list of Task
        Those that a tile does first at one time come first.

    Returns
    -------
    (list of Task, int)
        And the estimated cycle in which the last is done.

    Raises
    ------
    Blocked
        Sums that take their operands from FIFOs can wait for each other all the same.
    """
    try:
        return _Play(network, tasks).run()
    except Blocked:
        return _Play(network, tasks, reserve=True).run()


class _Wire:
    """A link and the FIFO at its end, at one time of the play."""

    __slots__ = ("behind", "delay", "fifo", "flits", "free", "hop", "latency", "reserved", "room",
                 "taken", "through", "waiting")

    def __init__(self, network, link):
        self.flits = network.flits(link)
        self.latency = link.latency
        self.hop = network.hop(link)
        self.delay = self.flits + self.latency      # from a departure to the arrival
        # vectors that the FIFO holds
        self.room = max(1, network.cfg.port(link.target_port).fifo // PLANES)
        self.through = False        # whether anything that came over a link goes on here
        self.free = 0               # cycle in which the wire is idle
        self.fifo = deque()         # flights that are sent and not taken
        self.taken = []             # cycles in which they were taken
        self.reserved = 0           # vectors that have room in the FIFO
        self.behind = {}            # flight -> queue that waits for what is before it in the FIFO
        self.waiting = []           # queues that wait for room


class _Play:
    def __init__(self, network, tasks, reserve=False):
        self._reserve = reserve
        self._wires = {id(link): _Wire(network, link) for link in network.system.links}
        self._turns = [Turn(task, number) for number, task in enumerate(tasks)]
        self._takers = {flight: turn for turn in self._turns for flight in turn.task.takes}
        by_task = {id(turn.task): turn for turn in self._turns}
        queues = {}
        for turn in self._turns:
            for before in turn.task.after:
                by_task[id(before)].users.append(turn)
            turn.queue = self._queue(turn.task, queues)
        self._wait = rules(network.cfg).arrival_to_recv
        # by tile: its VXM, and the ports of its slices, of which each quad has one
        quads = len(vector_quads(network.cfg))
        self._adds, self._reads, self._writes = (
            defaultdict(partial(Calendar, room)) for room in (1, quads, quads))
        self._heap = []     # (start, number, queue), out of date where that is not the queue's key

    def _queue(self, task, queues):
        """The queue of ``task``, a new one if it is not among ``queues``."""
        sources = self._over(task.takes)
        targets = self._over(task.sends)
        for wire in targets if sources else ():
            wire.through = True
        ways = self._way(task) if self._reserve and not task.streams else ()
        if sources:
            return Queue(task, sources, targets, ways)
        alike = (task.tile, task.leaves, task.adds > 0, task.reads > 0, task.writes > 0,
                 *map(id, targets), None, *map(id, ways))
        if alike not in queues:
            queues[alike] = Queue(task, sources, targets, ways)
        return queues[alike]

    def _over(self, flights):
        return [self._wires[id(flight.link)] for flight in flights]

    def _way(self, task):
        """All wires on which what ``task`` sends goes on."""
        flights = list(task.sends)
        for flight in flights:
            if self._takers[flight].task.streams:
                flights += self._takers[flight].task.sends
        return self._over(flights)

    def run(self):
        for turn in self._turns:
            if not turn.left:
                self._add(turn)
        order, end = [], 0
        while self._heap:
            *key, queue = heapq.heappop(self._heap)
            if queue.key != tuple(key):
                continue
            queue.key = None
            if self._held(queue):
                continue
            first = self._first(queue)
            if self._heap and first > self._heap[0][:2]:
                self._push(queue, first)
                continue
            start, number = first
            turn = queue.pop(number)
            self._begin(turn, start)
            if queue:
                self._push(queue, self._first(queue))
            order.append(turn.task)
            end = max(end, turn.task.done)
        if len(order) < len(self._turns):
            raise Blocked
        return order, end

    def _push(self, queue, key):
        queue.key = key
        heapq.heappush(self._heap, (*key, queue))

    def _held(self, queue):
        """Whether a FIFO keeps all of ``queue`` from beginning; it then waits there."""
        for wire, flight in zip(queue.sources, queue.task.takes, strict=True):
            if wire.fifo[0] is not flight:
                wire.behind[flight] = queue
                return True
        for wire in queue.ways if self._reserve else queue.targets:
            if self._full(wire, queue):
                wire.waiting.append(queue)
                return True
        return False

    def _full(self, wire, queue):
        if self._reserve:
            return wire.reserved >= wire.room
        # what begins a way leaves room for one that is on its way, or all could wait in a ring
        spare = min(1, wire.room - 1) if wire.through and not queue.sources else 0
        return len(wire.fifo) + spare >= wire.room

    def _first(self, queue):
        """(start, number) of the first of ``queue``, if no FIFO holds it."""
        return queue.first(self._start(queue), partial(self._room, queue.task))

    def _start(self, queue):
        """The cycle before which wires let none of ``queue`` begin."""
        task, start = queue.task, 0
        for wire, flight in zip(queue.sources, task.takes, strict=True):
            if wire.taken:
                start = max(start, wire.taken[-1] + 1 - task.later.get(flight, 0))
        for wire in queue.targets:
            start = max(start, wire.free - task.leaves)
            # the vector that was taken from the place in the FIFO that the next one needs
            place = len(wire.taken) + len(wire.fifo) - wire.room
            if 0 <= place < len(wire.taken):
                start = max(start, wire.taken[place] + 1 - task.leaves - wire.delay)
        return start

    def _room(self, task, start):
        """The first cycle from ``start`` on in which its tile has room for ``task``."""
        calendars = [calendar for calendar, moves in self._calendars(task) if moves]
        while any((free := calendar.first(start)) > start for calendar in calendars):
            start = free
        return start

    def _calendars(self, task):
        """Those of its tile, each with the moves that it makes there."""
        return ((self._adds[task.tile], task.adds), (self._reads[task.tile], task.reads),
                (self._writes[task.tile], task.writes))

    def _begin(self, turn, start):
        task, queue = turn.task, turn.queue
        for wire in queue.ways:
            wire.reserved += 1
        for wire, flight in zip(queue.sources, task.takes, strict=True):
            self._take(wire, start + task.later.get(flight, (PLANES - 1) * task.streams))
        for flight, wire in zip(task.sends, queue.targets, strict=True):
            flight.first = start + task.leaves + wire.delay
            flight.last = flight.first + (PLANES - 1) * wire.flits
            for taken in task.takes if task.streams else ():
                # a plane cannot leave before it is there
                flight.last = max(flight.last, taken.last + wire.hop)
            wire.free = flight.last - wire.latency
            wire.fifo.append(flight)
        for calendar, moves in self._calendars(task):
            calendar.take(start, moves)
        last = max((flight.last for flight in task.takes), default=start)
        task.done = max(start, last if task.streams else start) + task.ready
        for user in turn.users:
            self._arrive(user, task, task.done)
        for flight in task.sends:
            taker = self._takers[flight]
            self._arrive(taker, flight,
                         (flight.first if taker.task.streams else flight.last) + self._wait)

    def _take(self, wire, cycle):
        """The first flight leaves the FIFO; what this held up can try again."""
        wire.fifo.popleft()
        wire.taken.append(cycle)
        wire.reserved -= 1
        again, wire.waiting = wire.waiting, []
        if wire.fifo and wire.fifo[0] in wire.behind:
            again.append(wire.behind.pop(wire.fifo[0]))
        for queue in again:
            self._push(queue, self._first(queue))

    def _arrive(self, turn, what, cycle):
        """``what``, for which ``turn`` waits, is there from ``cycle`` on."""
        turn.since = max(turn.since, cycle - turn.task.later.get(what, 0))
        turn.left -= 1
        if not turn.left:
            self._add(turn)

    def _add(self, turn):
        queue = turn.queue
        held = bool(queue) and queue.key is None
        heapq.heappush(queue.soon, (turn.since, turn.number, turn))
        if not held:
            key = self._first(queue)
            if queue.key is None or key < queue.key:
                self._push(queue, key)
