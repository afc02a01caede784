"""Attention of heads on one tile: caches, scores, softmax, mixing."""

from typing import NamedTuple

import numpy as np

from compiler.quantise.graph import ENTRIES

from ..lower.chain import At, Chain, Entry
from ..lower.layout import weight_slices
from ..lower.product import load_block
from .reductions import OrderedSum
from .vectors import write_limbs

__all__ = ["Cache", "Query", "Softmax", "mix", "score"]

#: What the 16-bit attention weights are fractions of (docs/numerics.md).
_WEIGHT_UNIT = 32639.0


class Cache:
    """int8 keys or values of one KV head, near the MXMs that load them; see `slots.Slots`.

    Parameters
    ----------
    record : Record
    name : str
    tile : int
    key : hashable
        Under which accesses are ordered.
    vectors : int
    rule : slots.Slots
        Which word holds what.
    """

    def __init__(self, record, name, tile, key, vectors, rule):
        cfg = record.cfg
        self._lanes = cfg.lanes
        self._rule = rule
        self.count = rule.count
        words = vectors * rule.words
        empty = np.zeros((4, record.layers, words, cfg.lanes), np.uint8)
        homes, self._places = {}, {}
        for mxm in dict.fromkeys(self.mxm(vector, block) for vector in range(vectors)
                                 for block in range(self.count)):
            home = weight_slices(cfg, mxm)
            if home not in homes:
                homes[home] = record.add(f"{name}.{mxm}", tile, home, words, empty,
                                         key=(*key, mxm))
            self._places[mxm] = homes[home]

    def mxm(self, vector, block):
        """The MXM that loads a block."""
        return self._rule.mxm(vector, block)

    def rows(self, vector, block):
        """First words of a block, in its four slices."""
        return self._places[self.mxm(vector, block)].at(self._rule.block(vector, block))

    def append(self, chain, value, vector, position):
        """Write a one-stream value into the slot of a `StepPosition`, where the tile has that: what
        `Slots.place` says, in terms of the step."""
        shard, shards = self._rule.shard
        below = (shards - 1).bit_length()       # bits of the position below those of the slot
        word, terms = position.field(below + 2, self._rule.slots // 4 - 1, 1)
        for turn in range(self._rule.spread):
            at = self._places[self.mxm(vector, turn)].at(self._rule.block(vector, 0))
            # slot % 4, and which of the MXMs has the block
            mask = (3 | (self._rule.spread - 1) * self._lanes) << below | shards - 1
            held = [position.predicate(mask, (i + turn * self._lanes) << below | shard)
                    for i in range(4)]
            mine = [i for i, predicate in enumerate(held) if predicate is not False]
            if mine:
                chain.write(value, At(tuple(at.slices[i] for i in mine), at.address + word,
                                      (*at.terms, *terms), at.key), [held[i] for i in mine])

    def takes(self, position):
        """Whether the tile has the slot of a `StepPosition` in any step."""
        shard, shards = self._rule.shard
        return position.predicate(shards - 1, shard) is not False


class Query(NamedTuple):
    """One head of one sequence.

    Attributes
    ----------
    limbs : list of (At, At)
        16-bit vectors.
    head : int
        Which of the tile's heads.
    scratch : dict
        As of `Softmax`.
    """

    limbs: list
    head: int
    scratch: dict


def score(builder, machine, name, tile, queries, keys):
    """16-bit attention weights of the queries that share one KV head, from its keys.

    Scores go through their chain some blocks at a time, as accumulators are few.

    Parameters
    ----------
    queries : list of Query
    keys : Cache

    Returns
    -------
    list of At or None
        By query, what `Softmax.finish` says.
    """
    chunk = _chunk(builder.cfg, keys, len(queries))
    found = [Softmax(builder, machine, f"{name} head {query.head}", tile, query.scratch, query.head,
                     keys.count, chunk) for query in queries]
    kept = []
    for first in range(0, keys.count, chunk):
        blocks = range(first, min(first + chunk, keys.count))
        builder.operation = "scores"
        sums = {block: _scores(builder, name, tile, [query.limbs for query in queries], keys, block)
                for block in blocks}
        builder.operation = "softmax"
        for number, softmax in enumerate(found):
            for block in blocks:
                softmax.add(block, sums[block][number])
            if blocks.stop == keys.count:
                kept.append(softmax.finish())
    return kept


def _chunk(cfg, keys, heads):
    """Blocks of scores at a time, a power of two: half of the accumulators hold them."""
    mxms = len({keys.mxm(0, block) for block in range(keys.count)})
    room = cfg.accumulators // 2 * mxms // heads
    return max(ENTRIES, 1 << room.bit_length() >> 1)


def _scores(builder, name, tile, heads, keys, block):
    """Products of the queries with one block of keys: MXM and accumulator, by query."""
    mxm = keys.mxm(0, block)
    totals = [builder.accumulator(tile, mxm) for _ in heads]
    for vector in range(len(heads[0])):
        load_block(builder, f"{name} K {vector},{block}", tile, mxm, keys.rows(vector, block),
                   columns=True)
        _multiply_heads(builder, f"{name} QK {vector},{block}", tile, mxm, totals,
                        [head[vector] for head in heads], vector == 0)
    return [(mxm, total) for total in totals]


def mix(builder, name, tile, weights, values, vectors):
    """Products of attention weights with the values of one KV head.

    Parameters
    ----------
    weights : list of list of (At, At)
        16-bit weights by head and block of slots.
    values : Cache
    vectors : int
        Vectors of a head.

    Returns
    -------
    list of list of (str, int)
        MXM and accumulator by head and vector.
    """
    results = [[] for _ in weights]
    for vector in range(vectors):
        mxm = values.mxm(vector, 0)
        totals = [builder.accumulator(tile, mxm) for _ in weights]
        for block in range(values.count):
            load_block(builder, f"{name} V {vector},{block}", tile, mxm,
                       values.rows(vector, block))
            _multiply_heads(builder, f"{name} PV {vector},{block}", tile, mxm, totals,
                            [head[block] for head in weights], block == 0)
        for h, total in enumerate(totals):
            results[h].append((mxm, total))
    return results


def _multiply_heads(builder, name, tile, mxm, totals, limbs, clear):
    """Multiply one vector of each head by the weights just loaded."""
    for h, total in enumerate(totals):
        for limb in range(2):
            chain = Chain(builder.cfg, f"{name} head {h}.{limb}", tile)
            chain.multiply(chain.read(limbs[h][limb]), mxm, total,
                           install=int(h == 0 and limb == 0), high=limb,
                           clear=int(clear and limb == 0))
            builder.add(chain.cluster())


class Softmax:
    """16-bit attention weights of one head from its scores, block by block.

    Parameters
    ----------
    scratch : dict
        ``limit`` (list of At by block); by head: ``weights`` (list of At, for fp32), ``limbs``
        (list of (At, At), the result), ``partials`` (list of At) and, if the sum of all weights is
        to be kept, ``totals`` (At); ``scale`` (float).
    head : int
        Which of the tile's heads.
    blocks : int
    chunk : int
        Blocks after which another head may use the entries of the sum.
    """

    def __init__(self, builder, machine, name, tile, scratch, head, blocks, chunk):
        self._builder = builder
        self._machine = machine
        self._name = name
        self._tile = tile
        self._scratch = scratch
        self._head = head
        spill = (chunk, blocks, scratch["partials"][head]) if chunk < blocks else None
        self._total = OrderedSum(builder, machine, name, tile, spill=spill)

    def add(self, block, score):
        """Take the score of the next block: MXM and accumulator."""
        chain = Chain(self._builder.cfg, f"{self._name} exp {block}", self._tile)
        value = chain.alu("MUL", chain.acc(*score), self._scratch["scale"])
        value = chain.alu("MIN", value, chain.read(self._scratch["limit"][block]))
        value = chain.alu("EXP2", value)
        chain.write(value, self._scratch["weights"][self._head][block])
        self._total.add(chain, value)
        self._builder.add(chain.cluster())

    def finish(self):
        """Divide by the sum; returns where that is kept, if it is."""
        kept = self._scratch["totals"][self._head] if "totals" in self._scratch else None
        chain, value = self._total.total()
        if kept:
            chain.write(value, kept)
        alu, entry = self._machine.factor(self._tile)
        chain.alu("MUL", chain.alu("RECIP", value), _WEIGHT_UNIT, on=alu, keep=entry)
        self._builder.add(chain.cluster())
        weights = zip(self._scratch["weights"][self._head], self._scratch["limbs"][self._head],
                      strict=True)
        for block, (weight, limbs) in enumerate(weights):
            chain = Chain(self._builder.cfg, f"{self._name} weight {block}", self._tile)
            write_limbs(chain, chain.alu("MUL", chain.read(weight), Entry(entry), on=alu), limbs)
            self._builder.add(chain.cluster())
        return kept
