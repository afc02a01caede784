"""Data of several layers of one shape: every layer's words lie one stride behind the layer before.

One stride for all of a layer's data keeps the loop terms few: a queue's table holds eight.
"""

import numpy as np

from ..plan import Term
from .chain import At

__all__ = ["Place", "Record"]


class Place:
    """Words handed out by a `Record`; their address is known once the record is closed."""

    def __init__(self, tile, slices, words, key):
        self.tile = tile
        self.slices = tuple(slices)
        self.words = words
        self.offset = None
        self.address = None
        self.terms = ()
        self._key = key

    def at(self, word=0, slices=None):
        """Word ``word`` of the place in all its slices, or in ``slices`` of them."""
        slices = self.slices if slices is None else tuple(self.slices[i] for i in slices)
        return At(slices, self.address + word, self.terms, self._key)


class Record:
    """The SRAM words of ``layers`` layers, the same on every tile.

    Parameters
    ----------
    memory : Memory
    system : SystemConfig
    name : str
    layers : int
    level : int
        Depth of the LOOP whose index selects the layer.
    """

    def __init__(self, memory, system, name, layers=1, level=1):
        self._memory = memory
        self._system = system
        self.cfg = system.tile
        self.layers = layers
        self._name = name
        self._level = level
        self._next = {}
        self._placed = []

    def add(self, name, tile, slices, words, contents=None, key=None):
        """Words in each of ``slices`` of ``tile``, for every layer.

        Parameters
        ----------
        contents : array of uint8 (slices, layers, words, lanes), optional
        key : hashable, optional
            Orders accesses whose addresses loops move independently (caches).

        Returns
        -------
        Place
        """
        place = Place(tile, slices, words, key)
        place.offset = max(self._next.get((tile, slice_), 0) for slice_ in slices)
        for slice_ in slices:
            self._next[tile, slice_] = place.offset + words
        self._placed.append((name, place, contents))
        return place

    def vector(self, name, tile, slices, values):
        """fp32 constants (layers, n) as byte planes in four ``slices``, filled up with zeros."""
        values = np.asarray(values, np.float32).reshape(self.layers, -1)
        chunks = -(-values.shape[1] // self.cfg.lanes)
        padded = np.zeros((self.layers, chunks * self.cfg.lanes), "<f4")
        padded[:, :values.shape[1]] = values
        planes = padded.view(np.uint8).reshape(self.layers, chunks, self.cfg.lanes, 4)
        return self.add(name, tile, slices, chunks, planes.transpose(3, 0, 1, 2))

    def close(self):
        """Hand out addresses.

        Raises
        ------
        AllocationError
            When the layers do not fit.
        """
        cfg, names = self.cfg, self.cfg.slices("mem")
        stride = max(self._next.values(), default=0)
        images = {}
        for _, place, contents in self._placed:
            if contents is not None:
                for i, slice_ in enumerate(place.slices):
                    image = images.setdefault((place.tile, slice_), np.zeros(
                        (self.layers, stride, cfg.lanes), np.uint8))
                    image[:, place.offset:place.offset + place.words] = contents[i]
        mask = (1 << (self.layers - 1).bit_length()) - 1
        for tile in range(self._system.tiles):
            symbol = self._memory.place(
                self._name, tile, names, self.layers * stride,
                [images.get((tile, slice_)) for slice_ in names])
            for name, place, _ in self._placed:
                if place.tile == tile:
                    place.address = symbol.address + place.offset
                    if self.layers > 1:
                        place.terms = (Term(self._level, 0, mask, stride),)
                    self._memory.note(f"{self._name}.{name}", place, stride)
