"""Links: wires carry one vector at a time; FIFOs neither run empty nor over."""

import numpy as np

from hdl.arch.timing import departure

from ..faults import NEVER, fault
from .kept import canonical

__all__ = ["Links"]


class Links:
    """Checks the wires and FIFOs of all tiles; the host port is each tile's last.

    Attributes
    ----------
    totals : array of int (2, tiles * links)
        Vectors that have arrived at, and that were taken from, each FIFO.
    """

    def __init__(self, system, issues, columns):
        cfg = system.tile
        self._ports = len(cfg.ports) + 1
        self._flits = np.array([cfg.port(port).flits(cfg.lanes) for port in range(self._ports)])
        self._depth = np.array([cfg.port(port).fifo for port in range(self._ports)])
        count = system.tiles * self._ports
        self._target = np.full(count, -1)           # FIFO at the far end of each wire
        self._latency = np.zeros(count, np.int64)
        for link in system.links:
            wire = link.source * self._ports + link.source_port
            self._target[wire] = link.target * self._ports + link.target_port
            self._latency[wire] = link.latency
        self._sends = columns.are("SEND", "FORWARD", "RECV")
        self._takes = columns.are("RECV", "FORWARD")
        self._unit = columns.of(lambda word: word.queue.unit)
        self._vectors = np.where(columns.has("quad"), 4, 1)
        self._links = columns.of(lambda word: word.fields.get("links", 0))
        self._t_d = columns.of(lambda word: departure(cfg, word.queue.kind)
                               if word.queue.kind in ("send", "recv") else 0)
        self._busy = np.zeros(count, np.int64)      # until which cycle
        self._flying = np.zeros((2, 0), np.int64)   # (FIFO, arrival)
        self.totals = np.zeros((2, count), np.int64)

    def last(self, cycle):
        """Cycle behind everything that is under way at ``cycle``."""
        return max(cycle, int(self._flying[1].max(initial=0)) + 1)

    def _fault(self, kind, cycle, place, **what):
        tile, port = divmod(int(place), self._ports)
        return fault(kind, int(cycle), tile=tile, link=port, **what)

    def check(self, batch):
        """Faults of a batch, as a list."""
        sends, takes = batch.pick(self._sends), batch.pick(self._takes)
        faults, parts = [], [self._flying]
        for port in range(self._ports):
            chosen = np.flatnonzero(self._links[sends.word] >> port & 1)
            found, arrivals = self._depart(port, sends.tile[chosen] * self._ports + port,
                                           sends.cycle[chosen], sends.word[chosen])
            faults += found
            parts += arrivals
        arrivals = np.concatenate(parts, axis=1)
        late = arrivals[1] >= batch.end
        self._flying, arrivals = arrivals[:, late], arrivals[:, ~late]
        count = self._vectors[takes.word]
        taken = np.stack([takes.tile * self._ports + self._unit[takes.word], takes.cycle])
        return [*faults, *self._fifos(arrivals, np.repeat(taken, count, axis=1))]

    def _depart(self, port, wire, cycle, word):
        """Faults and arrivals of what leaves on ``port`` of all tiles."""
        order = np.lexsort((cycle, wire))
        wire, cycle, word = wire[order], cycle[order], word[order]
        flits, vectors = self._flits[port], self._vectors[word]
        start = cycle + self._t_d[word]
        until = start + vectors * flits
        before = self._busy[wire]
        same = wire[1:] == wire[:-1]
        before[1:][same] = until[:-1][same]
        self._busy[wire] = until
        faults = [self._fault("busy", cycle[i], wire[i]) for i in np.flatnonzero(before > start)]
        target = self._target[wire]
        if port < self._ports - 1:
            faults += [self._fault("nowhere", cycle[i], wire[i])
                       for i in np.flatnonzero(target < 0)]
        arrivals = []
        for vector in range(4):
            more = (vectors > vector) & (target >= 0)
            arrivals.append(np.stack([target[more], start[more] + (vector + 1) * flits
                                      + self._latency[wire[more]]]))
        return faults, arrivals

    def _fifos(self, arrivals, takes):
        """Vector ``i`` of a FIFO must arrive before take ``i``, and vector ``i + depth`` behind
        it."""
        (fifo, arrival), (taker, take) = (both[:, np.lexsort(both[::-1])]
                                          for both in (arrivals, takes))
        held = self.totals[0] - self.totals[1]
        places = np.arange(len(held))
        first = np.searchsorted(fifo, places), np.searchsorted(taker, places)
        # number of the arrival that each take needs
        need = np.arange(len(take)) - first[1][taker] - held[taker]
        index = first[0][taker] + need
        there = (need >= 0) & (index < len(fifo))
        there[there] = fifo[index[there]] == taker[there]
        empty = need >= 0
        empty[there] = arrival[index[there]] >= take[there]
        # number of the take that must come before each arrival
        need = np.arange(len(fifo)) - first[0][fifo] + held[fifo] - \
            self._depth[fifo % self._ports]
        index = first[1][fifo] + need
        there = (need >= 0) & (index < len(take))
        there[there] = taker[index[there]] == fifo[there]
        full = need >= 0
        full[there] = take[index[there]] >= arrival[there]
        self.totals[0] += np.bincount(fifo, minlength=len(held))
        self.totals[1] += np.bincount(taker, minlength=len(held))
        return [*(self._fault("empty", take[i], taker[i]) for i in np.flatnonzero(empty)),
                *(self._fault("full", arrival[i], fifo[i]) for i in np.flatnonzero(full))]

    def end(self):
        """Faults that only the end of the program shows, as a list."""
        arrived, taken = self.totals
        return [self._fault("left", NEVER, i, arrived=arrived[i], taken=taken[i])
                for i in np.flatnonzero(arrived > taken)]

    def state(self, cycle):
        """Bytes that are equal if the same follows, seen from ``cycle``."""
        return np.maximum(self._busy - cycle, 0).tobytes() + \
            (self.totals[0] - self.totals[1]).tobytes() + \
            canonical(self._flying[0], self._flying[1] - cycle)

    def skip(self, cycles, times, totals):
        """Let ``cycles`` cycles pass in which what happened since ``totals`` happens ``times``
        times."""
        self._busy += cycles
        self._flying[1] += cycles
        self.totals += times * (self.totals - totals)
