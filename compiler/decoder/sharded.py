"""Attention of one layer on tiles that share the positions of their KV caches.

Every tile of the group projects some heads for all, scores and mixes all heads on its share of the
positions, and puts together some heads from the shares of all (``docs/numerics.md``, Shards).
"""

from functools import partial
from itertools import product

from ..lower.chain import Chain
from .attention import Query, mix, score
from .exchange import deliver, exchange, receive
from .groups import Group
from .pacing import MIX, PROJECT, SCORE, VALUES
from .projection import Projection
from .reductions import Fold
from .vectors import keep_factor, times, write_limbs

__all__ = ["ShardedHeads"]


class ShardedHeads:
    """The heads of a group of tiles.

    Parameters
    ----------
    builder, machine, part, sequences, norms
        As of `projection.Projection`.
    group : range
        The tiles.
    places : list of TileLayers
        Of all tiles.
    slots : int
        Of the KV caches, on each tile.
    rope, factors : list, dict
        As ``rope`` and ``factors`` of `Projection`, by tile; of those that project nothing, none.
    order : AttentionOrder
        None in which positions replace others within a step.
    """

    def __init__(self, builder, machine, part, group, places, sequences, slots, rope, norms,
                 factors, order):
        self._builder = builder
        self._machine = machine
        self._part = part
        self._group = group
        self._places = places
        self._sequences = sequences
        self._order = order
        self._scratch, self._projections = {}, {}
        for tile in group:
            for shared in sequences:
                scratch = shared.attention(tile, slots, part.shards)
                scratch["totals"] = [self._total(shared, tile, head)
                                     for head in part.group_heads(tile)]
                self._scratch[tile, shared] = scratch
            self._projections[tile] = Projection(builder, machine, part, places[tile], sequences,
                                                 rope[tile], norms, factors.get(tile))

    def jobs(self, pace, early):
        """As of `heads.Heads`; K and Q are finished as they are projected in any case."""
        found, keys, values, queries = [], {}, {}, {}
        for tile in self._group:
            mine = self._projections[tile]
            blocks = mine.blocks
            for number, head in enumerate(self._part.kv_heads(tile)):
                keys[head] = pace.job(tile, PROJECT, blocks, partial(self._key, tile, number, head))
                values[head] = keys[head]
                found.append(keys[head])
                if mine.has_v:
                    values[head] = pace.job(tile, VALUES, blocks,
                                            partial(self._value, tile, number, head))
                    found.append(values[head])
            for number, head in enumerate(self._part.heads(tile)):
                queries[head] = pace.job(tile, PROJECT, blocks,
                                         partial(self._query, tile, number, head))
                found.append(queries[head])
        makes = {}
        for sequences in self._together():
            mixed = {head: [] for head in queries}
            for tile in self._group:
                for kv_head, heads in self._part.cached(tile).items():
                    slots = self._part.vectors * self._places[tile].keys[0][kv_head].count
                    before = [keys[kv_head], *(queries[head] for head in heads)]
                    scores = pace.job(
                        tile, SCORE, slots, partial(self._score, sequences, tile, kv_head, heads),
                        self._arrivals(before, tile, pace.chain(8, 1)))
                    mixing = pace.job(
                        tile, MIX, slots, partial(self._mix, sequences, tile, kv_head, heads),
                        [(scores, pace.chain(8, 1)),
                         *self._arrivals([values[kv_head]], tile, pace.chain(6, 1))])
                    found += [scores, mixing]
                    for head in heads:
                        mixed[head].append((scores, mixing))
            for shared in sequences:
                for vector, merged in self._merging(shared, mixed, pace, found).items():
                    makes.setdefault(vector, []).append(merged)
        return found, makes

    def groups(self):
        """As of `heads.Heads`."""
        return [Group(tile, f"tile {tile} KV head {kv_head}",
                      self._queries(sequences, tile, heads),
                      self._cache("keys", sequences, tile, kv_head),
                      self._cache("values", sequences, tile, kv_head),
                      partial(self._send_totals, sequences, tile, heads),
                      partial(self._send_parts, sequences, tile, heads))
                for sequences in self._together() for tile in self._group
                for kv_head, heads in self._part.cached(tile).items()]

    def _together(self):
        """Sequences that attend together, each list of `SequencePlaces`."""
        return [[self._sequences[number] for number in group] for group in self._order.groups]

    def between(self):
        """Shares of all heads, once all sums of weights are there."""
        self._merged(self._shares)

    def behind(self):
        """All heads from the shares of all tiles, once these are there."""
        self._merged(self._merge)

    def _merged(self, make):
        for shared in self._sequences:
            for tile in self._group:
                for head in self._part.heads(tile):
                    make(shared, tile, head)

    def _merging(self, shared, mixed, pace, found):
        """Jobs that put heads together, added to ``found``; by vector, the one that makes it."""
        makes = {}
        for tile in self._group:
            for head in self._part.heads(tile):
                scores, mixing = zip(*mixed[head], strict=True)
                shares = pace.job(tile, MIX, 0, partial(self._shares, shared, tile, head),
                                  self._arrivals(scores, tile, pace.chain(6, 1)))
                merged = pace.job(tile, MIX, 0, partial(self._merge, shared, tile, head),
                                  [(shares, 0), *self._arrivals(mixing, tile, pace.chain(1))])
                found += [shares, merged]
                size = self._part.vectors
                makes |= dict.fromkeys(range(head * size, (head + 1) * size), merged)
        return makes

    def _arrivals(self, jobs, tile, cycles):
        """What ``tile`` waits for: jobs, and cycles behind their ends."""
        return [(job, cycles + self._machine.away(job.tile, tile)) for job in jobs]

    def _first(self, head):
        """``head`` among those of the group."""
        return head - self._part.group_heads(self._group.start).start

    def _owner(self, head):
        return next(tile for tile in self._group if head in self._part.heads(tile))

    def _merging_word(self, shared, tile, head, other, name, vector=0):
        """On the tile that merges ``head``: a word for what tile ``other`` has of it."""
        size = self._part.vectors
        number = head - self._part.heads(tile).start
        word = (number * self._part.shards + other - self._group.start) * size + vector
        return shared.merging(tile)[name][word]

    def _total(self, shared, tile, head):
        """Where ``tile`` puts the sum of its weights of ``head``."""
        owner = self._owner(head)
        return self._merging_word(shared, tile, head, tile, "totals") if tile == owner else \
            shared.merging(tile)["own totals"][self._first(head)]

    def _limbs(self, shared, tile, head):
        """16-bit Q of a head on ``tile``: a list of (At, At)."""
        size, first = self._part.vectors, self._first(head)
        return shared.limbs(tile, "query")[first * size:(first + 1) * size]

    def _queries(self, sequences, tile, heads):
        """Those of ``sequences`` on ``tile``, a list of Query."""
        return [Query(self._limbs(shared, tile, head), self._first(head),
                      self._scratch[tile, shared])
                for shared, head in product(sequences, heads)]

    def _cache(self, name, sequences, tile, kv_head):
        caches = getattr(self._places[tile], name)
        return self._order.cache(caches, sequences[0].number)[kv_head]

    def _key(self, tile, number, head):
        mine = self._projections[tile]
        self._builder.operation = "K projection"
        mine.project("k", number)
        self._builder.operation = "keys and queries"
        self._append(partial(mine.turned, "k", number), tile, "keys", head)
        if not mine.has_v:
            self._builder.operation = "values"
            self._append(partial(mine.value, number), tile, "values", head)

    def _value(self, tile, number, head):
        mine = self._projections[tile]
        self._builder.operation = "V projection"
        mine.project("v", number)
        self._builder.operation = "values"
        self._append(partial(mine.value, number), tile, "values", head)

    def _append(self, make, tile, name, head):
        """Vectors of ``make(sequence, finish)`` into the slot of the step, on the tile that has it:
        they are sent to all as they are made."""
        for sequence, shared in enumerate(self._sequences):
            caches = {other: self._order.cache(getattr(self._places[other], name), sequence)[head]
                      for other in self._group}
            others = [other for other in self._group
                      if other != tile and caches[other].takes(shared.position)]
            ports = self._machine.ports(tile, others)

            def finish(chain, value, c, caches=caches, ports=ports, position=shared.position):
                value = chain.alu("TO_INT8", value)
                caches[tile].append(chain, value, c, position)
                if ports:
                    chain.send(value, ports)

            make(sequence, finish)
            for c in range(self._part.vectors):
                receive(self._builder, self._machine, f"{name} {head}.{c}", tile, 1,
                        {other: partial(self._keep, caches[other], c, shared.position)
                         for other in others})

    @staticmethod
    def _keep(cache, c, position, chain, value):
        cache.append(chain, value, c, position)

    def _query(self, tile, number, head):
        self._builder.operation = "Q projection"
        self._projections[tile].project("q", number)
        for shared in self._sequences:
            limbs = self._limbs(shared, tile, head)
            self._builder.operation = "keys and queries"
            self._projections[tile].turned(
                "q", number, shared.number, lambda chain, value, c, limbs=limbs:
                write_limbs(chain, value, limbs[c]))
            self._builder.operation = "exchange queries"
            for c, pair in enumerate(limbs):
                for limb, source in enumerate(pair):
                    deliver(self._builder, self._machine, f"Q {head}.{c}.{limb}", tile, source,
                            {other: self._limbs(shared, other, head)[c][limb]
                             for other in self._group if other != tile})

    def _score(self, sequences, tile, kv_head, heads):
        totals = score(self._builder, self._machine, f"tile {tile}", tile,
                       self._queries(sequences, tile, heads),
                       self._cache("keys", sequences, tile, kv_head))
        self._send_totals(sequences, tile, heads, totals)

    def _send_totals(self, sequences, tile, heads, totals):
        """Sums of the weights that a tile has, by query, to those that merge the heads."""
        self._builder.operation = "exchange totals"
        for (shared, head), total in zip(product(sequences, heads), totals, strict=True):
            owner = self._owner(head)
            deliver(self._builder, self._machine, f"total of {head}", tile, total,
                    {owner: self._merging_word(shared, owner, head, tile, "totals")})

    def _shares(self, shared, tile, head):
        """Which share of all weights of ``head`` every tile has."""
        builder, machine = self._builder, self._machine
        builder.operation = "shares"
        name = f"tile {tile} head {head} share"
        fold = Fold(builder, machine, name, tile)
        totals, shares = ([self._merging_word(shared, tile, head, other, what)
                           for other in self._group] for what in ("totals", "shares"))
        for total in totals:
            chain = Chain(builder.cfg, name, tile)
            fold.add(chain, chain.read(total))
            builder.add(chain.cluster())
        factor = keep_factor(builder, machine, tile, *fold.total(), "RECIP")
        for total, share in zip(totals, shares, strict=True):
            chain = Chain(builder.cfg, name, tile)
            chain.write(times(chain, chain.read(total), factor), share)
            builder.add(chain.cluster())

    def _mix(self, sequences, tile, kv_head, heads):
        self._builder.operation = "attention output"
        self._send_parts(sequences, tile, heads, mix(
            self._builder, f"tile {tile} KV head {kv_head}", tile,
            [query.weights for query in self._queries(sequences, tile, heads)],
            self._cache("values", sequences, tile, kv_head), self._part.vectors))

    def _send_parts(self, sequences, tile, heads, results):
        """What a tile has of heads, to those that merge them."""
        builder = self._builder
        for (shared, head), sums in zip(product(sequences, heads), results, strict=True):
            owner = self._owner(head)
            builder.operation = "exchange shares"
            for c, source in enumerate(sums):
                at = self._merging_word(shared, owner, head, tile, "parts", c)
                if owner == tile:
                    chain = Chain(builder.cfg, f"tile {tile} part of {head}.{c}", tile)
                    chain.write(chain.acc(*source), at)
                    builder.add(chain.cluster())
                else:
                    deliver(builder, self._machine, f"part of {head}.{c}", tile, source,
                            {owner: at})

    def _merge(self, shared, tile, head):
        """A head from what all tiles have of it, and to all others."""
        builder, machine, size = self._builder, self._machine, self._part.vectors
        first = (head - self._part.heads(tile).start) * size
        gains = self._places[tile].vector("attended_gain")[first:first + size]
        made = range(head * size, (head + 1) * size)
        for c, (vector, gain) in enumerate(zip(made, gains, strict=True)):
            builder.operation = "merge"
            fold = Fold(builder, machine, f"tile {tile} attended {vector}", tile)
            for other in self._group:
                chain = Chain(builder.cfg, f"tile {tile} attended {vector} of {other}", tile)
                fold.add(chain, chain.alu(
                    "MUL", chain.read(self._merging_word(shared, tile, head, other, "parts", c)),
                    chain.read(self._merging_word(shared, tile, head, other, "shares"))))
                builder.add(chain.cluster())
            chain, value = fold.total()
            write_limbs(chain, chain.alu("MUL", value, chain.read(gain)),
                        shared.limbs(tile, "attended")[vector])
            builder.add(chain.cluster())
        builder.operation = "exchange attended"
        exchange(builder, machine, "attended limbs", tile,
                 shared.limb_places("attended", made), readers=self._part.readers)
