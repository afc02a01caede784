"""What the links of a tile do, as `docs/architecture.md` says it, event by event."""

from dataclasses import dataclass, field

from hdl.arch.errors import Fault
from hdl.arch.queues import link_names
from hdl.arch.timing import link_arrival, timing

__all__ = ["Issue", "Trace", "expected"]


@dataclass
class Issue:
    """One issue on a queue of link ``link``; ``vectors`` (bytes) are what the streams carry."""
    cycle: int
    link: int
    op: str
    fields: dict
    vectors: list = None


@dataclass
class Trace:
    """All that is seen of a C2c.

    By (cycle, link): ``taps``, (stream, west, last, count); ``writes``, (east, west, vectors) where
    a direction is its stream or None; ``flits`` and ``arrivals``, bytes.  ``faults`` is a set of
    (cycle of the cause, Fault).
    """
    taps: dict = field(default_factory=dict)
    writes: dict = field(default_factory=dict)
    flits: dict = field(default_factory=dict)
    arrivals: dict = field(default_factory=dict)
    faults: set = field(default_factory=set)


class _Machine:
    def __init__(self, cfg, wires):
        self.cfg, self.wires, self.trace = cfg, wires, Trace()
        self.links = range(len(link_names(cfg)))
        self.free = dict.fromkeys(self.links, 0)        # cycle from which a link is idle
        self.fifo = {k: [] for k in self.links}
        self.coming = {}                                # (cycle, link) to vector

    def pop(self, cycle, link, count):
        if len(self.fifo[link]) < count:
            self.trace.faults.add((cycle, Fault.FIFO_UNDERFLOW))
            return [bytes(self.cfg.lanes)] * count
        taken, self.fifo[link] = self.fifo[link][:count], self.fifo[link][count:]
        return taken

    def start(self, cycle, mask, vectors):
        links = [k for k in self.links if mask >> k & 1]
        if any(self.free[k] > cycle for k in links):
            self.trace.faults.add((cycle, Fault.LINK_BUSY))
            return
        for k in links:
            port = self.cfg.port(k)
            flits = port.flits(self.cfg.lanes)
            self.free[k] = cycle + len(vectors) * flits
            for j, vector in enumerate(vectors):
                padded = vector + bytes(flits * port.bytes - len(vector))
                for f in range(flits):
                    self.trace.flits[cycle + 1 + j * flits + f, k] = \
                        padded[f * port.bytes:(f + 1) * port.bytes]
                if k in self.wires:
                    target, latency = self.wires[k]
                    at = link_arrival(self.cfg, k, latency, cycle, j)
                    self.coming[at, target] = vector

    def cycle(self, cycle, issues):
        before = {k: len(self.fifo[k]) for k in self.links}
        # a start in this cycle makes the link busy for the next wish of this cycle
        wishes = []
        for issue in issues:
            fields = issue.fields
            if issue.op == "SEND":
                count = 4 if fields["quad"] else 1
                self.trace.taps[cycle, issue.link] = (
                    fields["source"], fields["source_west"], fields["source_last"], count)
                wishes.append((0, issue.link, fields["links"], issue.vectors[:count]))
            elif issue.op == "FORWARD":
                wishes.append((1, issue.link, fields["links"], self.pop(cycle, issue.link, 1)))
            else:
                vectors = self.pop(cycle, issue.link, 4 if fields["quad"] else 1)
                targets = tuple(fields[d] if fields[f"{d}_en"] else None for d in ("east", "west"))
                if targets != (None, None):
                    at = cycle + timing(self.cfg)["recv", "RECV"].t_d
                    self.trace.writes[at, issue.link] = (*targets, vectors)
                wishes.append((1, issue.link, fields["links"], vectors))
        for _, _, mask, vectors in sorted(wishes, key=lambda wish: wish[:2]):
            self.start(cycle, mask, vectors)
        for k in self.links:
            vector = self.coming.pop((cycle, k), None)
            if vector is None:
                continue
            if before[k] == self.cfg.port(k).fifo:
                self.trace.faults.add((cycle, Fault.FIFO_OVERFLOW))
            else:
                self.fifo[k].append(vector)
                self.trace.arrivals[cycle, k] = vector


def expected(cfg, issues, wires, cycles):
    """`Trace` of ``cycles`` cycles.

    Parameters
    ----------
    wires : dict of int to (int, int)
        Link driven to (link that receives, latency in cycles), all on one C2c.
    """
    machine = _Machine(cfg, wires)
    for cycle in range(cycles):
        machine.cycle(cycle, [issue for issue in issues if issue.cycle == cycle])
    return machine.trace
