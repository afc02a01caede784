"""Attention of heads on one tile: caches, scores, mixing."""

from typing import NamedTuple

import numpy as np

from compiler.quantise.graph import ENTRIES

from ..lower.chain import At, Chain
from ..lower.layout import weight_slices
from ..lower.product import load_block
from .softmax import Softmax

__all__ = ["Cache", "Query", "add_values", "mix", "products", "score"]


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
    loops : bool
        Loops go through it.  Every block is then written near all MXMs, though one of them reads
        it: that spares the table of a queue the entry that the loops need.
    """

    def __init__(self, record, name, tile, key, vectors, rule, loops=False):
        cfg = record.cfg
        self._lanes = cfg.lanes
        self._rule = rule
        self._loops = loops
        self.count = rule.count
        self.block_words = rule.block(0, 1)
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
            dealt = 0 if self._loops else self._lanes
            mask = (3 | (self._rule.spread - 1) * dealt) << below | shards - 1
            held = [position.predicate(mask, (i + turn * dealt) << below | shard)
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
        As of `softmax.Softmax`.
    """

    limbs: list
    head: int
    scratch: dict

    @property
    def weights(self):
        """Its 16-bit attention weights, a list of (At, At) by block."""
        return self.scratch["limbs"][self.head]


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
        By query, what `softmax.Softmax.finish` says.
    """
    chunk = _chunk(builder.cfg, keys, len(queries))
    found = [Softmax(builder, machine, f"{name} head {query.head}", tile, query.scratch, query.head,
                     keys.count, chunk) for query in queries]
    kept = []
    for first in range(0, keys.count, chunk):
        blocks = range(first, min(first + chunk, keys.count))
        builder.operation = "scores"
        sums = {}
        for block in blocks:
            mxm = keys.mxm(0, block)
            sums[block] = [(mxm, builder.accumulator(tile, mxm)) for _ in queries]
            products(builder, name, tile, queries, keys, block, sums[block])
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


def products(builder, name, tile, queries, keys, block, sums, entries=None, kept=False):
    """Products of ``queries`` with one block of keys.

    Parameters
    ----------
    queries : list of Query
    sums : list of (str, int)
        MXM and accumulator, by query.
    entries : list of int, optional
        First of the activation buffer entries for each query: its vectors are ``kept`` there, or
        are put there on the way.
    """
    mxm = keys.mxm(0, block)
    for vector in range(len(queries[0].limbs)):
        load_block(builder, f"{name} K {vector},{block}", tile, mxm, keys.rows(vector, block),
                   columns=True)
        _multiply_heads(builder, f"{name} QK {vector},{block}", tile, mxm,
                        [total for _, total in sums], [query.limbs[vector] for query in queries],
                        vector == 0, entries and [entry + 2 * vector for entry in entries], kept)


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
            add_values(builder, name, tile, weights, values, vector, block, totals, block == 0)
        for h, total in enumerate(totals):
            results[h].append((mxm, total))
    return results


def add_values(builder, name, tile, weights, values, vector, block, totals, clear=False):
    """Add the products of one block to the sums of a vector, accumulators by head; ``clear``: they
    begin with it."""
    mxm = values.mxm(vector, 0)
    load_block(builder, f"{name} V {vector},{block}", tile, mxm, values.rows(vector, block))
    _multiply_heads(builder, f"{name} PV {vector},{block}", tile, mxm, totals,
                    [head[block] for head in weights], clear)


def _multiply_heads(builder, name, tile, mxm, totals, limbs, clear, entries=None, kept=False):
    """Multiply one vector of each head by the weights just loaded; ``entries``, ``kept``: as of
    `products`."""
    for h, total in enumerate(totals):
        for limb in range(2):
            chain = Chain(builder.cfg, f"{name} head {h}.{limb}", tile)
            flags = {"install": int(h == 0 and limb == 0), "high": limb,
                     "clear": int(clear and limb == 0)}
            if entries:
                flags |= {"activation": entries[h] + limb, "keep": int(not kept)}
            chain.multiply(None if kept else chain.read(limbs[h][limb]), mxm, total, **flags)
            builder.add(chain.cluster())
