"""Which word of which slice holds a position of a KV cache: the rule of machine and host."""

from itertools import groupby

import numpy as np

from ..lower.layout import weight_slices

__all__ = ["Slots", "cache_slots", "layer_groups"]


def cache_slots(window, positions):
    """Slots of a layer's caches on all tiles that share the positions: its window (None: none), or
    every position there is."""
    slots = positions if window is None else min(window, positions)
    return max(4, 1 << (slots - 1).bit_length())


def layer_groups(layers):
    """Runs of layers that share instructions: lists of `QuantisedLayer`."""
    return [list(group) for _, group in groupby(layers, key=_shape)]


def _shape(layer):
    """What is equal of layers that share instructions."""
    return (layer.heads, layer.kv_heads, layer.head_dim, layer.window, layer.rope,
            layer.v is None, layer.qk_norm, layer.v_norm)


class Slots:
    """Places of the keys or values of one KV head on one tile.

    A block is ``lanes`` slots of one vector (``lanes`` elements of the head); its slot ``s`` lies
    in slice ``s % 4`` of four.  Keys are dealt out to the MXMs by block, since every block gives
    scores of its own; values by vector, since all slots of a vector add up.  Where tiles share the
    positions, slot ``s`` of a tile holds position ``s * shards + shard``.

    Parameters
    ----------
    cfg : TileConfig
    slots : int
        Of this tile: a power of two, at least 4.
    values : bool
    first : int
        Number of the MXM that takes block, or vector, 0.
    shard : (int, int)
        Which share of the positions the tile has, and of how many.

    Attributes
    ----------
    count : int
        Blocks of a vector.
    spread : int
        Groups of four slices that the blocks of a vector are dealt out to.
    words : int
        Words of one vector in each slice, those of other MXMs' blocks among them.
    """

    def __init__(self, cfg, slots, *, values, first, shard=(0, 1)):
        self.slots = slots
        self.shard = shard
        self.count = max(1, slots // cfg.lanes)
        self.words = max(slots, cfg.lanes) // 4
        self._cfg = cfg
        self._values = values
        self._first = first
        self._mxms, self.spread = (cfg.slices("mxm"), 1) if values else self._dealt()

    def _dealt(self):
        """MXMs that blocks of keys are dealt out to, and how many groups of four slices they have:
        one for all, or one for each."""
        homes = {}
        for mxm in self._cfg.slices("mxm"):
            home = weight_slices(self._cfg, mxm)
            if home in homes or not any(set(home) & set(other) for other in homes):
                homes.setdefault(home, []).append(mxm)
        mxms = next(iter(homes.values())) if len(homes) == 1 else \
            [members[0] for members in homes.values()]
        if self.count % len(mxms):
            mxms = mxms[:1]
        return tuple(mxms), min(len(homes), len(mxms))

    def mxm(self, vector, block):
        """The MXM that loads a block."""
        return self._mxms[(self._first + (vector if self._values else block)) % len(self._mxms)]

    def block(self, vector, block):
        """First word of a block in each of the four slices of its MXM."""
        return vector * self.words + block * (self._cfg.lanes // 4)

    def held(self, first, end):
        """Positions of ``first .. end - 1`` that this tile has once all are written: an array."""
        shard, shards = self.shard
        positions = np.arange(max(first, end - self.slots * shards), end)
        return positions[positions % shards == shard]

    def place(self, vector, position):
        """Where a vector of a position lies, which the tile must have: the four slices of its
        block, which of them, and the word behind the first of the cache in them."""
        slot = position // self.shard[1] % self.slots
        block, row = divmod(slot, self._cfg.lanes)
        slices = weight_slices(self._cfg, self.mxm(vector, block))
        return slices, slot % 4, self.block(vector, block) + row // 4
