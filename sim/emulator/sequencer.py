"""Issues of one queue in the order of time, expanded from its loops in pieces of bounded size."""

from typing import NamedTuple

import numpy as np

from hdl.arch import isa

from .program import Block

__all__ = ["FOREVER", "Issues", "Sequencer"]

#: Cycles at which durations saturate: far behind every cycle that is ever simulated.
FOREVER = 1 << 44
_LIMIT = 1 << 13            #: issues expanded at once, about
_COUNTER = (1 << isa.COUNTER_BITS) - 1


class Issues(NamedTuple):
    """Issues in the order of time, one array each.

    ``cycle``: from the start of the run; ``source``: number in `Program.sources`; ``indices``: two
    rows, 0 where the queue kind has fewer indices; ``step``: index of LOOP level 0, or 0.
    """
    cycle: np.ndarray
    source: np.ndarray
    indices: np.ndarray
    step: np.ndarray

    def later(self, cycles):
        """The same, ``cycles`` later."""
        return self._replace(cycle=self.cycle + cycles)

    def pick(self, chosen):
        """Those that ``chosen``, a slice or an array of numbers, selects."""
        return Issues(self.cycle[chosen], self.source[chosen], self.indices[:, chosen],
                      self.step[chosen])

    @staticmethod
    def concatenate(parts):
        """All of ``parts``, a non-empty list, one behind the other."""
        if len(parts) == 1:
            return parts[0]
        return Issues(*(np.concatenate(arrays, axis=-1) for arrays in zip(*parts, strict=True)))


class _Body(NamedTuple):
    """A `Block` with durations: ``count`` iterations of ``period`` cycles with ``issues`` issues;
    ``pieces`` are (offset, `Issues` or inner `_Body`)."""
    level: int
    count: int
    period: int
    issues: int
    pieces: list

    @property
    def duration(self):
        return min(self.count * self.period, FOREVER)


class _Pieces:
    """Collects the contents of a body in order, and joins what is small."""

    def __init__(self, stride):
        self._stride = stride       # by index and source
        self._pieces = []
        self._ready, self._leaves = [], []
        self._size = 0

    def add_leaf(self, offset, leaf):
        """Append the issues of a `Leaf` that begins at ``offset``."""
        if leaf.source is not None:
            self._leaves.append((offset, leaf.source, leaf.count, leaf.interval, leaf.first))
            self._grow(leaf.count)

    def add_issues(self, issues):
        """Append `Issues`."""
        self._expand_leaves()
        self._ready.append(issues)
        self._grow(len(issues.cycle))

    def add_body(self, offset, body):
        """Append a `_Body` that is too large to be expanded."""
        self._join()
        self._pieces.append((offset, body))

    def close(self):
        """All pieces as (offset, `Issues` or `_Body`)."""
        self._join()
        return self._pieces

    def _grow(self, issues):
        self._size += issues
        if self._size > _LIMIT:
            self._join()

    def _expand_leaves(self):
        if not self._leaves:
            return
        columns = np.array(self._leaves, np.int64).T
        count = columns[2]
        offset, source, _, interval, first = np.repeat(columns, count, axis=1)
        number = np.arange(len(source)) - np.repeat(np.cumsum(count) - count, count)
        self._ready.append(Issues(offset + number * interval, source,
                                  (number + first) * self._stride[:, source],
                                  np.zeros_like(source)))
        self._leaves = []

    def _join(self):
        self._expand_leaves()
        if self._ready:
            self._pieces.append((0, Issues.concatenate(self._ready)))
        self._ready, self._size = [], 0


class Sequencer:
    """One queue in one run.

    Parameters
    ----------
    cfg : TileConfig
    kind : str
    program : Program
    table : sequence of (shift, mask, step)
        Entries that are not given add nothing.
    first_step, steps : int

    Attributes
    ----------
    halt : int
        Cycle of the HALT, or of the word at fault.
    """

    def __init__(self, cfg, kind, program, table, first_step, steps):
        self._first_step, self._steps = first_step, steps
        indices = [index.name for index in isa.KINDS[kind].indices]
        sources = program.sources
        self._base = np.zeros((2, len(sources)), np.int64)
        self._stride = np.zeros((2, len(sources)), np.int64)
        # shift, mask and step of each index and level
        self._terms = np.zeros((3, 2, cfg.loop_levels, len(sources)), np.int64)
        entries = [*table, *[(0, 0, 0)] * (isa.TABLE_ENTRIES - len(table))]
        for row, name in enumerate(indices):
            self._base[row] = [source.fields[name] for source in sources]
            self._stride[row] = [source.strides[row] if source.strides else 0 for source in sources]
            if isa.KINDS[kind].terms:
                numbers = np.array([source.fields[f"{name}_terms"] for source in sources], np.int64)
                self._terms[:, row] = np.array(entries, np.int64)[numbers.reshape(
                    len(sources), cfg.loop_levels)].T
        masks = [(1 << bits) - 1 for bits in isa.index_bits(cfg, kind)]
        self._mask = np.array([masks + [0] * (2 - len(masks))], np.int64).T
        self._body = self._prepare(program.body)
        self.halt = self._body.duration

    def _prepare(self, block):
        offset, pieces = 0, _Pieces(self._stride)
        for item in block.items:
            if not isinstance(item, Block):
                pieces.add_leaf(offset, item)
                duration = item.duration
            else:
                inner = self._prepare(item)
                if inner.count * inner.issues > _LIMIT:
                    pieces.add_body(offset, inner)
                elif inner.issues:
                    pieces.add_issues(self._iterate(inner, range(inner.count)).later(offset))
                duration = inner.duration
            offset = min(offset + duration, FOREVER)
        found = pieces.close()
        issues = sum(piece.count * piece.issues if isinstance(piece, _Body) else len(piece.cycle)
                     for _, piece in found)
        return _Body(block.level, block.count or self._steps, offset, issues, found)

    def _iterate(self, body, iterations):
        """`Issues` of a ``body`` that is one piece, for a range of iterations, from the first one's
        start."""
        (_, piece), = body.pieces
        counted = np.arange(iterations.start, iterations.stop)
        index = self._index(body.level, counted)
        shift, mask, step = self._terms[:, :, body.level][:, :, piece.source]
        terms = (index[:, None, None] >> shift & mask) * step       # iteration, index, issue
        cycle = (counted - iterations.start)[:, None] * body.period + piece.cycle
        steps = np.repeat(index, len(piece.cycle)) if body.level == 0 else \
            np.tile(piece.step, len(counted))
        return Issues(cycle.ravel(), np.tile(piece.source, len(counted)),
                      (piece.indices + terms).transpose(1, 0, 2).reshape(2, -1), steps)

    def _index(self, level, iteration):
        return iteration + (self._first_step if level == 0 else 0) & _COUNTER

    def chunks(self):
        """Iterator of (`Issues`, cycle before which no further issue comes)."""
        nothing = np.zeros((2, len(self._base[0])), np.int64)
        parts, size = [], 0
        for cycle, issues, outer, step in self._walk(self._body, 0, nothing, 0):
            if parts and size + len(issues.cycle) > _LIMIT:
                yield Issues.concatenate(parts), cycle + int(issues.cycle[0])
                parts, size = [], 0
            if cycle >= FOREVER:
                return
            indices = issues.indices + (self._base + outer)[:, issues.source] & self._mask
            parts.append(Issues(issues.cycle + cycle, issues.source, indices, issues.step + step))
            size += len(issues.cycle)
        if parts:
            yield Issues.concatenate(parts), FOREVER

    def _walk(self, body, start, outer, step):
        """Iterator of (cycle, `Issues` from it on, what outer levels add by source, step)."""
        if len(body.pieces) == 1 and body.level >= 0 and not isinstance(body.pieces[0][1], _Body):
            group = max(1, _LIMIT // body.issues)
            for first in range(0, body.count, group):
                iterations = range(first, min(first + group, body.count))
                yield start + first * body.period, self._iterate(body, iterations), outer, step
            return
        for iteration in range(body.count if body.pieces else 0):
            added = outer
            if body.level >= 0:
                index = self._index(body.level, iteration)
                shift, mask, factor = self._terms[:, :, body.level]
                added = outer + (index >> shift & mask) * factor
                step = index if body.level == 0 else step
            for offset, piece in body.pieces:
                if isinstance(piece, _Body):
                    yield from self._walk(piece, start + offset, added, step)
                else:
                    yield start, piece, added, step
            start += body.period
