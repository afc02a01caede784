"""VXM and SXM: a RESULT is read in the one cycle in which it exists, an entry and a lane map once
they hold a value."""

import numpy as np

from hdl.arch.isa import ALU_ENTRIES, SXM_MAPS, Operand
from hdl.arch.ops import ALU_FEATURE, TWO_OPERANDS
from hdl.arch.timing import of, rules

from ..faults import fault
from .kept import Kept, canonical

__all__ = ["Maps", "Vxm"]

_UNITS = 1 << 8         # more than any field can name


def _asked(cfg, word):
    """(kind of fault, unit or entry) of everything but streams that a VXM word reads."""
    alu = word.queue.kind == "alu"
    if word.op == "SELECT":
        yield "predicate", (word.queue.unit - 1) % len(cfg.alus)
    for name in ("a", "b") if alu and word.op in TWO_OPERANDS else ("a",):
        source = word.fields[f"{name}_source"]
        if word.fields[name] == Operand.RESULT.value:
            yield "result", source
        elif word.fields[name] == Operand.ENTRY.value and alu:
            yield "entry", source % ALU_ENTRIES


class Vxm:
    """Checks the ALUs and reduction units of all tiles.

    An entry counts as right from the cycle on in which any result kept there exists.  But an
    instruction that keeps a result there less than ``t_d`` cycles behind another must leave it time
    to be read, and somebody must read it.
    """

    def __init__(self, system, issues, columns):
        self._cfg = cfg = system.tile
        self._columns = columns
        words = issues.words
        alu = columns.of(lambda word: word.queue.kind == "alu", bool)
        self._mine = alu | columns.of(lambda word: word.queue.kind == "reduce", bool)
        self._unit = columns.of(lambda word: word.queue.unit if word.queue.kind == "alu"
                                else len(cfg.alus))
        self._t_d = columns.of(lambda word: of(cfg, word.queue, word.op).t_d)
        self._keeps = alu & columns.has("keep")
        self._entry = columns.of(lambda word: word.fields.get("entry", 0))
        self._lacks = alu & columns.of(
            lambda word: word.queue.kind == "alu" and ALU_FEATURE.get(word.op) is not None
            and ALU_FEATURE[word.op] not in cfg.alus[word.queue.unit].features, bool)
        asked = [list(_asked(cfg, word)) if mine else []
                 for word, mine in zip(words, self._mine, strict=True)]
        # (kind, unit or entry) by word; no word asks for more than three
        self._asked = [[(kinds[i] if i < len(kinds) else ("", 0)) for kinds in asked]
                       for i in range(3)]
        self._pending = np.zeros((2, 0), np.int64)      # (unit of all tiles, cycle)
        self._kept = Kept(system.tiles * len(cfg.alus) * ALU_ENTRIES)
        # results kept in entries: (place, from which cycle on, cycle of issue, word)
        self._keeping = np.zeros((4, 0), np.int64)      # those to come
        self._unread = np.zeros((4, 0), np.int64)       # less than t_d ago, and not read yet

    def _place(self, batch, entry):
        return (batch.tile * len(self._cfg.alus) + self._unit[batch.word]) * ALU_ENTRIES + entry

    def check(self, batch):
        """Faults of a batch, as a list."""
        batch = batch.pick(self._mine)
        results = np.stack([batch.tile * _UNITS + self._unit[batch.word],
                            batch.cycle + self._t_d[batch.word]])
        results = np.concatenate([self._pending, results], axis=1)
        self._pending = results[:, results[1] >= batch.end]
        faults = []
        for i in np.flatnonzero(self._lacks[batch.word]):
            op = self._columns.words[batch.word[i]].op
            faults.append(self._fault("feature", batch, i, feature=ALU_FEATURE[op]))
        span = batch.end - batch.start
        results = results[:, results[1] < batch.end]
        present = results[0] * span + results[1] - batch.start
        entries = []
        for row in self._asked:
            kind = np.array([kind for kind, _ in row] or [""])[batch.word]
            number = np.array([number for _, number in row] or [0], np.int64)[batch.word]
            wanted = (batch.tile * _UNITS + number) * span + batch.cycle - batch.start
            absent = ((kind == "result") | (kind == "predicate")) & ~np.isin(wanted, present)
            faults += [self._fault(kind[i], batch, i, unit=number[i])
                       for i in np.flatnonzero(absent)]
            chosen = np.flatnonzero(kind == "entry")
            entries.append((chosen, number[chosen]))
        issue, number = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        asked = self._place(batch, 0)[issue] + number
        keeps = np.stack([self._place(batch, self._entry[batch.word]),
                          batch.cycle + self._t_d[batch.word], batch.cycle,
                          batch.word])[:, self._keeps[batch.word]]
        missing = self._kept.missing(batch.end, keeps[0], keeps[1], asked, batch.cycle[issue])
        faults += self._lost(batch, keeps, asked, batch.cycle[issue])
        faults += [self._fault("entry", batch, i, entry=entry)
                   for i, entry in zip(issue[missing], number[missing], strict=True)]
        return faults

    def _lost(self, batch, keeps, asked, cycles):
        """A result kept less than ``t_d`` cycles before the next must be read in between."""
        keeps = np.concatenate([self._keeping, keeps], axis=1)
        late = keeps[1] >= batch.end
        self._keeping, keeps = keeps[:, late], keeps[:, ~late]
        tokens = np.concatenate([self._unread, keeps, np.stack(
            [asked, cycles, cycles, np.full_like(asked, -1)])], axis=1)
        place, time, issue, word = tokens = tokens[:, np.lexsort(
            (tokens[3] < 0, tokens[1], tokens[0]))]
        last = np.append(place[1:] != place[:-1], True)[:len(place)]
        self._unread = tokens[:, last & (word >= 0) & (2 * time - issue > batch.end)]
        lost = (~last & (word >= 0))[:-1] & (word[1:] >= 0) & (issue[1:] < time[:-1])
        for i in np.flatnonzero(lost) + 1:
            word = self._columns.words[tokens[3, i]]
            yield fault("lost", time[i], at=issue[i], queue=word.queue.name, op=word.op,
                        tile=place[i] // (len(self._cfg.alus) * ALU_ENTRIES),
                        entry=word.fields["entry"], t_d=time[i] - issue[i])

    def _fault(self, kind, batch, i, **what):
        word = self._columns.words[batch.word[i]]
        return fault(str(kind), batch.cycle[i], tile=batch.tile[i], queue=word.queue.name,
                     op=word.op, **what)

    def state(self, cycle):
        """Bytes that are equal if the same follows, seen from ``cycle``."""
        entries = (canonical(place, appears - cycle, word)
                   for place, appears, _, word in (self._keeping, self._unread))
        return b"".join([canonical(self._pending[0], self._pending[1] - cycle),
                         self._kept.state(cycle), *entries])

    def skip(self, cycles):
        """Let ``cycles`` cycles pass in which everything repeats."""
        self._pending[1] += cycles
        self._kept.skip(cycles)
        self._keeping[1:3] += cycles
        self._unread[1:3] += cycles


class Maps:
    """Checks that every PERMUTE finds a lane map."""

    def __init__(self, system, issues, columns):
        self._cfg = system.tile
        self._columns = columns
        self._sets, self._uses = columns.are("MAP"), columns.are("PERMUTE")
        self._map = columns.of(lambda word: word.queue.unit * SXM_MAPS + word.fields.get("map", 0))
        self._kept = Kept(system.tiles * max(1, len(self._cfg.slices("sxm"))) * SXM_MAPS)

    def _places(self, batch):
        return batch.tile * len(self._cfg.slices("sxm")) * SXM_MAPS + self._map[batch.word]

    def check(self, batch):
        """Faults of a batch, as a list."""
        sets, uses = batch.pick(self._sets), batch.pick(self._uses)
        missing = self._kept.missing(
            batch.end, self._places(sets), sets.cycle + rules(self._cfg).map_to_permute,
            self._places(uses), uses.cycle)
        words = [self._columns.words[uses.word[i]] for i in np.flatnonzero(missing)]
        return [fault("map", cycle, tile=tile, queue=word.queue.name, number=word.fields["map"])
                for word, cycle, tile in zip(words, uses.cycle[missing], uses.tile[missing],
                                             strict=True)]

    def state(self, cycle):
        """Bytes that are equal if the same follows, seen from ``cycle``."""
        return self._kept.state(cycle)

    def skip(self, cycles):
        """Let ``cycles`` cycles pass in which everything repeats."""
        self._kept.skip(cycles)
