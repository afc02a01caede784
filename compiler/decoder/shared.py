"""What all layers share on a tile: residual stream, buffers, angles and score limits."""

import numpy as np

from compiler.quantise.graph import ENTRIES, SCORE_CAP, SCORE_HIDDEN

from ..lower.chain import STEP, Chain

__all__ = ["SharedPlaces"]


class SharedPlaces:
    """Places outside of the layers.

    Parameters
    ----------
    machine : Machine
    record : Record
        Of one layer; the caller closes it.
    sizes : dict of str to int
        Elements of ``hidden``, ``attended``, ``query`` and ``gated`` on a tile.
    caches : iterable of (int, int)
        Slots on a tile, and shares of the positions, of the KV caches that occur.
    parts : list of Partition
        Of all layers.
    score_scale : float
    """

    def __init__(self, machine, record, sizes, caches, parts, score_scale):
        self._machine = machine
        self._cfg = machine.cfg
        self._scale = score_scale
        self._heads = max(len(part.group_heads(tile)) for part in parts
                          for tile in range(machine.system.tiles))
        self._merged = max((part.shards * len(part.heads(tile)) * part.vectors for part in parts
                            for tile in range(machine.system.tiles) if part.shards > 1), default=0)
        self._tiles = [self._place(record, tile, sizes, caches)
                       for tile in range(machine.system.tiles)]

    def _count(self, size):
        return -(-size // self._cfg.lanes)

    def _place(self, record, tile, sizes, caches):
        turn = self._machine.turn
        here, there = self._machine.here, self._machine.there
        found = {name: record.add(name, tile, here, self._count(sizes["hidden"]))
                 for name in ("x", "sums")}
        for name, size in (("normed", "hidden"), ("attended", "attended"), ("query", "query"),
                           ("gated", "gated")):
            count = self._count(sizes[size])
            found[name] = [record.add(f"{name} limbs.{side}", tile, pair, (count + 1 - side) // 2)
                           for side, pair in enumerate(self._machine.pairs_apart(tile))]
        if self._merged:
            found |= {name: record.add(name, tile, home, self._merged) for name, home in
                      (("totals", here), ("shares", here), ("parts", there))}
            found["own totals"] = record.add("own totals", tile, here, self._heads)
        for count, shards in caches:
            blocks = self._count(count)
            numbers = np.arange(blocks * self._cfg.lanes, dtype=np.float32)
            numbers = numbers * shards + tile % shards
            # A slot that the cache does not have is never visible.
            numbers[count:] = np.inf
            size = f"{count} of {shards}"
            found["slots", count, shards] = record.vector(f"slot numbers {size}", tile,
                                                          turn(tile, "quads"), numbers[None])
            found["limit", count, shards] = record.add(f"limits {size}", tile,
                                                       turn(tile, "quads"), blocks)
        for head in range(self._heads):
            found["partials", head] = record.add(f"partial sums {head}", tile, turn(tile, "quads"),
                                                 ENTRIES)
        for count in sorted({count for count, _ in caches}):
            blocks = self._count(count)
            for head in range(self._heads):
                found["weights", count, head] = record.add(
                    f"exp {count} {head}", tile, turn(tile, "quads"), blocks)
                found["weight limbs", count, head] = [
                    record.add(f"weight limbs {count} {head}.{side}", tile, pair,
                               (blocks + 1 - side) // 2)
                    for side, pair in enumerate(self._machine.pairs_apart(tile))]
        return found

    def _words(self, place):
        return [place.at(word) for word in range(place.words)]

    @staticmethod
    def _pairs(places):
        """Low and high limb of each vector; even vectors lie in the first place, odd ones in the
        second, so that reading them takes from the weights of all slices alike."""
        return [tuple(places[c % 2].at(c // 2, (plane,)) for plane in (0, 1))
                for c in range(sum(place.words for place in places))]

    def x(self, tile):
        """The residual stream, a list of At."""
        return self._words(self._tiles[tile]["x"])

    def sums(self, tile):
        """fp32 sums of a matrix back to the residual stream."""
        return self._words(self._tiles[tile]["sums"])

    def limbs(self, tile, name):
        """A 16-bit vector (``normed``, ``attended``, ``query``, ``gated``)."""
        return self._pairs(self._tiles[tile][name])

    def limb_places(self, name, vectors):
        """Words of both limbs of ``vectors`` of a 16-bit vector, by tile."""
        return [[at for vector in vectors for at in self.limbs(tile, name)[vector]]
                for tile in range(self._machine.system.tiles)]

    def attention(self, tile, slots, shards=1):
        """The scratch of `attention.Softmax` for caches of ``slots`` slots."""
        mine = self._tiles[tile]
        return {"scale": self._scale, "limit": self._words(mine["limit", slots, shards]),
                "weights": [self._words(mine["weights", slots, head])
                            for head in range(self._heads)],
                "limbs": [self._pairs(mine["weight limbs", slots, head])
                          for head in range(self._heads)],
                "partials": [self._words(mine["partials", head]) for head in range(self._heads)]}

    def merging(self, tile):
        """Where tiles that share the positions put together what each has: lists of At by name."""
        return {name: self._words(self._tiles[tile][name])
                for name in ("own totals", "totals", "shares", "parts")}

    def emit_limits(self, builder, slots, shards):
        """Per step: what the score of each slot is cut at, as its position has been written or not.

        ``(position <= step ? 1 : 0) * (cap - hidden) + hidden``, exact in fp32.
        """
        for tile in range(self._machine.system.tiles):
            mine = self._tiles[tile]
            numbers, limits = (self._words(mine[name, slots, shards])
                               for name in ("slots", "limit"))
            for block, (number, limit) in enumerate(zip(numbers, limits, strict=True)):
                chain = Chain(self._cfg, f"tile {tile} limit {slots} {block}", tile)
                step = chain.alu("FROM_INT32", STEP)
                seen = chain.alu("CMP_LE", chain.read(number), step)
                value = chain.alu("MUL", seen, float(SCORE_CAP - SCORE_HIDDEN))
                chain.write(chain.alu("ADD", value, float(SCORE_HIDDEN)), limit)
                builder.add(chain.cluster())
