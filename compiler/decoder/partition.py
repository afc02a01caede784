"""Which part of each matrix a tile has: query heads with their KV heads, and output columns."""

import numpy as np

from ..errors import CompileError

__all__ = ["Partition", "best_shards", "blocks_of"]


def blocks_of(tile, tiles, size, lanes):
    """Vectors of ``size`` elements that ``tile`` of ``tiles`` has: a range."""
    return _part(range(-(-size // lanes)), tile, tiles)


def _part(items, number, of):
    """Part ``number`` of ``of`` of a sequence, as equal as can be."""
    first, last = (len(items) * i // of for i in (number, number + 1))
    return items[first:last]


class Partition:
    """Tensor parallelism of layers of one shape.

    Tiles are dealt into groups of ``shards``.  Each group has some of the query heads; of the
    positions of their KV heads, every tile of the group has a share (position p, tile p mod
    ``shards``), and projects and merges some of the heads for all.

    Parameters
    ----------
    layer : QuantisedLayer
        Any of them.
    tiles, lanes : int
    shards : int
        A power of two that divides ``tiles``.

    Attributes
    ----------
    readers : list of int
        Tiles that have columns of the matrices back to the residual stream, and so need all of
        their inputs.

    Raises
    ------
    CompileError
        When ``shards`` is none.
    """

    def __init__(self, layer, tiles, lanes, shards=1):
        if shards < 1 or shards & (shards - 1) or tiles % shards:
            raise CompileError(f"Positions can be shared by a power of two of tiles that divides "
                               f"the {tiles} tiles, not by {shards}")
        self.tiles = tiles
        self.lanes = lanes
        self.shards = shards
        self.head_dim = layer.head_dim
        self.vectors = layer.head_dim // lanes
        self.readers = [tile for tile in range(tiles) if self.blocks(tile, layer.o.shape[1])]
        self._heads = range(layer.heads)
        self._share = layer.heads // layer.kv_heads

    def group(self, tile):
        """The tiles of the group of ``tile``: a range."""
        first = tile // self.shards * self.shards
        return range(first, first + self.shards)

    def group_heads(self, tile):
        """Query heads of the group of ``tile``: a range, empty where there are more groups."""
        return _part(self._heads, tile // self.shards, self.tiles // self.shards)

    def heads(self, tile):
        """Query heads that ``tile`` projects, and merges: a range."""
        return _part(self.group_heads(tile), tile % self.shards, self.shards)

    def cached(self, tile):
        """KV heads of which ``tile`` has a share, each with the query heads that use it."""
        used = {}
        for head in self.group_heads(tile):
            used.setdefault(head // self._share, []).append(head)
        return used

    def kv_heads(self, tile):
        """KV heads that ``tile`` projects, a list."""
        return _part(list(self.cached(tile)), tile % self.shards, self.shards)

    def head_columns(self, heads):
        """Columns of a projection that belong to ``heads``."""
        heads = np.array(heads, int)[:, None]
        return (heads * self.head_dim + np.arange(self.head_dim)).ravel()

    def blocks(self, tile, size):
        """Vectors of an output of ``size`` elements that ``tile`` computes."""
        return blocks_of(tile, self.tiles, size, self.lanes)

    def columns(self, tile, size):
        """Elements of those vectors."""
        blocks = self.blocks(tile, size)
        return np.arange(blocks.start * self.lanes, min(blocks.stop * self.lanes, size))


def best_shards(layer, cfg, tiles, slots, apart):
    """In how many shares the tiles should have the positions of a layer.

    An estimate: loading the keys and values of the tile that has most of them, or the exponents of
    its scores, whichever takes longer; and, where positions are shared, twice the way between
    tiles and what `sharded.ShardedHeads` does to put a head together.

    Parameters
    ----------
    layer : QuantisedLayer
    cfg : TileConfig
    tiles : int
    slots : int
        Of all tiles that share the positions.
    apart : int
        Cycles that a vector takes between two tiles.
    """
    mxms, special = len(cfg.slices("mxm")), sum("special" in alu.features for alu in cfg.alus)
    depth = max(alu.depth for alu in cfg.alus)
    found = {}
    for shards in (1 << n for n in range(tiles.bit_length())):
        if tiles % shards or slots // shards < max(4, cfg.lanes) and shards > 1:
            break
        part = Partition(layer, tiles, cfg.lanes, shards)
        blocks = -(-slots // shards // cfg.lanes)
        loads = max(len(part.cached(tile)) for tile in range(tiles)) * 2 * part.vectors * blocks
        heads = max(len(part.group_heads(tile)) for tile in range(tiles))
        busy = max(loads * cfg.lanes / 4 / mxms, heads * blocks / special)
        found[shards] = busy + (2 * apart + 10 * depth if shards > 1 else 0)
    return min(found, key=found.get)
