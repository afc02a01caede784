"""Attention of one layer on the heads of one tile."""

from ..lower.chain import Chain, Entry
from ..lower.product import load_block
from ..plan import Term
from .vectors import OrderedSum, keep_factor, ordered_sum, write_limbs

__all__ = ["Cache", "append_key", "append_value", "cache_rows", "inverse_rms", "mix", "scaled",
           "score", "softmax", "write_query"]

#: What the 16-bit attention weights are fractions of (docs/numerics.md).
_WEIGHT_UNIT = 32639.0


class Cache:
    """int8 keys or values of one KV head: slot ``s`` lies in slice ``s % 4``, word ``s // 4`` of
    each of the head's vectors (``lanes`` elements of the head each).

    Parameters
    ----------
    place : Place
        Four slices, ``vectors * slots / 4`` words.
    slots : int
        A power of two, at least 4 and at least the lanes.
    """

    def __init__(self, place, slots):
        self.place = place
        self.slots = slots

    def blocks(self, lanes):
        """Blocks of ``lanes`` slots, the last one perhaps not full."""
        return max(1, self.slots // lanes)

    def rows(self, vector, block, lanes):
        """First word of slots ``block * lanes ...`` of a vector, in all four slices."""
        return self.place.at(vector * (self.slots // 4) + block * (lanes // 4))

    def append(self, chain, value, vector):
        """Write a one-stream value into the slot of the step."""
        at = self.place.at(vector * (self.slots // 4))
        words = self.slots // 4
        if words > 1:
            step = Term(0, 2, words - 1, 1)
            at = type(at)(at.slices, at.address, (*at.terms, step), at.key)
        chain.write(value, at, [Term(0, 0, 3, i) for i in range(4)])


def cache_rows(slots, lanes):
    """Words of one vector of a cache in each of its four slices; at least one block."""
    return max(slots, lanes) // 4


def inverse_rms(builder, machine, name, tile, sums, scale, eps):
    """The inverse RMS of one head.

    Parameters
    ----------
    sums : list of (str, int)
        MXM and accumulator of each vector of the head.
    scale : list of At
    eps : At or None

    Returns
    -------
    (int, int)
        ALU and entry that keep it.
    """
    chain = Chain(builder.cfg, f"{name} norm", tile)
    squares = []
    for c, (total, weight) in enumerate(zip(sums, scale, strict=True)):
        value = chain.alu("MUL", chain.acc(*total), chain.read(weight))
        value = chain.alu("MUL", value, value)
        if c == 0 and eps is not None:
            value = chain.alu("ADD", value, chain.read(eps))
        elif c == 0 and len(sums) > 1:
            value = chain.alu("PASS", value)        # the vectors' scales are read in turn
        squares.append(value)
    return keep_factor(builder, machine, tile, chain, ordered_sum(chain, squares), "RSQRT")


def scaled(chain, total, gain):
    """fp32 value of a sum times a gain."""
    return chain.alu("MUL", chain.acc(*total), chain.read(gain))


def rotated(chain, machine, tile, sums, gain, rope, c):
    """Vector ``c`` of a head, turned by the step's angles.

    Parameters
    ----------
    rope : dict
        ``cos`` and ``sin``: lists of At, one for each vector of the head.
    """
    half = len(sums) // 2
    if half:
        other = (c + half) % len(sums)
        swapped = chain.alu("PASS", scaled(chain, sums[other], gain[other]))    # read in turn
        straight = chain.alu("MUL", scaled(chain, sums[c], gain[c]), chain.read(rope["cos"][c]))
    else:
        alu, entry = machine.factor(tile)
        value = chain.alu("MUL", chain.acc(*sums[0]), chain.read(gain[0]), on=alu, keep=entry)
        swapped = chain.move("ROTATE", value, machine.cfg.slices("sxm")[0], machine.cfg.lanes // 2)
        straight = chain.alu("MUL", chain.read(rope["cos"][0]), Entry(entry), on=alu)
    swapped = chain.alu("MUL", swapped, chain.read(rope["sin"][c]))
    return chain.alu("ADD", straight, swapped)


def write_query(builder, machine, name, tile, sums, gain, rope, factor, limbs):
    """16-bit query of one head into ``limbs``, a list of (At, At)."""
    for c in range(len(sums)):
        chain = Chain(builder.cfg, f"{name} rotate {c}", tile)
        value = rotated(chain, machine, tile, sums, gain, rope, c)
        write_limbs(chain, chain.alu("MUL", value, Entry(factor[1]), on=factor[0]), limbs[c])
        builder.add(chain.cluster())


def append_key(builder, machine, name, tile, sums, gain, rope, factor, cache):
    """int8 key of one head into the slot of the step."""
    for c in range(len(sums)):
        chain = Chain(builder.cfg, f"{name} rotate {c}", tile)
        value = rotated(chain, machine, tile, sums, gain, rope, c)
        value = chain.alu("MUL", value, Entry(factor[1]), on=factor[0])
        cache.append(chain, chain.alu("TO_INT8", value), c)
        builder.add(chain.cluster())


def append_value(builder, name, tile, sums, gain, factor, cache):
    """int8 value of one head into the slot of the step."""
    for c, total in enumerate(sums):
        chain = Chain(builder.cfg, f"{name} value {c}", tile)
        value = chain.alu("MUL", scaled(chain, total, gain[c]), Entry(factor[1]), on=factor[0])
        cache.append(chain, chain.alu("TO_INT8", value), c)
        builder.add(chain.cluster())


def score(builder, name, tile, heads, keys):
    """Products of the queries that share one KV head with its keys.

    Parameters
    ----------
    heads : list of list of (At, At)
        16-bit queries by head and vector.
    keys : Cache

    Returns
    -------
    list of list of (str, int)
        MXM and accumulator by head and block of slots.
    """
    lanes = builder.cfg.lanes
    mxms = builder.cfg.slices("mxm")
    scores = [[] for _ in heads]
    for block in range(keys.blocks(lanes)):
        mxm = mxms[builder.next_unit(tile, len(mxms))]
        totals = [builder.accumulator(tile, mxm) for _ in heads]
        for vector in range(len(heads[0])):
            load_block(builder, f"{name} K {vector},{block}", tile, mxm,
                       keys.rows(vector, block, lanes), columns=True)
            _multiply_heads(builder, f"{name} QK {vector},{block}", tile, mxm, totals,
                            [head[vector] for head in heads], vector == 0)
        for h, total in enumerate(totals):
            scores[h].append((mxm, total))
    return scores


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
    lanes = builder.cfg.lanes
    mxms = builder.cfg.slices("mxm")
    results = [[] for _ in weights]
    for vector in range(vectors):
        mxm = mxms[builder.next_unit(tile, len(mxms))]
        totals = [builder.accumulator(tile, mxm) for _ in weights]
        for block in range(values.blocks(lanes)):
            load_block(builder, f"{name} V {vector},{block}", tile, mxm,
                       values.rows(vector, block, lanes))
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


def softmax(builder, machine, name, tile, sums, scratch, head):
    """16-bit attention weights of one head from its scores.

    Parameters
    ----------
    sums : list of (str, int)
        MXM and accumulator by block of slots.
    scratch : dict
        ``limit`` (list of At by block), ``weights`` (by head: list of At, for fp32), ``limbs`` (by
        head: list of (At, At), the result), ``scale`` (float).
    head : int
        Which of the tile's heads.
    """
    total = OrderedSum(builder, machine, name, tile)
    for block, score in enumerate(sums):
        chain = Chain(builder.cfg, f"{name} exp {block}", tile)
        value = chain.alu("MUL", chain.acc(*score), scratch["scale"])
        value = chain.alu("MIN", value, chain.read(scratch["limit"][block]))
        value = chain.alu("EXP2", value)
        chain.write(value, scratch["weights"][head][block])
        total.add(chain, value)
        builder.add(chain.cluster())
    chain, value = total.total()
    alu, entry = machine.factor(tile)
    chain.alu("MUL", chain.alu("RECIP", value), _WEIGHT_UNIT, on=alu, keep=entry)
    builder.add(chain.cluster())
    for block in range(len(sums)):
        chain = Chain(builder.cfg, f"{name} weight {block}", tile)
        value = chain.alu("MUL", chain.read(scratch["weights"][head][block]), Entry(entry), on=alu)
        write_limbs(chain, value, scratch["limbs"][head][block])
        builder.add(chain.cluster())
