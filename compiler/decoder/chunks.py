"""Attention over caches of many blocks, in loops over chunks of blocks: its instructions do not
grow with the caches.

Scores are one loop, mixing is another.  Each has two stages, and an iteration does the second of
one chunk beside the first of the next, so that its queues have work from end to end; the first
stage of the first chunk lies in front of the loop, the second of the last behind it.  From chunk to
chunk sums stay in SRAM words and in accumulators, which begin at zero.  The number of blocks is a
power of two, so chunks divide it; slots that no position has reached are hidden by their limits.
"""

from collections import Counter
from dataclasses import replace

from ..lower.chain import Chain
from ..lower.product import load_block
from ..plan import Term
from .attention import add_values, products
from .groups import passes
from .part import Part
from .softmax import Softmax, divide

__all__ = ["attend"]


def attend(builder, machine, groups, chunk, level, between, behind):
    """Attention of ``groups`` of all tiles.

    Parameters
    ----------
    builder : Builder
    machine : Machine
    groups : list of Group
    chunk : int
        Blocks of a chunk, from `groups.chunk_of`.
    level : int
        Depth of the loops.
    between, behind : callable
        Append what follows once all sums of weights, and once all heads are there.

    Returns
    -------
    list of Part
        From the first cluster of the builder to the last loop.
    """
    parts = []
    for kind, done in ((_Scores, between), (_Mixing, behind)):
        for mine in passes(builder.cfg, groups, lambda group, kind=kind: kind.mxms(group, chunk)):
            kind(builder, machine, mine, chunk, level).emit(parts)
        done()
    return parts


class _Loop:
    """One loop over the chunks of ``groups``: each with its sums, MXM and accumulator."""

    def __init__(self, builder, machine, groups, chunk, level):
        self._builder = builder
        self._machine = machine
        self._groups = groups
        self._chunk = chunk
        self._chunks = groups[0][0].keys.count // chunk
        self._level = level

    def emit(self, parts):
        """Append the loop and what lies around it; notes its `Part` and that in front of it."""
        builder, turns = self._builder, self._chunks - 1
        self.begin()
        self._first(0, False)
        marks = [len(builder.clusters)]
        for turn in range(2):
            self._machine.begin()
            self._second(turn, True)
            self._first(turn + 1, True)
            marks.append(len(builder.clusters))
        self._machine.begin()
        first, second, last = marks
        parts.append(Part(parts[-1].last if parts else 0, first))
        parts.append(Part(first, last, second, turns, self._level))
        self._second(turns, False)
        self.end()

    def _blocks(self, chunk):
        return range(chunk * self._chunk, (chunk + 1) * self._chunk)

    def _view(self, group, turning):
        """``group``, its places moving with the loop if ``turning``."""
        if not turning:
            return group
        return replace(
            group, queries=[query._replace(scratch=self._scratch(query))
                            for query in group.queries],
            keys=_Turning(group.keys, self._turn), values=_Turning(group.values, self._turn))

    def _scratch(self, query):
        """That of a query, moving with the loop."""
        scratch, head = query.scratch, query.head
        return scratch | {
            **{name: {head: [self._turn(at) for at in scratch[name][head]]}
               for name in ("limits", "weights")},
            "limbs": {head: [tuple(map(self._turn, pair)) for pair in query.weights]}}

    def _turn(self, at, words=1):
        """``at`` as it moves with the loop: ``words`` for each block."""
        return at.moving(Term.counting(self._level, self._chunks, words * self._chunk))


class _Turning:
    """A cache whose blocks move with a loop."""

    def __init__(self, cache, turn):
        self.mxm = cache.mxm
        self._cache = cache
        self._turn = turn

    def rows(self, vector, block):
        return self._turn(self._cache.rows(vector, block), self._cache.block_words)


class _Scores(_Loop):
    """Scores of a chunk, then exponents of the last ones and their sum."""

    def __init__(self, *of):
        super().__init__(*of)
        self._totals = []
        self._entries = self._buffer()
        self._kept = set()

    def _buffer(self):
        """First activation buffer entries of each group's queries; None for those that find no
        room."""
        used, found = Counter(), []
        for group, _ in self._groups:
            size, first = 2 * group.vectors, used[group.tile]
            last = first + size * len(group.queries)
            fits = last <= self._builder.cfg.activations
            found.append(list(range(first, last, size)) if fits else None)
            used[group.tile] = last if fits else first
        return found

    @staticmethod
    def mxms(group, chunk):
        return group.score_mxms(chunk)

    def begin(self):
        self._builder.operation = "softmax"
        for group, _ in self._groups:
            for softmax in self._softmax(group, 0, False):
                softmax.begin()

    def _softmax(self, group, chunk, last):
        """`Softmax` by query, that takes one chunk in the midst of many, or the last."""
        taken, size = self._chunk, self._chunk
        return [Softmax(self._builder, self._machine, f"{group.name} head {head} {chunk}",
                        group.tile, scratch, head, (2 if last else 4) * size, size, taken)
                for _, head, scratch in group.queries]

    def _first(self, chunk, turning):
        self._builder.operation = "scores"
        for (group, sums), entries in zip(self._groups, self._entries, strict=True):
            mine, count = self._view(group, turning), len(group.queries)
            for number, block in enumerate(self._blocks(chunk)):
                known = group, mine.keys.mxm(0, block)
                products(self._builder, group.name, group.tile, group.queries, mine.keys, block,
                         sums[number * count:][:count], entries,
                         bool(entries) and known in self._kept)
                self._kept.add(known)

    def _second(self, chunk, turning):
        self._builder.operation = "softmax"
        for group, sums in self._groups:
            count = len(group.queries)
            found = self._softmax(self._view(group, turning), chunk, not turning)
            totals = []
            for number, softmax in enumerate(found):
                for turn, block in enumerate(self._blocks(chunk)):
                    softmax.add(block, sums[turn * count + number])
                if not turning:
                    totals.append(softmax.keep_factor())
            if not turning:
                self._totals.append((group, totals))

    def end(self):
        for group, totals in self._totals:
            group.scored(totals)


class _Mixing(_Loop):
    """16-bit weights of a chunk, then their products with the values of the last ones."""

    @staticmethod
    def mxms(group, chunk):
        return group.mix_mxms()

    def begin(self):
        """All sums are products of zeros, with weights that are there for certain."""
        builder = self._builder
        builder.operation = "attention output"
        installed = set()
        for group, sums in self._groups:
            tile, count = group.tile, len(group.queries)
            for number, (mxm, total) in enumerate(sums):
                if (tile, mxm) not in installed:
                    load_block(builder, f"{group.name} V", tile, mxm,
                               group.values.rows(number // count, 0))
                chain = Chain(builder.cfg, f"{group.name} begin {mxm} {total}", tile)
                chain.multiply(chain.alu("TO_INT8", 0.0), mxm, total, clear=1,
                               install=int((tile, mxm) not in installed))
                builder.add(chain.cluster())
                installed.add((tile, mxm))

    def _first(self, chunk, turning):
        self._builder.operation = "softmax"
        for group, _ in self._groups:
            for _, head, scratch in self._view(group, turning).queries:
                divide(self._builder, self._machine, f"{group.name} head {head}", group.tile,
                       scratch, head, self._blocks(chunk))

    def _second(self, chunk, turning):
        self._builder.operation = "attention output"
        for group, sums in self._groups:
            mine, count = self._view(group, turning), len(group.queries)
            weights = [query.weights for query in mine.queries]
            for block in self._blocks(chunk):
                for vector in range(group.vectors):
                    add_values(self._builder, group.name, group.tile, weights, mine.values, vector,
                               block, [total for _, total in sums[vector * count:][:count]])

    def end(self):
        for group, sums in self._groups:
            count = len(group.queries)
            group.mixed([[sums[vector * count + number] for vector in range(group.vectors)]
                         for number in range(count)])
