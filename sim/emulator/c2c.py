"""Links of all tiles: sends, flight times, receive FIFOs, and the host at the far end."""

from collections import deque

from hdl.arch.errors import Fault
from hdl.arch.queues import link_names

__all__ = ["Links", "C2c"]


class _Fifo:
    """Receive FIFO of one link."""

    def __init__(self, depth):
        self.depth = depth
        self.vectors = deque()
        self.taken_cycle = -1       # last cycle in which something was taken, and how much
        self.taken = 0

    def take(self, cycle, count):
        """``count`` vectors, oldest first; None, taking nothing, if there are fewer."""
        if len(self.vectors) < count:
            return None
        self.taken_cycle, self.taken = cycle, count
        return [self.vectors.popleft() for _ in range(count)]

    def full(self, cycle):
        """Whether it held ``depth`` vectors at the start of ``cycle``."""
        taken = self.taken if self.taken_cycle == cycle else 0
        return len(self.vectors) + taken >= self.depth


class Links:
    """Everything between the tiles.

    Parameters
    ----------
    system : SystemConfig
    faults : FaultLog
    calendar : Calendar

    Attributes
    ----------
    arrivals, host : list of (cycle, tile, link, vector)
        Vectors that entered a FIFO; vectors that the host received.
    """

    def __init__(self, system, faults, calendar):
        cfg = system.tile
        self._system = system
        self._faults = faults
        self._calendar = calendar
        self._names = link_names(cfg)
        self._fifos = [[_Fifo(cfg.port(link).fifo) for link in range(len(self._names))]
                       for _ in range(system.tiles)]
        self._free = [[0] * len(self._names) for _ in range(system.tiles)]     # first idle cycle
        self.arrivals, self.host = [], []

    def fifo(self, tile, link):
        """Receive FIFO of a link."""
        return self._fifos[tile][link]

    def leaver(self, tile, mask):
        """Function (cycle, vectors, queue) that sends vectors on the links of ``mask``."""
        cfg, calendar, free = self._system.tile, self._calendar, self._free[tile]
        ways = []
        for link in range(len(self._names)):
            if mask >> link & 1:
                delay, *arrive = self._far_end(tile, link)
                ways.append((link, cfg.port(link).flits(cfg.lanes), delay, arrive))

        def leave(cycle, vectors, queue):
            if any(free[link] > cycle for link, *_ in ways):
                self._faults.note(tile, Fault.LINK_BUSY, cycle, queue)
                return
            for link, flits, delay, arrive in ways:
                free[link] = cycle + len(vectors) * flits
                if arrive:
                    for number, vector in enumerate(vectors, 1):
                        calendar.act(cycle + number * flits + delay, *arrive, vector)
        return leave

    def _far_end(self, tile, link):
        """Latency, and what a vector does when it is there (nothing where no link is)."""
        if link == len(self._names) - 1:
            return self._system.host_latency, self._reach_host, tile, link
        way = self._system.outgoing(tile, link)
        if way is None:
            return 0,
        return way.latency, self.arrive, way.target, way.target_port

    def _reach_host(self, cycle, tile, link, vector):
        self.host.append((cycle, tile, link, vector))

    def arrive(self, cycle, tile, link, vector):
        """Let ``vector`` enter a FIFO at the end of ``cycle``."""
        fifo = self._fifos[tile][link]
        if fifo.full(cycle):
            self._faults.note(tile, Fault.FIFO_OVERFLOW, cycle, f"{self._names[link]}.recv")
            return
        fifo.vectors.append(vector)
        self.arrivals.append((cycle, tile, link, vector))

    def from_host(self, cycle, tile, vector):
        """Let ``vector`` from the host enter the FIFO of ``tile`` at the end of ``cycle``."""
        self._calendar.act(cycle, self.arrive, tile, len(self._names) - 1, vector)


class C2c:
    """Send and receive side of one link of one tile.

    Timing: SEND takes its streams at its issue, FORWARD and RECV their vectors; RECV is on the
    streams one cycle later, and leaves on links as a FORWARD does.

    Parameters
    ----------
    context : Context
        The machine around it.
    link : int
    links : Links
    """

    def __init__(self, context, link, links):
        self._context = context
        self._links = links
        self._fifo = links.fifo(context.tile, link)

    def bind(self, queue, op, fields, table):
        """Function (cycle, 0, 0, step) that does what an issue of the word does."""
        return {"SEND": self._send, "RECV": self._recv, "FORWARD": self._forward}[op](queue, fields)

    def _send(self, queue, fields):
        take = self._context.streams.reader(self._context.tile, "c2c", fields,
                                            4 if fields["quad"] else 1)
        leave = self._links.leaver(self._context.tile, fields["links"])
        return lambda cycle, _0, _1, _step: leave(cycle, take(cycle), queue)

    def _recv(self, queue, fields):
        count = 4 if fields["quad"] else None
        put = self._context.streams.writer(self._context.tile, "c2c", fields, count)
        leave = self._links.leaver(self._context.tile, fields["links"])

        def recv(cycle, _0, _1, _step):
            vectors = self._take(cycle, count or 1, queue)
            put(cycle + 1, vectors if count else vectors[0])
            leave(cycle, vectors, queue)
        return recv

    def _forward(self, queue, fields):
        leave = self._links.leaver(self._context.tile, fields["links"])
        return lambda cycle, _0, _1, _step: leave(cycle, self._take(cycle, 1, queue), queue)

    def _take(self, cycle, count, queue):
        vectors = self._fifo.take(cycle, count)
        if vectors is None:
            self._context.fault(Fault.FIFO_UNDERFLOW, cycle, queue)
            return [bytes(self._context.cfg.lanes)] * count
        return vectors
