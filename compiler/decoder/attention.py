"""Attention of one layer on the heads of one tile."""

from ..lower.chain import Chain, Entry
from ..lower.product import load_block
from ..plan import Term
from .vectors import OrderedSum, keep_factor, ordered_sum, write_limbs

__all__ = ["Cache", "append_key", "append_value", "attend", "cache_rows", "inverse_rms",
           "write_query"]

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
    eps : At

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
        squares.append(chain.alu("ADD", value, chain.read(eps)) if c == 0 else value)
    return keep_factor(builder, machine, tile, chain, ordered_sum(chain, squares), "RSQRT")


def scaled(chain, total, gain):
    """fp32 value of a sum times a gain."""
    return chain.alu("MUL", chain.acc(*total), chain.read(gain))


def rotated(chain, cfg, sums, gain, rope, c):
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
    else:
        swapped = chain.move("ROTATE", scaled(chain, sums[0], gain[0]), cfg.slices("sxm")[0],
                             cfg.lanes // 2)
    swapped = chain.alu("MUL", swapped, chain.read(rope["sin"][c]))
    straight = chain.alu("MUL", scaled(chain, sums[c], gain[c]), chain.read(rope["cos"][c]))
    return chain.alu("ADD", straight, swapped)


def write_query(builder, name, tile, sums, gain, rope, factor, limbs):
    """16-bit query of one head into ``limbs``, a list of (At, At)."""
    for c in range(len(sums)):
        chain = Chain(builder.cfg, f"{name} rotate {c}", tile)
        value = rotated(chain, builder.cfg, sums, gain, rope, c)
        write_limbs(chain, chain.alu("MUL", value, Entry(factor[1]), on=factor[0]), limbs[c])
        builder.add(chain.cluster())


def append_key(builder, name, tile, sums, gain, rope, factor, cache):
    """int8 key of one head into the slot of the step."""
    for c in range(len(sums)):
        chain = Chain(builder.cfg, f"{name} rotate {c}", tile)
        value = rotated(chain, builder.cfg, sums, gain, rope, c)
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


def attend(builder, machine, name, tile, heads, keys, values, scratch):
    """Attention of the query heads that share one KV head.

    Parameters
    ----------
    heads : list of list of (At, At)
        16-bit queries by head and vector.
    keys, values : Cache
    scratch : dict
        ``limit`` (list of At by block of slots), ``weights`` (by head: list of At, fp32 scratch),
        ``limbs`` (by head: list of (At, At)), ``scale`` (float).

    Returns
    -------
    list of list of (str, int)
        MXM and accumulator of each vector of the result, by head.
    """
    lanes = builder.cfg.lanes
    blocks = max(1, keys.slots // lanes)
    vectors = len(heads[0])
    scores = _scores(builder, name, tile, heads, keys, blocks, vectors)
    for h, sums in enumerate(scores):
        _softmax(builder, machine, f"{name} head {h}", tile, sums, scratch, h)
    results = [[] for _ in heads]
    mxms = builder.cfg.slices("mxm")
    for vector in range(vectors):
        mxm = mxms[builder.next_unit(tile, len(mxms))]
        totals = [builder.accumulator(tile, mxm) for _ in heads]
        for block in range(blocks):
            load_block(builder, f"{name} V {vector},{block}", tile, mxm,
                       values.rows(vector, block, lanes))
            for h, total in enumerate(totals):
                for limb in range(2):
                    chain = Chain(builder.cfg, f"{name} PV {h},{vector},{block}.{limb}", tile)
                    chain.multiply(chain.read(scratch["limbs"][h][block][limb]), mxm, total,
                                   install=int(h == 0 and limb == 0), high=limb,
                                   clear=int(block == 0 and limb == 0))
                    builder.add(chain.cluster())
        for h, total in enumerate(totals):
            results[h].append((mxm, total))
    return results


def _scores(builder, name, tile, heads, keys, blocks, vectors):
    """Products of queries and keys: (MXM, accumulator) by head and block of slots."""
    lanes = builder.cfg.lanes
    mxms = builder.cfg.slices("mxm")
    scores = [[] for _ in heads]
    for block in range(blocks):
        mxm = mxms[block % len(mxms)]
        totals = [builder.accumulator(tile, mxm) for _ in heads]
        for vector in range(vectors):
            load_block(builder, f"{name} K {vector},{block}", tile, mxm,
                       keys.rows(vector, block, lanes), columns=True)
            for h, total in enumerate(totals):
                for limb in range(2):
                    chain = Chain(builder.cfg, f"{name} QK {h},{vector},{block}.{limb}", tile)
                    chain.multiply(chain.read(heads[h][vector][limb]), mxm, total,
                                   install=int(h == 0 and limb == 0), high=limb,
                                   clear=int(vector == 0 and limb == 0))
                    builder.add(chain.cluster())
        for h, total in enumerate(totals):
            scores[h].append((mxm, total))
    return scores


def _softmax(builder, machine, name, tile, sums, scratch, head):
    """16-bit attention weights of one head from its scores."""
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
