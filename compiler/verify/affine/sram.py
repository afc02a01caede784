"""SRAM: words are read when somebody has written them, and never while they are written.

Which words an issue touches over all iterations is an affine set (`addresses`).  If all of a READ's
lie among words that are loaded, that is the end of it; only of others the words are listed, each
with the first cycle in which it is read or written: exact, because a READ is right if and only if
the first READ of its word is behind the first WRITE.

A READ and a WRITE meet if their cycle and their word are equal.  Pairs of equal cycle are found
while time is gone through (`Timeline`), those whose affine sets are disjoint are left out, and of
the rest the difference of the addresses is followed through all iterations that were skipped.
"""

from collections import defaultdict

import numpy as np

from hdl.arch.isa import index_bits
from hdl.arch.timing import timing

from ..faults import NEVER, fault
from .addresses import bounds, offsets
from .kept import canonical
from .pairs import Pairs, meetings

__all__ = ["Sram"]


class Sram:
    """Checks the slices of all tiles.

    What a GATHER reads depends on data; of it only the port is checked.
    """

    def __init__(self, system, issues, columns):
        self._cfg = cfg = system.tile
        self._issues = issues
        self._columns = columns
        self._slices = cfg.slices("mem")
        self._modulo = (1 << index_bits(cfg, "mem_read")[0]) - 1
        self._reads, self._gathers, self._writes = (
            columns.are(op) for op in ("READ", "GATHER", "WRITE"))
        self._unit = columns.of(lambda word: word.queue.unit)
        self._t_write = timing(cfg)["mem_write", "WRITE"].t_d
        self._low, self._high = self._extents()
        self._gathering = np.zeros((2, 0), np.int64)    # (slice, cycle of the access)
        self._writing = np.zeros((3 + cfg.loop_levels, 0), np.int64)
        self.pairs = []

    def _extents(self):
        """Least and greatest address of every READ and WRITE over all iterations."""
        issues = self._issues
        low, high = np.zeros((2, len(issues.cycle)), np.int64)
        for (body, number), chosen in self._groups(self._reads | self._writes):
            least, most = bounds(issues.words[number], issues.bodies[body].path)
            low[chosen] = issues.index[0, chosen] + least
            high[chosen] = issues.index[0, chosen] + most
        wraps = (low < 0) | (high > self._modulo)
        low[wraps], high[wraps] = 0, self._modulo
        return low, high

    def _groups(self, words):
        """((body, word), issues) of all issues of ``words`` (a mask) that share both."""
        chosen = np.flatnonzero(words[self._issues.word])
        key = self._issues.body[chosen] * len(words) + self._issues.word[chosen]
        chosen = chosen[np.argsort(key, kind="stable")]
        values, first = np.unique(np.sort(key), return_index=True)
        for value, part in zip(values.tolist(), np.split(chosen, first[1:]), strict=False):
            yield divmod(value, len(words)), part

    def _places(self, batch):
        return batch.tile * len(self._slices) + self._unit[batch.word]

    def check(self, batch):
        """Faults of the ports in a batch, as a list; notes READs that may meet a WRITE."""
        reads, gathers = batch.pick(self._reads), batch.pick(self._gathers)
        writes = batch.pick(self._writes)
        gathering = np.concatenate([self._gathering, np.stack([
            self._places(gathers), gathers.cycle + 1])], axis=1)
        self._gathering = gathering[:, gathering[1] >= batch.end]
        writing = np.concatenate([self._writing, np.stack([
            self._places(writes), writes.cycle + self._t_write, writes.issue,
            *writes.levels.T])], axis=1)
        late = writing[1] >= batch.end
        self._writing, writing = writing[:, late], writing[:, ~late]
        span = batch.end - batch.start
        key = self._places(reads) * span + reads.cycle - batch.start
        self._meet(reads, key, writing, writing[0] * span + writing[1] - batch.start)
        clash = np.isin(key, gathering[0] * span + gathering[1] - batch.start)
        return [fault("port", reads.cycle[i], tile=reads.tile[i],
                      queue=self._columns.words[reads.word[i]].queue.name)
                for i in np.flatnonzero(clash)]

    def _meet(self, reads, key, writing, other):
        _, i, j = np.intersect1d(key, other, assume_unique=True, return_indices=True)
        read, write = reads.issue[i], writing[2, j]
        near = (self._low[read] <= self._high[write]) & (self._low[write] <= self._high[read])
        if near.any():
            i, j = i[near], j[near]
            self.pairs.append(Pairs(reads.cycle[i], reads.issue[i], reads.levels[i],
                                    writing[2, j], writing[3:, j].T))

    def state(self, cycle):
        """Bytes that are equal if the same words are accessed, but for their addresses."""
        place, at = self._gathering
        return canonical(place, at - cycle) + canonical(
            self._writing[0], self._writing[1] - cycle, self._writing[2])

    def skip(self, cycles, mark, ride):
        """Let ``cycles`` cycles pass; the pairs from ``mark`` on go through ``ride`` too."""
        self._gathering[1] += cycles
        self._writing[1] += cycles
        for column in self._writing.T:
            queue = self._issues.bodies[self._issues.body[column[2]]].queue
            if queue in ride.level:
                column[3 + ride.level[queue]] += ride.count * ride.step[queue]
        for pairs in self.pairs[mark:]:
            pairs.rides.append(ride)

    def faults(self, binary):
        """First faults of every kind that depends on addresses, of the whole program; of pairs, of
        all that were noted."""
        yield from self._range()
        yield from self._unwritten(binary)
        for pairs in self.pairs:
            yield from meetings(pairs, self._issues, self._columns, self._slices)

    def _range(self):
        size = self._cfg.mem_words
        if size > self._modulo:
            return
        far = self._high >= size
        for (body, number), chosen in self._groups(self._reads | self._writes):
            chosen = chosen[far[chosen]]
            if len(chosen):
                address, time = self._touched(body, number, chosen)
                time = np.where(address >= size, time, NEVER)
                first = time.min(initial=NEVER)
                for i, j in np.argwhere((time == first) & (time < NEVER)):
                    yield fault("address", first, tile=self._issues.tile[chosen[i]],
                                queue=self._issues.words[number].queue.name,
                                address=address[i, j])

    def _touched(self, body, number, chosen):
        """Addresses of the issues ``chosen`` of one word and body, and the first cycle of each."""
        issues = self._issues
        around = issues.bodies[body]
        found = offsets(issues.words[number], around.path, self._modulo)
        return (issues.index[0, chosen][:, None] + found.value & self._modulo,
                (issues.cycle[chosen] + around.start)[:, None] + found.time)

    def _unwritten(self, binary):
        reads, writes = defaultdict(list), defaultdict(list)
        for kind, found in ((self._reads, reads), (self._writes, writes)):
            for (body, number), chosen in self._groups(kind):
                found[self._issues.tile[chosen[0]], self._unit[number]].append(
                    (body, number, chosen))
        for (tile, unit), groups in reads.items():
            content = binary.tiles[tile].sram.get(self._slices[unit], {})
            missing = np.ones(self._modulo + 1, bool)
            missing[self._cfg.mem_words:] = False       # another fault
            for address, data in content.items():
                missing[address:address + len(data) // self._cfg.lanes] = False
            first = self._first(groups, missing, 0)
            missing &= first < NEVER
            if missing.any():
                written = self._first(writes[tile, unit], missing, self._t_write)
                wrong = missing & (written >= first)
                earliest = first[wrong].min(initial=NEVER)
                for address in np.flatnonzero(wrong & (first == earliest)):
                    yield fault("unwritten", earliest, tile=tile, mem=self._slices[unit],
                                address=address)

    def _first(self, groups, wanted, delay):
        """First cycle, ``delay`` behind the issue, in which each of the ``wanted`` words is
        touched."""
        first = np.full(len(wanted), NEVER)
        before = np.concatenate([[0], np.cumsum(wanted)])
        for body, number, chosen in groups:
            chosen = chosen[before[self._high[chosen] + 1] > before[self._low[chosen]]]
            if len(chosen):
                address, time = self._touched(body, number, chosen)
                np.minimum.at(first, address.reshape(-1), time.reshape(-1) + delay)
        return first
