"""MXM: weights are complete when installed, sums complete and begun when read, activations kept."""

import numpy as np

from hdl.arch.isa import index_bits
from hdl.arch.timing import rules, timing

from ..faults import fault
from .kept import Kept, canonical

__all__ = ["Mxm"]


class Mxm:
    """Checks the MXMs of all tiles."""

    def __init__(self, system, issues, columns):
        self._cfg = cfg = system.tile
        self._columns = columns
        self._slices = cfg.slices("mxm")
        units = system.tiles * len(self._slices)
        self._unit = columns.of(lambda word: word.queue.unit)
        self._lw, self._abc, self._acc = (columns.are(op) for op in ("LW", "ABC", "ACC"))
        self._install, self._clear, self._buffered, self._keep = (
            columns.has(name) for name in ("install", "clear", "buffered", "keep"))
        self._vectors = columns.of(lambda word: min(1 << word.fields.get("count_log2", 0), 4))
        self._columnwise = columns.of(lambda word: word.fields.get("columns", 0))
        self._t_d = timing(cfg)["mxm_act", "ABC"].t_d
        self._places = 1 << max(index_bits(cfg, "mxm_act"))
        self._installed = Kept(units)
        self._begun, self._activations = Kept(units * self._places), Kept(units * self._places)
        self._loads = np.zeros((5, 0), np.int64)    # (unit, usable from, columns, row, vectors)
        self._fresh = np.zeros((units, 2, cfg.lanes), bool)
        self._sums = np.zeros((3, 0), np.int64)     # ABCs to come: (place, visible from, clear)
        # (place, cycle) of the first ACC of each sum that has been read and not begun anew
        self._read = np.zeros((2, 0), np.int64)

    def _units(self, batch):
        return batch.tile * len(self._slices) + self._unit[batch.word]

    def _fault(self, kind, cycle, unit, **what):
        tile, number = divmod(int(unit), len(self._slices))
        return fault(kind, int(cycle), tile=tile, mxm=self._slices[number], **what)

    def check(self, batch):
        """Faults of a batch, as a list."""
        loads, acts = batch.pick(self._lw), batch.pick(self._abc)
        accs = batch.pick(self._acc)
        return [*self._weights(batch.end, loads, acts), *self._activation(acts),
                *self._multiplies(acts), *self._numbers(acts, accs),
                *self._accumulators(acts, accs)]

    def _numbers(self, acts, accs):
        uses = self._buffered | self._keep
        for batch, row, name, size in ((acts, 0, "accumulator", self._cfg.accumulators),
                                       (accs, 0, "accumulator", self._cfg.accumulators),
                                       (acts.pick(uses), 1, "activation", self._cfg.activations)):
            number = self._columns.index(batch, row)
            for i in np.flatnonzero(number >= size):
                yield self._fault("outside", batch.cycle[i], self._units(batch)[i], what=name,
                                  number=number[i])

    def _multiplies(self, acts):
        install = self._install[acts.word]
        units = self._units(acts)
        missing = self._installed.missing(acts.end, units[install], acts.cycle[install],
                                          units[~install], acts.cycle[~install])
        for cycle, unit in zip(acts.cycle[~install][missing], units[~install][missing],
                               strict=True):
            yield self._fault("multiply", cycle, unit)

    def _activation(self, acts):
        number = self._columns.index(acts, 1)
        places = self._units(acts) * self._places + number
        keep, asked = self._keep[acts.word], self._buffered[acts.word]
        missing = self._activations.missing(acts.end, places[keep], acts.cycle[keep] + 1,
                                            places[asked], acts.cycle[asked])
        for i in np.flatnonzero(asked)[missing]:
            yield self._fault("activation", acts.cycle[i], self._units(acts)[i],
                              number=number[i])

    def _weights(self, end, loads, acts):
        """Each LW belongs to the first install from ``lw_to_install`` cycles on: rows (or columns)
        of those of one install must be all there are."""
        lanes = self._cfg.lanes
        found = np.stack([self._units(loads), loads.cycle + rules(self._cfg).lw_to_install,
                          self._columnwise[loads.word], self._columns.index(loads) % lanes,
                          self._vectors[loads.word]])
        found = np.concatenate([self._loads, found], axis=1)
        late = found[1] >= end
        self._loads, found = found[:, late], found[:, ~late]
        chosen = self._install[acts.word]
        unit, cycle = self._units(acts)[chosen], acts.cycle[chosen]
        order = np.lexsort((cycle, unit))
        unit, cycle = unit[order], cycle[order]
        fresh, count = self._fresh, len(unit)
        # a row for each install, then one for each unit: what comes behind its last install
        full = np.concatenate([np.zeros((count, 2, lanes), bool), np.zeros_like(fresh)])
        base = min(cycle.min(initial=end), found[1].min(initial=end))
        at = np.searchsorted(unit * (end - base + 1) + cycle - base,
                             found[0] * (end - base + 1) + found[1] - base)
        inside = at < count
        inside[inside] = unit[at[inside]] == found[0, inside]
        target = np.where(inside, at, count + found[0])
        for vector in range(4):
            more = found[4] > vector
            full[target[more], found[2, more], (found[3, more] + vector) % lanes] = True
        first = np.concatenate([[True], unit[1:] != unit[:-1]])[:count]
        full[:count][first] |= fresh[unit[first]]
        idle = np.setdiff1d(np.arange(len(fresh)), unit)
        full[count + idle] |= fresh[idle]
        self._fresh = full[count:]
        missing = lanes - full[:count].sum(axis=2).max(axis=1, initial=0)
        for i in np.flatnonzero(missing):
            yield self._fault("install", cycle[i], unit[i], missing=missing[i])

    def _accumulators(self, acts, accs):
        """In the order in which sums are visible, an ABC behind an ACC must clear."""
        clear = self._clear[acts.word]
        numbers = self._columns.index(acts)
        summed = self._units(acts) * self._places + numbers
        read = self._units(accs) * self._places + self._columns.index(accs)
        visible = acts.cycle + self._t_d
        missing = self._begun.missing(acts.end, summed[clear], visible[clear], read, accs.cycle)
        for cycle, place in zip(accs.cycle[missing], read[missing], strict=True):
            yield self._fault("begun", cycle, place // self._places, number=place % self._places)
        sums = np.concatenate([self._sums, np.stack([summed, visible, clear])], axis=1)
        late = sums[1] >= acts.end
        self._sums, sums = sums[:, late], sums[:, ~late]
        yield from self._order(sums, read, accs.cycle, acts.start)

    def _order(self, sums, read, cycle, start):
        place = np.concatenate([self._read[0], read, sums[0]])
        at = np.concatenate([self._read[1], cycle, sums[1]])
        time = np.concatenate([np.full(self._read.shape[1], start - 1), cycle, sums[1]])
        # 0: an ABC that clears, 1: one that does not, 2: an ACC, behind an ABC of the same cycle
        kind = np.concatenate([np.full(len(place) - sums.shape[1], 2), 1 - sums[2]])
        order = np.lexsort((kind, time, place))
        place, at, kind = place[order], at[order], kind[order]
        count = np.arange(len(place))
        new = np.concatenate([[True], place[1:] != place[:-1]])[:len(place)]
        # where the run of ACCs that a token belongs to, or ends, began
        begins = (kind == 2) & (new | np.concatenate([[True], kind[:-1] != 2])[:len(place)])
        begun = np.maximum.accumulate(np.where(begins, count, -1))
        behind = ~new & (np.concatenate([[0], kind[:-1]])[:len(place)] == 2)
        for i in np.flatnonzero((kind == 1) & behind):
            unit, number = divmod(place[i], self._places)
            yield self._fault("sum", at[i], unit, number=number, at=at[begun[i]])
        last = np.concatenate([place[1:] != place[:-1], [True]])[:len(place)] & (kind == 2)
        self._read = np.stack([place[last], at[begun[last]]])

    def state(self, cycle):
        """Bytes that are equal if the same follows, seen from ``cycle``."""
        unit, usable, *rest = self._loads
        place, visible, clear = self._sums
        return b"".join([
            self._installed.state(cycle), self._begun.state(cycle), self._activations.state(cycle),
            canonical(unit, usable - cycle, *rest), np.packbits(self._fresh).tobytes(),
            canonical(place, visible - cycle, clear), canonical(self._read[0])])

    def skip(self, cycles, since):
        """Let ``cycles`` cycles pass in which everything from cycle ``since`` on repeats."""
        for kept in (self._installed, self._begun, self._activations):
            kept.skip(cycles)
        self._loads[1] += cycles
        self._sums[1] += cycles
        self._read[1, self._read[1] >= since] += cycles
