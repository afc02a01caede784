"""Which part of each matrix a tile has: query heads with their KV head, and output columns."""

import numpy as np

__all__ = ["Partition", "blocks_of"]


def blocks_of(tile, tiles, size, lanes):
    """Vectors of ``size`` elements that ``tile`` of ``tiles`` has: a range."""
    count = -(-size // lanes)
    first, last = (count * i // tiles for i in (tile, tile + 1))
    return range(first, last)


class Partition:
    """Tensor parallelism of layers of one shape.

    Parameters
    ----------
    layer : QuantisedLayer
        Any of them.
    tiles, lanes : int
    """

    def __init__(self, layer, tiles, lanes):
        self.tiles = tiles
        self.lanes = lanes
        self.head_dim = layer.head_dim
        self.vectors = layer.head_dim // lanes
        self._heads = layer.heads
        self._group = layer.heads // layer.kv_heads

    def heads(self, tile):
        """Query heads of ``tile``: a range, empty on some where there are more tiles than heads."""
        first, last = (self._heads * i // self.tiles for i in (tile, tile + 1))
        return range(first, last)

    def kv_heads(self, tile):
        """KV heads that the query heads of ``tile`` use, each with those query heads."""
        used = {}
        for head in self.heads(tile):
            used.setdefault(head // self._group, []).append(head)
        return used

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
