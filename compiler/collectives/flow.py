"""What a collective does, as tasks of tiles, and the order in which they can be done.

A *task* is one move of a vector of four byte planes: from SRAM onto links, from a link to SRAM or
on to other links, or a sum.  A *flight* is a vector on its way over one link.  `ordered` plays the
tasks through with the times of the configuration, a FIFO's room and one vector at a time on each
wire; the order in which they begin is the program order, in which no FIFO waits in a circle, and
the time at which the last ends is the estimate that algorithms are chosen by.
"""

import heapq
from collections import defaultdict, deque
from dataclasses import dataclass, field
from functools import cached_property

from hdl.arch.timing import departure, rules, timing

from ..lower.layout import vector_quads
from ..schedule.problem import alus_for

__all__ = ["Blocked", "Costs", "Flight", "Task", "ordered"]

PLANES = 4      #: byte planes of a vector


class Blocked(Exception):
    """The tasks wait for each other: what one needs is behind something else in a FIFO."""


@dataclass(eq=False)
class Flight:
    """A vector over ``link``; ``first`` and ``last`` are the cycles in which its first and its last
    byte plane arrive."""

    link: object
    first: int = 0
    last: int = 0


@dataclass(eq=False)
class Task:
    """One move.

    Parameters
    ----------
    tile : int
    build : function (Builder)
        Adds its clusters.
    takes, sends : list of Flight
    after : list of Task
        Whose words in SRAM it reads.
    streams : bool
        It needs only the first byte plane of what it takes to begin with.
    leaves, ready : int
        Cycles from its begin to the departure of what it sends, and until a task that reads its
        word can begin.
    adds : int
        Cycles that it keeps ALUs, streams or SRAM of a sum busy.
    reads, writes : int
        Words that it reads from each slice of a quad, and writes.
    """

    tile: int
    build: object
    takes: list = field(default_factory=list)
    sends: list = field(default_factory=list)
    after: list = field(default_factory=list)
    streams: bool = False
    leaves: int = 0
    ready: int = 0
    adds: int = 0
    reads: int = 0
    writes: int = 0
    done: int = 0


class Costs:
    """Cycles of the parts of a task, from the configuration.

    Attributes
    ----------
    send : int
        READ to departure.
    receive : int
        RECV to the READ that sees it.
    """

    def __init__(self, cfg):
        self._cfg = cfg
        self._times = timing(cfg)
        self._quads = vector_quads(cfg)
        self._seen = rules(cfg).write_to_read
        across = max(cfg.hops(name, "c2c") for quad in self._quads for name in quad)
        self.send = self._times["mem_read", "READ"].t_d + across + departure(cfg, "send")
        self.receive = self._times["recv", "RECV"].t_d + across + self._seen

    @cached_property
    def _adders(self):
        """Numbers of the ALUs that add."""
        return [int(name.removeprefix("alu")) for name in alus_for(self._cfg, "IADD")]

    @cached_property
    def group(self):
        """Vectors that a sum takes in one cycle: 1, 2 or 4.

        A quad of streams carries each; and while the sum of one group is added to the total, the
        pairs of the next two are added.
        """
        return next(size for size in (4, 2, 1)
                    if size <= min(self._cfg.streams // PLANES, len(self._adders)))

    def sum(self, levels, stored):
        """Of ``levels`` sums one behind the other: (cycles to a departure, to a READ of it).

        If not all operands are ``stored``, they begin when one arrives; others are read before.
        """
        cfg = self._cfg
        far = max(cfg.hops(name, "vxm") for quad in self._quads for name in quad)
        near = cfg.hops("vxm", "c2c")
        begin = self._times["mem_read", "READ"].t_d + far if stored else \
            self._times["recv", "RECV"].t_d + near
        end = begin + levels * cfg.alus[self._adders[0]].depth
        return end + near, end + far + self._seen

    def vxm(self, adds, stored):
        """Cycles that ``adds`` sums, of operands that are all ``stored`` or not, keep ALUs, streams
        or SRAM busy."""
        return -(-adds // min(len(self._adders), len(self._quads) if stored else self.group))


def ordered(network, tasks, room):
    """Tasks in the order in which they can begin.

    What begins a way leaves room in a FIFO for what is on its way already.  That is enough on a
    ring; where the tasks still block each other, it waits until there is room all along its way.

    Parameters
    ----------
    network : Network
    tasks : list of Task
        Those that a tile does first at one time come first.
    room : function (Link) to int
        Vectors that the FIFO at its end holds.

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
        return _Play(network, tasks, room).run()
    except Blocked:
        return _Play(network, tasks, room, reserve=True).run()


class _Play:
    def __init__(self, network, tasks, room, reserve=False):
        self._takers = {id(flight): task for task in tasks for flight in task.takes}
        self._ways = {id(task): self._way(task) for task in tasks} if reserve else None
        self._reserved = defaultdict(int)   # link -> vectors that have room in its FIFO
        self._network = network
        self._tasks = tasks
        self._room = room
        self._number = {id(task): number for number, task in enumerate(tasks)}
        self._free = defaultdict(int)       # link -> cycle in which its wire is idle
        self._vxm = defaultdict(int)        # tile -> cycle in which its VXM takes a sum
        # (tile, reads or writes) -> how many until it has an idle port; each quad has one
        self._ports = defaultdict(int)
        self._quads = len(vector_quads(network.cfg))
        self._fifo = defaultdict(deque)     # link -> flights that are sent and not taken
        self._taken = defaultdict(list)     # link -> cycles in which they were taken
        self._through = {flight.link for task in tasks if task.takes for flight in task.sends}
        self._stuck = defaultdict(list)     # link -> tasks that wait for something to be taken
        self._left = {id(task): len(task.after) + len(task.takes) for task in tasks}
        self._waiters = defaultdict(list)   # what a task waits for -> tasks
        for task in tasks:
            for what in (*task.after, *task.takes):
                self._waiters[id(what)].append(task)
        self._heap = []

    def run(self):
        for task in self._tasks:
            if not self._left[id(task)]:
                self._push(task)
        order, end = [], 0
        while self._heap:
            _, _, task = heapq.heappop(self._heap)
            held = self._held(task)
            if held is not None:
                self._stuck[held].append(task)
                continue
            start = self._start(task)
            if self._heap and start > self._heap[0][0]:
                self._push(task)
                continue
            self._begin(task, start)
            order.append(task)
            end = max(end, task.done)
        if len(order) < len(self._tasks):
            raise Blocked
        return order, end

    def _push(self, task):
        heapq.heappush(self._heap, (self._start(task), self._number[id(task)], task))

    def _held(self, task):
        """A link whose FIFO keeps ``task`` from beginning, or None."""
        for flight in task.takes:
            if self._fifo[flight.link][0] is not flight:
                return flight.link
        if self._ways is not None:
            ways = () if task.streams else self._ways[id(task)]
            return next((link for link in ways if self._reserved[link] >= self._room(link)), None)
        for flight in task.sends:
            # what begins a way leaves room for one that is on its way, or all could wait in a ring
            room = self._room(flight.link)
            spare = min(1, room - 1) if flight.link in self._through and not task.takes else 0
            if len(self._fifo[flight.link]) + spare >= room:
                return flight.link
        return None

    def _way(self, task):
        """All links on which what ``task`` sends goes on."""
        links, flights = [], list(task.sends)
        for flight in flights:
            links.append(flight.link)
            if self._takers[id(flight)].streams:
                flights += self._takers[id(flight)].sends
        return links

    def _start(self, task):
        wait = rules(self._network.cfg).arrival_to_recv
        times = [before.done for before in task.after]
        times += [(flight.first if task.streams else flight.last) + wait for flight in task.takes]
        for flight in task.takes:
            times += [cycle + 1 for cycle in self._taken[flight.link][-1:]]
        for flight in task.sends:
            times.append(self._free[flight.link] - task.leaves)
            times += [cycle + 1 - task.leaves - self._network.flits(flight.link)
                      - flight.link.latency for cycle in self._before(flight.link)]
        if task.adds:
            times.append(self._vxm[task.tile])
        times += [self._ports[task.tile, name] // self._quads for name in ("reads", "writes")
                  if getattr(task, name)]
        return max(0, *times)

    def _before(self, link):
        """When the vector was taken whose room in the FIFO the next on ``link`` needs, if any."""
        taken, flying = self._taken[link], len(self._fifo[link])
        needed = len(taken) + flying - self._room(link)
        return taken[needed:needed + 1] if needed >= 0 else ()

    def _begin(self, task, start):
        if self._ways is not None and not task.streams:
            for link in self._ways[id(task)]:
                self._reserved[link] += 1
        for flight in task.takes:
            self._reserved[flight.link] -= 1
            self._fifo[flight.link].popleft()
            self._taken[flight.link].append(start + (PLANES - 1) * task.streams)
            for other in self._stuck.pop(flight.link, ()):
                self._push(other)
        for flight in task.sends:
            leaves, flits = start + task.leaves, self._network.flits(flight.link)
            flight.first = leaves + flits + flight.link.latency
            flight.last = leaves + PLANES * flits + flight.link.latency
            for taken in task.takes if task.streams else ():
                # a plane cannot leave before it is there
                flight.last = max(flight.last, taken.last + self._network.hop(flight.link))
            self._free[flight.link] = flight.last - flight.link.latency
            self._fifo[flight.link].append(flight)
        if task.adds:
            self._vxm[task.tile] = start + task.adds
        for name in ("reads", "writes"):
            if count := getattr(task, name):
                port = task.tile, name
                self._ports[port] = max(self._ports[port], start * self._quads) + count
        last = max((flight.last for flight in task.takes), default=start)
        task.done = max(start, last if task.streams else start) + task.ready
        for what in (task, *task.sends):
            for other in self._waiters[id(what)]:
                self._left[id(other)] -= 1
                if not self._left[id(other)]:
                    self._push(other)
