"""What all layers share on a tile: residual streams, buffers, score limits."""

from itertools import product
from math import gcd

import numpy as np

from compiler.quantise.graph import ENTRIES, SCORE_CAP, SCORE_HIDDEN

from ..lower.chain import STEP, Chain
from ..plan import Term
from .part import Part

__all__ = ["SequencePlaces", "SharedPlaces", "of_sequence"]

#: Blocks of slots whose limits one iteration of a loop makes.
_CHUNK = 8


def of_sequence(name, sequence):
    """Name of what belongs to one of several sequences; the first has the plain name."""
    return f"{name} {sequence}" if sequence else name


class SharedPlaces:
    """Places outside of the layers.

    Parameters
    ----------
    machine : Machine
    record, context : Record
        Of one layer, for what does not depend on the context and for what does; the caller closes
        both.
    sizes : dict of str to int
        Elements of ``hidden``, ``attended``, ``query`` and ``gated`` on a tile.
    caches : iterable of (int, int)
        Slots on a tile, and shares of the positions, of the KV caches that occur.
    parts : list of Partition
        Of all layers.
    score_scale : float
    positions : list of StepPosition
        By sequence.
    unrolled : int
        Blocks of a cache that are gone through without a loop.

    Attributes
    ----------
    sequences : list of SequencePlaces
    """

    def __init__(self, machine, record, context, sizes, caches, parts, score_scale, positions,
                 unrolled):
        self._machine = machine
        self._cfg = machine.cfg
        self._positions = list(dict.fromkeys(positions))
        self._unrolled = unrolled
        self._limits = [self._place_limits(context, tile, caches)
                        for tile in range(machine.system.tiles)]
        self.sequences = [SequencePlaces(machine, record, context, sizes, caches, parts,
                                         score_scale, self._limits, number, position,
                                         self.loops)
                          for number, position in enumerate(positions)]

    def _place_limits(self, context, tile, caches):
        found, turn = {}, self._machine.turn
        for count, shards in caches:
            blocks = -(-count // self._cfg.lanes)
            numbers = np.arange(blocks * self._cfg.lanes, dtype=np.float32)
            numbers = numbers * shards + tile % shards
            # A slot that the cache does not have is never visible.
            numbers[count:] = np.inf
            size = f"{count} of {shards}"
            for position in self._positions:
                # the first step whose position is behind the slot's, or is it
                steps = np.ceil((numbers - position.number) / 2**position.bits)
                found["steps", count, shards, position] = context.vector(
                    of_sequence(f"slot steps {size}", position.number), tile,
                    turn(tile, "scratch"), steps[None])
                # loops read them for every head: half of these from elsewhere
                found["limits", count, shards, position] = [
                    context.add(of_sequence(f"limits {size}", position.number) + ".1" * copy, tile,
                                turn(tile, "scratch"), blocks)
                    for copy in range(1 + self.loops(count))]
        return found

    def emit_limits(self, builder, slots, shards):
        """Per step: what the score of each slot is cut at, as a query sees its position or not.

        ``(first step <= step ? 1 : 0) * (cap - hidden) + hidden``, exact in fp32.
        """
        self._emit_limits(builder, slots, shards, range(-(-slots // self._cfg.lanes)))

    def emit_limits_in_loop(self, builder, slots, shards, level):
        """The same as a loop of ``level``; returns its `Part`."""
        blocks = -(-slots // self._cfg.lanes)
        chunk = min(gcd(blocks, _CHUNK), blocks // 2)
        term, marks = Term.counting(level, blocks // chunk, chunk), [len(builder.clusters)]
        for turn in range(2):
            self._emit_limits(builder, slots, shards, range(turn * chunk, (turn + 1) * chunk),
                              term)
            marks.append(len(builder.clusters))
        first, second, last = marks
        return Part(first, last, second, blocks // chunk, level)

    def loops(self, slots):
        """Whether caches of so many slots are gone through in loops."""
        return slots > self._unrolled * self._cfg.lanes

    def _emit_limits(self, builder, slots, shards, blocks, term=None):
        for tile, mine in enumerate(self._limits):
            for position, block in product(self._positions, blocks):
                first, *limits = (place.at(block) if term is None else place.at(block).moving(term)
                                  for place in (mine["steps", slots, shards, position],
                                                *mine["limits", slots, shards, position]))
                chain = Chain(self._cfg, f"tile {tile} limit {slots}", tile)
                step = chain.alu("FROM_INT32", STEP)
                seen = chain.alu("CMP_LE", chain.read(first), step)
                value = chain.alu("MUL", seen, float(SCORE_CAP - SCORE_HIDDEN))
                value = chain.alu("ADD", value, float(SCORE_HIDDEN))
                for limit in limits:
                    chain.write(value, limit)
                builder.add(chain.cluster())


class SequencePlaces:
    """Those of one sequence.

    Parameters
    ----------
    machine, record, context, sizes, caches, parts, score_scale
        As of `SharedPlaces`.
    limits : list of dict
        What scores are cut at, by tile.
    number : int
    position : StepPosition
    loops : callable
        Whether caches of so many slots are gone through in loops.

    Attributes
    ----------
    number : int
        Which sequence.
    position : StepPosition
        Its position in every step.
    """

    def __init__(self, machine, record, context, sizes, caches, parts, score_scale, limits,
                 number, position, loops):
        self.number = number
        self.position = position
        self._loops = loops
        self._machine = machine
        self._lanes = machine.cfg.lanes
        self._scale = score_scale
        self._limits = limits
        tiles = range(machine.system.tiles)
        self._heads = max(len(part.group_heads(tile)) for part in parts for tile in tiles)
        self._merged = max((part.shards * len(part.heads(tile)) * part.vectors for part in parts
                            for tile in tiles if part.shards > 1), default=0)
        self._tiles = [self._place(record, tile, sizes) | self._scratch(context, tile, caches)
                       for tile in tiles]

    def _count(self, size):
        return -(-size // self._lanes)

    def _name(self, name):
        return of_sequence(name, self.number)

    def _place(self, record, tile, sizes):
        here = self._machine.here
        found = {name: record.add(self._name(name), tile, here, self._count(sizes["hidden"]))
                 for name in ("x", "sums")}
        for name, size in (("normed", "hidden"), ("attended", "attended"), ("query", "query"),
                           ("gated", "gated")):
            count = self._count(sizes[size])
            found[name] = [record.add(self._name(f"{name} limbs.{side}"), tile, pair,
                                      (count + 1 - side) // 2)
                           for side, pair in enumerate(self._machine.pairs_apart(tile))]
        found["factors"] = record.add(self._name("factors"), tile, here, 2)
        return found

    def _scratch(self, record, tile, caches):
        """What scores and weights need, which depends on the context."""
        turn = self._machine.turn
        here, there = self._machine.here, self._machine.there
        found = {}
        if self._merged:
            found |= {name: record.add(self._name(name), tile, home, self._merged)
                      for name, home in (("totals", here), ("shares", here), ("parts", there))}
            found["own totals"] = record.add(self._name("own totals"), tile, here, self._heads)
        for head in range(self._heads):
            found["partials", head] = record.add(self._name(f"partial sums {head}"), tile,
                                                 turn(tile, "scratch"), ENTRIES)
        if any(self._loops(count) for count, _ in caches):
            found["weight factors"] = record.add(self._name("weight factors"), tile, here,
                                                 self._heads)
        for count in sorted({count for count, _ in caches}):
            blocks = self._count(count)
            for head in range(self._heads):
                found["weights", count, head] = record.add(
                    self._name(f"exp {count} {head}"), tile, turn(tile, "scratch"), blocks)
                pairs = self._machine.pairs_apart(tile)
                if self._loops(count):      # one stride for all that a loop moves
                    pairs = pairs[head // 2 % 2:][:1]
                found["weight limbs", count, head] = [
                    record.add(self._name(f"weight limbs {count} {head}.{side}"), tile, pair,
                               -(-(blocks - side) // len(pairs)))
                    for side, pair in enumerate(pairs)]
        return found

    @staticmethod
    def _pairs(places):
        """Low and high limb of each vector; of two places even vectors lie in the first, odd ones
        in the second, so that reading them takes from the weights of all slices alike."""
        turns = len(places)
        return [tuple(places[c % turns].at(c // turns, (plane,)) for plane in (0, 1))
                for c in range(sum(place.words for place in places))]

    def x(self, tile):
        """The residual stream, a list of At."""
        return _words(self._tiles[tile]["x"])

    def sums(self, tile):
        """fp32 sums of a matrix back to the residual stream."""
        return _words(self._tiles[tile]["sums"])

    def factors(self, tile):
        """Words for the factors of the norms in front of attention and of the gated network."""
        return _words(self._tiles[tile]["factors"])

    def limbs(self, tile, name):
        """A 16-bit vector (``normed``, ``attended``, ``query``, ``gated``)."""
        return self._pairs(self._tiles[tile][name])

    def limb_places(self, name, vectors):
        """Words of both limbs of ``vectors`` of a 16-bit vector, by tile."""
        return [[at for vector in vectors for at in self.limbs(tile, name)[vector]]
                for tile in range(self._machine.system.tiles)]

    def attention(self, tile, slots, shards=1):
        """The scratch of `attention.Softmax` for caches of ``slots`` slots."""
        mine, heads = self._tiles[tile], range(self._heads)
        limits = self._limits[tile]["limits", slots, shards, self.position]
        return {"scale": self._scale,
                "limits": [_words(limits[head % len(limits)]) for head in heads],
                "weights": [_words(mine["weights", slots, head]) for head in heads],
                "limbs": [self._pairs(mine["weight limbs", slots, head]) for head in heads],
                "partials": [_words(mine["partials", head]) for head in heads],
                "factors": _words(mine["weight factors"]) if self._loops(slots) else None}

    def merging(self, tile):
        """Where tiles that share the positions put together what each has: lists of At by name."""
        return {name: _words(self._tiles[tile][name])
                for name in ("own totals", "totals", "shares", "parts")}


def _words(place):
    return [place.at(word) for word in range(place.words)]
