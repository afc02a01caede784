"""Time in stretches: where every queue that does anything repeats with one period, a few of the
periods stand for all.

A stretch is cut into windows of one period (the least common multiple of the periods of all LOOPs
that run).  Issue ``k`` of every window is that of the window before, a period later, so once the
state at the end of a window is that at the end of an earlier one, everything repeats for as long as
the LOOPs run, and the windows up to there are skipped.  Where queues do not repeat together, or the
state does not repeat, every iteration is gone through: slower, never less exact.
"""

from collections import Counter, deque
from math import gcd, lcm
from typing import NamedTuple

import numpy as np

from .batch import Piece

__all__ = ["Ride", "Span", "Timeline"]

#: Issues gone through at once, about; issues that a window should have, if there are enough.
BATCH, WINDOW = 1 << 20, 1 << 11
#: Issues that a skip must save to be worth looking for.
WORTH = 1 << 12
#: Cycles of one batch: bounds the numbers that are packed into one.
_CYCLES = 1 << 32


class Span(NamedTuple):
    """Iterations ``low`` to ``high`` of a `Loop`, iteration 0 of which starts in cycle ``start``;
    ``context`` has the indices of the loops around it."""
    loop: object
    start: int
    low: int
    high: int
    context: tuple

    @property
    def period(self):
        return self.loop.body.period

    @property
    def begin(self):
        return self.start + self.low * self.period

    @property
    def end(self):
        return self.start + self.high * self.period


class Ride(NamedTuple):
    """Windows left out: what happened in the windows before happens ``count`` times more, every
    ``cycles`` cycles; ``level`` and ``step`` say, by number of tile and queue, which loop index
    goes on and by how much each time."""
    count: int
    cycles: int
    level: dict
    step: dict


class Timeline:
    """Goes through a program in the order of time.

    Parameters
    ----------
    issues : Issues
    visitor
        Has ``batch(pieces, start, end)``, called for one stretch after the other; ``mark(cycle)``,
        a note of how far it is; ``state(cycle)``, bytes that are equal if the same will
        follow; and ``skip(mark, ride)``: what happened since ``mark`` is repeated.
    """

    def __init__(self, issues, visitor):
        self._issues = issues
        self._visitor = visitor

    def run(self):
        """Go through the whole program; returns the cycle in which its last word ends."""
        pieces, spans = [], []
        for root in self._issues.roots:
            self._part(root, 0, (), 0, root.period, pieces, spans)
        end = max((root.period for root in self._issues.roots), default=0)
        self._run(pieces, spans, 0, end)
        return end

    def _part(self, body, base, context, start, end, pieces, spans):
        """Collect what an iteration of ``body`` does in cycles ``start`` to ``end``."""
        cycles = self._issues.cycle[body.first:body.last]
        low, high = body.first, body.last
        if start > base:
            low += int(np.searchsorted(cycles, start - base))
        if end < base + body.period:
            high = body.first + int(np.searchsorted(cycles, end - base))
        if high > low:
            pieces.append(Piece(low, high, base, context))
        for loop in body.loops:
            if loop.body.total:
                self._cut(Span(loop, base + loop.at, 0, loop.count, context), start, end,
                          pieces, spans)

    def _cut(self, span, start, end, pieces, spans):
        """Collect what of ``span`` lies in cycles ``start`` to ``end``: whole iterations as a span,
        parts of iterations as what they hold."""
        period = span.period
        low = max(span.low, -((span.start - start) // period))
        high = min(span.high, (end - span.start) // period)
        edges = set()
        if low > span.low and span.start + low * period > start:
            edges.add(low - 1)
        if high < span.high and span.start + high * period < end:
            edges.add(high)
        for k in sorted(edges):
            if span.low <= k < span.high:
                self._iteration(span, k, start, end, pieces, spans)
        if low < high:
            spans.append(span._replace(low=low, high=high))

    def _iteration(self, span, k, start, end, pieces, spans):
        self._part(span.loop.body, span.start + k * span.period,
                   (*span.context, span.loop.index + k), start, end, pieces, spans)

    def _window(self, pieces, spans, start, end):
        """Pieces and spans in cycles ``start`` to ``end``, with iterations of ``spans`` one by
        one."""
        inner_pieces, inner_spans = [], []
        for piece in pieces:
            cycles = self._issues.cycle[piece.first:piece.last]
            low, high = np.searchsorted(cycles, [start - piece.base, end - piece.base]).tolist()
            if high > low:
                inner_pieces.append(piece._replace(first=piece.first + low,
                                                   last=piece.first + high))
        for span in spans:
            low = max(span.low, (start - span.start) // span.period)
            high = min(span.high, -((span.start - end) // span.period))
            for k in range(low, high):
                self._iteration(span, k, start, end, inner_pieces, inner_spans)
        return inner_pieces, inner_spans

    def _run(self, pieces, spans, start, end):
        if spans:
            for low, high, period in self._stretches(pieces, spans, start, end):
                if period:
                    self._periodic(pieces, spans, low, high, period)
                else:
                    self._plain(pieces, spans, low, high)
        elif sum(piece.last - piece.first for piece in pieces) > BATCH and end - start > 1 or \
                end - start > _CYCLES:
            middle = (start + end) // 2
            self._run(*self._window(pieces, (), start, middle), start, middle)
            self._run(*self._window(pieces, (), middle, end), middle, end)
        elif end > start:
            self._visitor.batch(pieces, start, end)

    def _plain(self, pieces, spans, start, end):
        """Go through a stretch in which queues do not repeat together."""
        size = sum(piece.last - piece.first for piece in pieces)
        for span in spans:
            overlap = min(end, span.end) - max(start, span.begin)
            body = span.loop.body
            size += max(0, overlap // body.period) * (1 + body.last - body.first)
        parts = min(size // BATCH + 1, end - start)
        for part in range(parts):
            low = start + (end - start) * part // parts
            high = start + (end - start) * (part + 1) // parts
            self._run(*self._window(pieces, spans, low, high), low, high)

    def _stretches(self, pieces, spans, start, end):
        """Split a stretch into (begin, end, period); period None: no common one."""
        found, cursor = [], start
        alone = np.sort(np.concatenate(
            [self._issues.cycle[piece.first:piece.last] + piece.base for piece in pieces]
            or [np.zeros(0, np.int64)]))
        for low, high, period, density in _common(spans):
            busy = alone[np.searchsorted(alone, low):np.searchsorted(alone, high)]
            for begin, until in zip([low, *(busy + 1).tolist()], [*busy.tolist(), high],
                                    strict=True):
                length = until - begin
                if length >= 3 * period and density * (length - 2 * period) > WORTH:
                    if begin > cursor:
                        found.append((cursor, begin, None))
                    found.append((begin, until, period))
                    cursor = until
        if cursor < end:
            found.append((cursor, end, None))
        return found

    def _periodic(self, pieces, spans, start, end, period):
        """Go through windows until they repeat, skip the rest."""
        running = [span for span in spans if span.begin <= start < span.end]
        count = (end - start) // period
        size = sum(period // span.period * span.loop.body.total for span in running)
        turns = lcm(*(span.loop.turns // gcd(span.loop.turns, period // span.period)
                      for span in running))
        while (turns > 1 or size < WINDOW) and count >= 8:
            if turns > 1:
                turns //= 2                 # a power of two, as all of them
            period, count, size = 2 * period, count // 2, 2 * size
        history = deque([(self._visitor.state(start), self._visitor.mark(start))], maxlen=turns + 1)
        done = 0
        while done < count:
            low = start + done * period
            self._run(*self._window(pieces, spans, low, low + period), low, low + period)
            done += 1
            history.append((self._visitor.state(low + period), self._visitor.mark(low + period)))
            if done >= turns and count - done >= turns and history[0][0] == history[-1][0]:
                times = (count - done) // turns
                self._visitor.skip(history[0][1], _ride(running, times, turns * period))
                done += times * turns
                break
        rest = start + done * period
        if rest < end:
            self._plain(pieces, spans, rest, end)


def _ride(running, times, cycles):
    return Ride(times, cycles, {span.loop.body.queue: len(span.context) for span in running},
                {span.loop.body.queue: cycles // span.period for span in running})


def _common(spans):
    """Yield (begin, end, period, issues per cycle) of each stretch in which the same ``spans``
    run, if their common period fits in three times, and holds few issues unless it is the longest
    of theirs."""
    changes = sorted([(span.begin, 1, number) for number, span in enumerate(spans)]
                     + [(span.end, -1, number) for number, span in enumerate(spans)])
    running, density, cursor = Counter(), 0.0, None
    for at, change, number in changes:
        if cursor is not None and at > cursor and density:
            period, longest = 1, max(running)
            for one in running:
                period = lcm(period, one)
                if 3 * period > at - cursor or period > longest and density * period > BATCH:
                    break
            else:
                yield cursor, at, period, density
        span = spans[number]
        cursor = at
        running[span.period] += change
        if not running[span.period]:
            del running[span.period]
        density = max(0.0, density + change * span.loop.body.total / span.period)
        if not running:
            density = 0.0
