"""The words of a binary as trees of loops: every issue of a loop's body once, no count expanded.

An issue in the body of nested LOOPs happens at ``start + sum over the LOOPs of i * period`` for all
``0 <= i < count``: `Issues` holds its words and cycles as arrays, `Body` and `Loop` the rest.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hdl.arch import isa
from hdl.arch.queues import queue_index, queues

from ...errors import VerifyError
from ..words import active_queues, read_words, table_of

__all__ = ["Body", "Issues", "Loop", "Word"]

#: Cycles of a program that 64 bits certainly hold.
_LONGEST = 1 << 60


class Word(NamedTuple):
    """A unit word at a depth of LOOPs.

    ``terms`` has (level, shift, mask, step) of what LOOPs add, for each index of the queue's kind;
    ``predicate`` is (shift, mask, match) or None.  ``number`` is that of the queue.
    """
    queue: object
    number: int
    op: str
    fields: dict
    terms: tuple
    predicate: tuple | None


@dataclass
class Body:
    """Words that run one after another, in ``period`` cycles.

    ``first`` to ``last`` are its issues in `Issues`, in order of time; their cycles count from the
    start of the body.  ``start`` is the cycle of its first iteration from the program's start,
    ``path`` the LOOPs around it, and ``total`` its issues with those of all iterations of its
    ``loops``.
    """
    queue: int                  #: tile * queues of a tile + queue
    first: int = 0
    last: int = 0
    period: int = 0
    start: int = 0
    total: int = 0
    path: tuple = ()
    loops: list = field(default_factory=list)


class Loop(NamedTuple):
    """``count`` runs of ``body``, the first at cycle ``at`` of the body around it and with index
    ``index``.  ``turns``: iterations after which all MXM indices are the same again."""
    at: int
    count: int
    index: int
    turns: int
    body: Body


class Issues:
    """Every issue of a binary once for each place it has in the loops of its queue.

    Attributes
    ----------
    cycle, word, tile, body : array of int
        Cycle in its body, number in ``words``, tile, number in ``bodies``.
    index : array of int, two rows
        Indices without what LOOPs add.
    words : list of Word
    bodies, roots : list of Body
        All; those of whole queues.

    Raises
    ------
    VerifyError
        As `expand.events`.
    """

    def __init__(self, cfg, binary):
        self.cfg = cfg
        self.words, self.bodies, self.roots = [], [], []
        self._numbers = {}
        self._parts, self._count = [], 0
        for tile, queue, content in active_queues(cfg, binary):
            self.roots.append(_Reader(self, tile, queue, content, binary).read())
        columns = np.concatenate(self._parts, axis=1) if self._parts else np.zeros((4, 0), np.int64)
        self.cycle, self.word, *index = columns
        self.index = np.array(index)
        self.body = np.repeat(np.arange(len(self.bodies)),
                              [body.last - body.first for body in self.bodies])
        tiles = np.array([body.queue // len(queues(cfg)) for body in self.bodies], np.int64)
        self.tile = tiles[self.body]
        for root in self.roots:
            _place(root, 0, ())

    def word_number(self, word, tail):
        """Number of a `Word`, new or known; ``tail`` tells its hashable parts."""
        key = word.number, word.op, tuple(word.fields.items()), tail
        if key not in self._numbers:
            self._numbers[key] = len(self.words)
            self.words.append(word)
        return self._numbers[key]

    def add(self, body, leaves, bits):
        """Append the issues of ``body``, given as (cycle, word, index, index, count, interval,
        stride, stride)."""
        self.bodies.append(body)
        body.first = self._count
        if leaves:
            leaves = np.array(leaves, np.int64).T
            count = leaves[4]
            number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
            cycle, word, a, b, _, interval, step_a, step_b = np.repeat(leaves, count, axis=1)
            masks = [(1 << width) - 1 for width in (*bits, 0, 0)[:2]]
            self._parts.append(np.stack([cycle + number * interval, word,
                                         a + number * step_a & masks[0],
                                         b + number * step_b & masks[1]]))
            self._count += len(cycle)
        body.last = self._count
        body.total = body.last - body.first + sum(loop.count * loop.body.total
                                                  for loop in body.loops)


def _place(body, start, path):
    body.start, body.path = start, path
    for loop in body.loops:
        _place(loop.body, start + loop.at, (*path, loop))


class _Open(NamedTuple):
    """A LOOP whose end has not come yet."""
    at: int
    count: int
    index: int
    body: Body
    leaves: list


class _Reader:
    """Reads the words of one queue, in the order in which they stand."""

    def __init__(self, issues, tile, queue, content, binary):
        cfg = issues.cfg
        self._issues = issues
        self._where = f"Tile {tile} {queue.name}"
        self._queue, self._number = queue, queue_index(cfg)[queue.name]
        self._global = tile * len(queues(cfg)) + self._number
        self._table = table_of(queue, content)
        self._binary = binary
        self._bits = isa.index_bits(cfg, queue.kind)
        self._names = [index.name for index in isa.KINDS[queue.kind].indices]
        self._words = read_words(cfg, tile, queue, content)
        self._turns = []            # by level: iterations after which MXM indices repeat
        self._open = []

    def read(self):
        """The `Body` of the whole queue."""
        self._open.append(_Open(0, 1, 0, Body(self._global), []))
        unit = None
        for op, fields in self._words:
            length = 1 + fields["wait"]
            if op == "HALT":
                if len(self._open) > 1:
                    raise VerifyError(f"{self._where} halts inside a LOOP")
                self._end(fields["ends"])
                if self._open[0].body.period >= _LONGEST:
                    raise VerifyError(f"{self._where} runs for 2**60 cycles or more")
                return self._close()
            if op == "NOP":
                length += fields["more"] << isa.WAIT_BITS
            elif op == "REPEAT":
                if unit is None:
                    raise VerifyError(f"{self._where} repeats nothing")
                count, interval = fields["count"] or 1, fields["interval"] or 1
                self._issue(unit, count, interval, [fields[f"{name}_stride"]
                                                    for name in self._names])
                length += (count - 1) * interval
            elif op != "LOOP":
                unit = op, fields
                self._issue(unit, 1, 1, None)
            if op in ("NOP", "LOOP"):
                unit = None
            self._open[-1].body.period += length
            if op == "LOOP":
                self._loop(fields)
            self._end(fields["ends"])
        raise VerifyError(f"{self._where} runs past its last word without HALT")

    def _loop(self, fields):
        if fields["ends"]:
            raise VerifyError(f"{self._where} ends a LOOP with a LOOP")
        levels = self._issues.cfg.loop_levels
        if len(self._open) > levels:
            raise VerifyError(f"{self._where} nests more than {levels} LOOPs")
        index = self._binary.first_step if len(self._open) == 1 else 0
        self._open.append(_Open(self._open[-1].body.period, fields["count"] or self._binary.steps,
                                index, Body(self._global), []))
        self._turns.append(1)

    def _end(self, ends):
        for _ in range(ends):
            if len(self._open) == 1:
                raise VerifyError(f"{self._where} ends more LOOPs than are open")
            at, count, index, *_ = self._open[-1]
            body = self._close()
            outer = self._open[-1].body
            outer.loops.append(Loop(at, count, index, self._turns.pop(), body))
            outer.period += count * body.period

    def _close(self):
        ended = self._open.pop()
        self._issues.add(ended.body, ended.leaves, self._bits)
        return ended.body

    def _issue(self, unit, count, interval, strides):
        op, fields = unit
        base = [fields[name] for name in self._names]
        if strides:
            base = [a + stride for a, stride in zip(base, strides, strict=True)]
        ended = self._open[-1]
        ended.leaves.append((ended.body.period, self._word(op, fields),
                             *(*base, 0, 0)[:2], count, interval,
                             *(*(strides or ()), 0, 0)[:2]))

    def _word(self, op, fields):
        depth = len(self._open) - 1
        terms = tuple(
            tuple((level, *self._table[entry])
                  for level, entry in enumerate(fields.get(f"{name}_terms", ())[:depth]) if entry)
            for name in self._names)
        if self._queue.kind == "mxm_act":
            for bits, found in zip(self._bits, terms, strict=True):
                for level, shift, mask, step in found:
                    if (mask & -mask) * step % (1 << bits):
                        turns = 1 << shift + mask.bit_length()
                        self._turns[level] = max(self._turns[level], turns)
        entry = fields.get("predicate")
        predicate = self._table[entry] if entry else None
        word = Word(self._queue, self._number, op, fields, terms, predicate)
        return self._issues.word_number(word, (terms, predicate))
