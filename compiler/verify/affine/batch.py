"""Issues of a stretch of time, of definite iterations, as arrays."""

from typing import NamedTuple

import numpy as np

from hdl.arch import isa

__all__ = ["Batch", "Columns", "Piece", "make_batch"]


class Piece(NamedTuple):
    """Issues ``first`` to ``last`` of `Issues` in the iteration that starts in cycle ``base`` and
    has the loop indices ``context``, outermost first."""
    first: int
    last: int
    base: int
    context: tuple


class Batch(NamedTuple):
    """Issues of all queues in cycles ``start`` to ``end``.

    ``issue`` is the number in `Issues`; ``levels`` has the loop indices, a row for each issue.
    """
    start: int
    end: int
    cycle: np.ndarray
    issue: np.ndarray
    tile: np.ndarray
    word: np.ndarray
    levels: np.ndarray

    def pick(self, chosen):
        """The issues that the mask ``chosen``, by word number, selects."""
        mask = chosen[self.word]
        return self._replace(cycle=self.cycle[mask], issue=self.issue[mask], tile=self.tile[mask],
                             word=self.word[mask], levels=self.levels[mask])


def make_batch(issues, pieces, start, end):
    """`Batch` of ``pieces``, all of which lie in cycles ``start`` to ``end``."""
    depth = max(issues.cfg.loop_levels, 1)
    count = np.array([piece.last - piece.first for piece in pieces], np.int64)
    base = np.array([piece.base for piece in pieces], np.int64)
    first = np.array([piece.first for piece in pieces], np.int64)
    levels = np.zeros((len(pieces), depth), np.int64)
    for row, piece in zip(levels, pieces, strict=True):
        row[:len(piece.context)] = piece.context
    number = np.repeat(np.arange(len(pieces)), count)
    issue = np.arange(len(number)) - (np.cumsum(count) - count)[number] + first[number]
    return Batch(start, end, issues.cycle[issue] + base[number], issue, issues.tile[issue],
                 issues.word[issue], levels[number])


class Columns:
    """Numbers of words, by word: what the checks look up for many issues at once.

    Attributes
    ----------
    queue : array of int
        Number of the queue in its tile.
    terms : array of int (3, 2, levels, words)
        Shift, mask and step of what each LOOP adds to each index.
    modulo : array of int (2, words)
        All bits of each index.
    """

    def __init__(self, issues):
        cfg, self.words = issues.cfg, issues.words
        count = len(self.words)
        self._index = issues.index
        self.queue = self.of(lambda word: word.number)
        self.terms = np.zeros((3, 2, cfg.loop_levels, count), np.int64)
        self.modulo = np.zeros((2, count), np.int64)
        for number, word in enumerate(self.words):
            bits = isa.index_bits(cfg, word.queue.kind)
            self.modulo[:len(bits), number] = [(1 << width) - 1 for width in bits]
            for row, terms in enumerate(word.terms):
                for level, *entry in terms:
                    self.terms[:, row, level, number] = entry

    def of(self, function, dtype=np.int64):
        """Array of ``function(word)`` for every word."""
        return np.array([function(word) for word in self.words], dtype)

    def are(self, *ops):
        """Mask of the words that have one of the opcodes ``ops``."""
        return self.of(lambda word: word.op in ops, bool)

    def has(self, name):
        """Mask of the words whose field ``name`` is there and not 0."""
        return self.of(lambda word: bool(word.fields.get(name)), bool)

    def index(self, batch, row=0):
        """Index number ``row`` of every issue of a batch."""
        value = self._index[row, batch.issue]
        for level in range(self.terms.shape[2]):
            shift, mask, step = self.terms[:, row, level, batch.word]
            value = value + (batch.levels[:, level] >> shift & mask) * step
        return value & self.modulo[row, batch.word]
