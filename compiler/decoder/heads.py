"""Attention of one layer on the heads of one tile, as jobs of its MXMs.

Heads that share a KV head go together: projections of K and Q, projection of V, scores, mixing.
While the chain of one group is under way, the MXMs have the weights of others to load.
"""

from functools import partial
from itertools import product

from ..lower.chain import Chain
from .attention import Query, mix, score
from .exchange import exchange
from .groups import Group
from .pacing import MIX, PROJECT, SCORE, VALUES
from .projection import Projection
from .vectors import scaled, write_limbs

__all__ = ["Heads"]


class Heads:
    """The heads of one tile.

    Parameters
    ----------
    builder, machine, part, place, sequences, rope, norms, factors
        As of `Projection`.
    slots : int
        Of the KV caches.
    order : AttentionOrder
    """

    def __init__(self, builder, machine, part, place, sequences, slots, rope, norms, factors,
                 order):
        self._builder = builder
        self._machine = machine
        self._part = part
        self._place = place
        self._sequences = sequences
        self._order = order
        self._tile = place.tile
        self._scratch = [shared.attention(place.tile, slots) for shared in sequences]
        self._projection = Projection(builder, machine, part, place, sequences, rope, norms,
                                      factors)

    def jobs(self, pace, early):
        """Jobs of all groups, and of them those that make each vector of the result.

        Parameters
        ----------
        pace : Pace
        early : bool
            K and Q are finished as they are projected; otherwise before they are multiplied, when
            the MXMs have the next head to project.  Sequences that attend together always do, those
            that go one after the other never.

        Returns
        -------
        (list of Job, dict of int to list of Job)
        """
        part, found, makes = self._part, [], {}
        early = (early or self._order.together) and not self._order.in_turn
        blocks = self._projection.blocks
        for number, (kv_head, heads) in enumerate(part.cached(self._tile).items()):
            slots = part.vectors * self._place.keys[0][kv_head].count
            project = pace.job(self._tile, PROJECT, (1 + len(heads)) * blocks,
                               partial(self._project, number, kv_head, heads, early))
            found.append(project)
            chosen = [project]
            if self._projection.has_v:
                chosen.append(pace.job(self._tile, VALUES, blocks,
                                       partial(self._project_values, number, kv_head)))
            found += chosen[1:]
            scored, mixed = [], []
            for group in self._order.groups:
                before = [(job, 0) for job in scored[-1:] + mixed[-1:] if self._order.in_turn]
                scored.append(pace.job(
                    self._tile, SCORE, slots,
                    partial(self._score, group, number, kv_head, heads, early),
                    [(project, pace.chain(8, 1)), *before[:1]]))
                mixed.append(pace.job(
                    self._tile, MIX, slots, partial(self._mix, group, number, kv_head, heads),
                    [(scored[-1], pace.chain(8, 1)), (chosen[-1], pace.chain(6, 1)), *before[1:]]))
                found += [scored[-1], mixed[-1]]
            for head in heads:
                for vector in range(part.vectors):
                    makes[head * part.vectors + vector] = mixed
        return found, makes

    def groups(self):
        """Scores and mixing of all groups as `chunks.attend` takes them."""
        cached = self._part.cached(self._tile)
        return [Group(self._tile, f"tile {self._tile} KV head {kv_head}",
                      self._queries(group, heads), self._cache(self._place.keys, group, kv_head),
                      self._cache(self._place.values, group, kv_head), lambda totals: None,
                      partial(self._attended, group, heads))
                for group in self._order.groups for kv_head, heads in cached.items()]

    def between(self):
        """Nothing follows from the sums of the weights."""

    def behind(self):
        """Nothing is left to do for the heads."""

    def _first(self, head):
        """``head`` among the tile's."""
        return head - self._part.heads(self._tile).start

    def _query(self, sequence, head):
        """16-bit Q of a head: a list of (At, At)."""
        first, size = self._first(head), self._part.vectors
        limbs = self._sequences[sequence].limbs(self._tile, "query")
        return limbs[first * size:(first + 1) * size]

    def _queries(self, group, heads):
        """Those of the sequences of a group, a list of Query."""
        return [Query(self._query(sequence, head), self._first(head), self._scratch[sequence])
                for sequence in group for head in heads]

    def _cache(self, caches, group, kv_head):
        return self._order.cache(caches, group[0])[kv_head]

    def _project(self, number, kv_head, heads, early):
        self._builder.operation = "K and Q projection"
        self._projection.project("k", number)
        for head in heads:
            self._projection.project("q", self._first(head))
        if not self._projection.has_v:
            self._append_values(number, kv_head)
        if early:
            for sequence in range(len(self._sequences)):
                self._turn(sequence, number, kv_head, heads)

    def _project_values(self, number, kv_head):
        self._builder.operation = "V projection"
        self._projection.project("v", number)
        self._append_values(number, kv_head)

    def _append_values(self, number, kv_head):
        if not self._order.in_turn:
            for sequence in range(len(self._sequences)):
                self._value(sequence, number, kv_head)

    def _value(self, sequence, number, kv_head):
        self._builder.operation = "values"
        self._projection.value(number, sequence,
                               self._append(self._place.values, sequence, kv_head))

    def _append(self, caches, sequence, kv_head):
        cache = self._order.cache(caches, sequence)[kv_head]
        position = self._sequences[sequence].position
        return lambda chain, value, c: cache.append(chain, chain.alu("TO_INT8", value), c, position)

    def _turn(self, sequence, number, kv_head, heads):
        self._builder.operation = "keys and queries"
        self._projection.turned("k", number, sequence,
                                self._append(self._place.keys, sequence, kv_head))
        for head in heads:
            limbs = self._query(sequence, head)
            self._projection.turned(
                "q", self._first(head), sequence, lambda chain, value, c, limbs=limbs:
                write_limbs(chain, value, limbs[c]))

    def _score(self, group, number, kv_head, heads, early):
        if not early:
            for sequence in group:
                self._turn(sequence, number, kv_head, heads)
        score(self._builder, self._machine, f"tile {self._tile}", self._tile,
              self._queries(group, heads), self._cache(self._place.keys, group, kv_head))

    def _mix(self, group, number, kv_head, heads):
        if self._order.in_turn:
            for sequence in group:
                self._value(sequence, number, kv_head)
        self._builder.operation = "attention output"
        self._attended(group, heads, mix(
            self._builder, f"tile {self._tile} KV head {kv_head}", self._tile,
            [query.weights for query in self._queries(group, heads)],
            self._cache(self._place.values, group, kv_head), self._part.vectors))

    def _attended(self, group, heads, results):
        """16-bit results of heads from their sums, and to all others."""
        builder, tile, size = self._builder, self._tile, self._part.vectors
        every = self._place.vector("attended_gain")
        for (sequence, head), totals in zip(product(group, heads), results, strict=True):
            shared = self._sequences[sequence]
            builder.operation = "attention output"
            made = range(head * size, (head + 1) * size)
            first = self._first(head) * size
            for vector, total, gain in zip(made, totals, every[first:first + size], strict=True):
                chain = Chain(builder.cfg, f"tile {tile} attended {vector}", tile)
                write_limbs(chain, scaled(chain, total, gain),
                            shared.limbs(tile, "attended")[vector])
                builder.add(chain.cluster())
            builder.operation = "exchange attended"
            exchange(builder, self._machine, "attended limbs", tile,
                     shared.limb_places("attended", made), readers=self._part.readers)
