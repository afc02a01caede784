"""Where the vectors of a collective lie."""

import numpy as np

from ..lower.chain import At
from ..lower.layout import Memory, vector_quads

__all__ = ["Places"]


class Places:
    """Words for operands, results and what has to wait, the same on every tile.

    A vector has one word in each of the four slices of a *quad*, byte planes in order.  What a tile
    has to begin with are symbols ``x0``, ``x1``, ..., one for each of the ``n`` quads: ``x<i>`` has
    vectors ``i``, ``i + n``, ...; what it has in the end are ``y0``, ``y1``, ...  So all slices
    have a part in the reads and writes.

    Parameters
    ----------
    system : SystemConfig
    counts : (list of int, list of int)
        Vectors of ``x`` and of ``y``, by tile.
    """

    def __init__(self, system, counts):
        self._system = system
        self._cfg = system.tile
        self._quads = vector_quads(system.tile)
        # words of each quad
        self._x, self._y = (-(-max(some) // len(self._quads)) for some in counts)
        self._waiting = [{} for _ in range(system.tiles)]

    def x(self, number):
        """Place ``number`` of ``x``."""
        return self._at(0, number, 0)

    def y(self, number):
        """Place ``number`` of ``y``: its first is in another quad than the first of ``x``."""
        return self._at(self._x, number, 1)

    def waiting(self, tile, name):
        """The place of ``tile`` that ``name`` stands for; names take the quads in turn."""
        number = self._waiting[tile].setdefault(name, len(self._waiting[tile]))
        return self._at(self._x + self._y, number, 0)

    def _at(self, first, number, turn):
        count = len(self._quads)
        return At(self._quads[(number + turn) % count], first + number // count)

    def memory(self, data):
        """`Memory` with the places of all tiles.

        Parameters
        ----------
        data : list of array of int32 or float32 (n, lanes)
            ``x`` of each tile.

        Raises
        ------
        AllocationError
            When they do not fit.
        """
        memory, count = Memory(self._system), len(self._quads)
        for tile, vectors in enumerate(data):
            planes = np.zeros((4, self._x * count, self._cfg.lanes), np.uint8)
            planes[:, :len(vectors)] = np.ascontiguousarray(vectors).view(np.uint8).reshape(
                len(vectors), self._cfg.lanes, 4).transpose(2, 0, 1)
            for name, words, turn in (("x", self._x, 0), ("y", self._y, 1)):
                for number in range(count):
                    memory.place(f"{name}{number}", tile, self._quads[(number + turn) % count],
                                 words, planes[:, number::count] if name == "x" else None,
                                 f"byte planes by slice, vectors {number}, {number + count}, ...")
            for number, quad in enumerate(self._quads):
                memory.place(f"waiting{number}", tile, quad,
                             len(range(number, len(self._waiting[tile]), count)))
        return memory
