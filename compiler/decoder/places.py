"""Where the data of layers of one shape lies on a tile."""

import numpy as np

from ..lower.product import place_matrix
from .attention import Cache
from .shared import of_sequence
from .slots import Slots

__all__ = ["TileLayers"]

_MATRICES = ("q", "k", "v", "o", "gate", "up", "down")
#: Vectors per channel and where they lie: operands that are read in one cycle lie apart.
_THERE = ("attention_gain", "o_scale", "o_gain", "ffn_gain", "up_gain", "down_scale", "down_gain")
_HERE = ("gate_scale",)
_ANYWHERE = ("q_scale", "q_gain", "k_scale", "k_gain", "v_scale", "v_gain", "attended_gain")
_EPS = ("attention_eps", "q_eps", "k_eps", "v_eps", "o_eps", "ffn_eps", "down_eps")


class TileLayers:
    """Matrices, vectors and caches of layers of one shape on one tile.

    Parameters
    ----------
    machine : Machine
    record, caches : Record
        For the constants and for the KV caches of all of them; the caller closes both.
    layers : list of QuantisedLayer
    part : Partition
    slots : int
        Slots of their KV caches on this tile.
    tile, batch : int
        The tile, and how many sequences have caches of their own.
    loops : bool
        Whether the caches are gone through in loops.

    Attributes
    ----------
    matrices : dict of str to Matrix
    keys, values : list of dict of int to Cache
        By sequence and KV head.
    """

    def __init__(self, machine, record, caches, layers, part, slots, tile, batch,
                 loops):
        self.tile = tile
        self._layers = layers
        hidden, ffn = layers[0].o.shape[1], layers[0].gate.shape[1]
        kv = part.kv_heads(tile)
        columns = {
            **dict.fromkeys(("q", "q_scale", "q_gain"), part.head_columns(part.heads(tile))),
            **dict.fromkeys(("k", "k_scale", "k_gain", "v", "v_scale", "v_gain"),
                            part.head_columns(kv)),
            "attended_gain": part.head_columns(part.heads(tile)),
            **dict.fromkeys(("o", "down"), part.columns(tile, hidden)),
            **dict.fromkeys(("gate", "gate_scale", "up", "up_gain"), part.columns(tile, ffn)),
        }
        self.matrices = {name: place_matrix(record, name, tile, self._stack(name, columns[name]),
                                            first=int(name in ("up", "q", "v")))
                         for name in _MATRICES if getattr(layers[0], name) is not None}
        homes = dict.fromkeys(_THERE, machine.there) | dict.fromkeys(_HERE, machine.here)
        self._vectors = {}
        for name in (*_THERE, *_HERE, *_ANYWHERE):
            if getattr(layers[0], name) is not None:
                slices = homes.get(name) or machine.turn(tile, "quads")
                self._vectors[name] = record.vector(name, tile, slices,
                                                    self._stack(name, columns.get(name)))
        for name in _EPS:
            values = [getattr(layer, name) for layer in layers]
            if any(values):         # there is such a norm, and not only +0 to add to its squares
                self._vectors[name] = record.vector(
                    name, tile, machine.turn(tile, "quads"),
                    np.repeat(np.array(values, np.float32)[:, None], part.lanes, 1))
        self.keys, self.values = (
            [{head: Cache(caches, of_sequence(f"{kind} {head}", sequence), tile,
                          (kind, sequence, tile, number, id(self)), part.vectors,
                          Slots(caches.cfg, slots, values=kind == "values", first=number,
                                shard=(tile % part.shards, part.shards)), loops)
              for number, head in enumerate(part.cached(tile))} for sequence in range(batch)]
            for kind in ("keys", "values"))

    def _stack(self, name, columns=None):
        values = np.stack([getattr(layer, name) for layer in self._layers])
        return values if columns is None else values[..., columns]

    def vector(self, name):
        """A vector per channel, a list of At; None where the layers have none."""
        place = self._vectors.get(name)
        return place and [place.at(word) for word in range(place.words)]

    def eps(self, name):
        """What the squares of a norm begin with; None where it is 0 in every layer."""
        place = self._vectors.get(f"{name}_eps")
        return place.at() if place else None
