"""Streams: every read finds a value, every value is read to the end, nothing is written over.

A value moves one position a cycle, so ``cycle - hops`` stays the same all its life, with ``hops``
the positions from the end at which its direction begins.  That, with tile, direction and stream, is
a *track*: what happens on it in the order of ``hops`` must be a write, reads, a read with ``last``,
a write, and so on.  Tracks are sorted, nothing is moved.
"""

import numpy as np

from hdl.arch.queues import queues
from hdl.arch.timing import of

from ..faults import cell_name, fault
from ..words import stream_reads, stream_writes
from .kept import canonical

__all__ = ["Streams"]

_READ, _LAST, _WRITE = range(3)     # the order within a cycle


class _Accesses:
    """Stream accesses of words: those of word ``w`` are ``first[w]`` to ``first[w] + count[w]``."""

    def __init__(self, cfg, words):
        rows, self.count = [], []
        for word in words:
            times = of(cfg, word.queue, word.op)
            found = [(times.t_skew, west, stream, _LAST if last else _READ)
                     for west, stream, last in stream_reads(word.op, word.fields)]
            found += [(times.t_d, west, stream, _WRITE)
                      for west, stream in stream_writes(word.op, word.fields)]
            end = len(cfg.floorplan) - 1
            at = cfg.position(word.queue.slice)
            rows += [(delay, west, stream, kind, end - at if west else at)
                     for delay, west, stream, kind in found]
            self.count.append(len(found))
        self.count = np.array(self.count, np.int64)
        self.first = np.cumsum(self.count) - self.count
        self.delay, self.west, self.stream, self.kind, self.hops = \
            np.array(rows, np.int64).reshape(-1, 5).T


class Streams:
    """Checks the streams of all tiles; values are known by the queue that wrote them."""

    def __init__(self, system, issues, columns):
        self._cfg = cfg = system.tile
        self._queue = columns.queue
        self._accesses = _Accesses(cfg, issues.words)
        self._length = len(cfg.floorplan)
        # (cycle, channel, hops, kind, queue); hops -1: a value that was there before
        self._pending = np.zeros((5, 0), np.int64)
        self._live = np.zeros((3, 0), np.int64)         # (track, channel, queue)

    def last(self, cycle):
        """Cycle behind everything that is under way at ``cycle``."""
        return int(max(cycle, self._pending[0].max(initial=0) + self._length,
                       self._live[0].max(initial=0) + self._length))

    def check(self, batch):
        """Faults of the first cycle of ``batch`` that has any, as a list."""
        tokens = np.concatenate([self._pending, self._tokens(batch)], axis=1)
        due = tokens[0] < batch.end
        self._pending = tokens[:, ~due]
        track, channel, queue = self._live
        tokens = np.concatenate([np.stack([track - 1, channel, np.full_like(track, -1),
                                           np.full_like(track, _WRITE), queue]),
                                 tokens[:, due]], axis=1)
        if not tokens.shape[1]:
            return []
        time, channel, hops, kind, queue = tokens
        track = time - hops
        low = track.min()
        span = int(track.max() - low) + 1
        key = ((channel * span + track - low) * (self._length + 1) + hops + 1) * 3 + kind
        order = np.argsort(key, kind="stable")
        key, tokens, track = key[order], tokens[:, order], track[order]
        return self._judge(tokens, key // 3, key // (3 * (self._length + 1)), track, batch.end)

    def _tokens(self, batch):
        accesses = self._accesses
        count = accesses.count[batch.word]
        issue = np.repeat(np.arange(len(count)), count)
        number = np.arange(len(issue)) - (np.cumsum(count) - count)[issue] + \
            accesses.first[batch.word][issue]
        channel = (batch.tile[issue] * 2 + accesses.west[number]) * self._cfg.streams + \
            accesses.stream[number]
        return np.stack([batch.cycle[issue] + accesses.delay[number], channel,
                         accesses.hops[number], accesses.kind[number],
                         self._queue[batch.word[issue]]])

    def _judge(self, tokens, cell, line, track, end):
        """Faults of sorted tokens; ``cell`` and ``line`` number cycles on tracks, and tracks."""
        kind, count = tokens[3], len(line)
        setter = np.maximum.accumulate(np.where(kind != _READ, np.arange(count), -1))
        before = np.concatenate([[-1], setter[:-1]])
        known = (before >= 0) & (line[before] == line)
        live = known & (kind[before] == _WRITE)
        twice = known & (kind == _LAST) & (kind[before] == _LAST) & (cell[before] == cell)
        old = tokens[2] == -1
        wrong = np.full(count, -1)
        wrong[(kind != _WRITE) & ~live] = 0
        wrong[twice] = 1
        wrong[(kind == _WRITE) & live & ~old] = 2
        wrong[(wrong == 2) & (cell[before] == cell)] = 3
        last = np.append(line[1:] != line[:-1], True)
        left = last & (setter >= 0) & (line[setter] == line) & (kind[setter] == _WRITE)
        leaving = track + self._length - 1
        lost = left & (leaving < end)
        left &= ~lost
        self._live = np.stack([track[left], tokens[1, left], tokens[4, setter[left]]])
        if not (wrong >= 0).any() and not lost.any():
            return []
        first = min(tokens[0, wrong >= 0].min(initial=end), leaving[lost].min(initial=end))
        found = np.flatnonzero((wrong >= 0) & (tokens[0] == first))
        faults = [self._fault(tokens, cell, i, wrong[i], before[i]) for i in found]
        for i in np.flatnonzero(lost & (leaving == first)):
            tile, west, stream = self._place(tokens[1, i])
            faults.append(fault("leave", first, queue=self._name(tokens[4, setter[i]]), tile=tile,
                                stream=f"{'EW'[west]}{stream}"))
        return faults

    def _place(self, channel):
        rest, stream = divmod(int(channel), self._cfg.streams)
        return rest // 2, rest % 2, stream

    def _name(self, queue):
        return queues(self._cfg)[queue].name

    def _fault(self, tokens, cell, i, wrong, before):
        cycle, channel, hops, _, queue = tokens[:, i].tolist()
        tile, west, stream = self._place(channel)
        where = cell_name(tile, west, stream, self._length - 1 - hops if west else hops)
        same = cell == cell[i]
        kinds = ((_READ, _LAST), (_LAST,), (_WRITE,), (_WRITE,))[wrong]
        names = sorted(self._name(q) for q in tokens[4, same & np.isin(tokens[3], kinds)])
        if wrong == 3:
            return fault("meet", cycle, cell=where)
        if wrong == 2:
            return fault("over", cycle, queue=names[0], other=self._name(tokens[4, before]),
                         cell=where)
        return fault(("read", "clear")[wrong], cycle, queue=names[wrong], cell=where)

    def state(self, cycle):
        """Bytes that are equal if the same values are under way, seen from ``cycle``."""
        track, channel, queue = self._live
        time, *rest = self._pending
        return canonical(track - cycle, channel, queue) + canonical(time - cycle, *rest)

    def skip(self, cycles):
        """Let ``cycles`` cycles pass in which everything repeats."""
        self._pending[0] += cycles
        self._live[0] += cycles
