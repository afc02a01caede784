"""One decoder layer on all tiles: where its data lies, and its operations in order."""

import numpy as np

from compiler.quantise.graph import GELU_BETA

from ..lower.chain import Chain
from ..lower.product import place_matrix, product
from .attention import (
    Cache,
    append_key,
    append_value,
    attend,
    cache_rows,
    inverse_rms,
    scaled,
    write_query,
)
from .feed_forward import gate
from .partition import Partition
from .vectors import add_normed, exchange, normed_limbs, write_limbs

__all__ = ["LayerGroup"]


class LayerGroup:
    """Layers of one shape that share their instructions.

    Parameters
    ----------
    machine : Machine
    record : Record
        For the data of all of them; the caller closes it.
    layers : list of QuantisedLayer
    slots : int
        Slots of their KV caches.
    shared : SharedPlaces
        Residual stream, buffers, angles and limits, the same for all layers.
    """

    def __init__(self, machine, record, layers, slots, shared):
        self._machine = machine
        self._record = record
        self._layers = layers
        self._slots = slots
        self._shared = shared
        self._cfg = machine.cfg
        self._part = Partition(layers[0], machine.system.tiles, self._cfg.lanes)
        self._hidden = layers[0].o.shape[1]
        self._ffn = layers[0].gate.shape[1]
        self._tiles = [self._place(tile) for tile in range(machine.system.tiles)]

    def _stack(self, name, columns=None):
        values = np.stack([getattr(layer, name) for layer in self._layers])
        return values if columns is None else values[..., columns]

    def _place(self, tile):
        """Everything of these layers that lies on ``tile``, by name."""
        part, record, turn = self._part, self._record, self._machine.turn
        kv = list(part.kv_heads(tile))
        columns = {
            **dict.fromkeys(("q", "q_scale", "q_gain"), part.head_columns(part.heads(tile))),
            **dict.fromkeys(("k", "k_scale", "k_gain", "v", "v_scale", "v_gain"),
                            part.head_columns(kv)),
            "attended_gain": part.head_columns(part.heads(tile)),
            **dict.fromkeys(("o", "down"), part.columns(tile, self._hidden)),
            **dict.fromkeys(("gate", "gate_scale", "up", "up_gain"),
                            part.columns(tile, self._ffn)),
        }
        found = {}
        for name in ("q", "k", "v", "o", "gate", "up", "down"):
            if getattr(self._layers[0], name) is not None:
                found[name] = place_matrix(record, name, tile, self._stack(name, columns[name]),
                                           first=int(name == "up"))
        there = dict.fromkeys(("attention_gain", "o_scale", "o_gain", "ffn_gain", "up_gain",
                               "down_scale", "down_gain"), self._machine.there)
        here = dict.fromkeys(("gate_scale",), self._machine.here)
        for name in (*there, *here, "q_scale", "q_gain", "k_scale", "k_gain", "v_scale", "v_gain",
                     "attended_gain"):
            if getattr(self._layers[0], name) is not None:
                slices = (there | here).get(name) or turn(tile, "quads")
                found[name] = record.vector(name, tile, slices,
                                            self._stack(name, columns.get(name)))
        for name in ("attention_eps", "q_eps", "k_eps", "v_eps", "o_eps", "ffn_eps", "down_eps"):
            found[name] = record.vector(name, tile, turn(tile, "quads"), np.repeat(
                self._stack(name)[:, None], self._cfg.lanes, 1))
        words = part.vectors * cache_rows(self._slots, self._cfg.lanes)
        empty = np.zeros((4, record.layers, words, self._cfg.lanes), np.uint8)
        for number in range(len(kv)):
            for kind in ("keys", "values"):
                place = record.add(f"{kind} {kv[number]}", tile, turn(tile, "quads"), words, empty,
                                   key=(kind, tile, number, id(self)))
                found[kind, number] = Cache(place, self._slots)
        return found

    def _vector(self, tile, name):
        place = self._tiles[tile][name]
        return [place.at(word) for word in range(place.words)]

    def emit(self, builder, rope):
        """Append the operations of one layer to ``builder``; ``rope`` gives cos and sin."""
        tiles = range(self._machine.system.tiles)
        attended = [self._attention(builder, tile, rope[tile]) for tile in tiles]
        for tile in tiles:
            exchange(builder, self._machine, "attended limbs", tile,
                     self._limb_places("attended", attended[tile]))
        self._output(builder, "o", "attended")
        for tile in tiles:
            self._gated(builder, tile)
        for tile in tiles:
            exchange(builder, self._machine, "gated limbs", tile,
                     self._limb_places("gated", self._part.blocks(tile, self._ffn)))
        self._output(builder, "down", "gated")

    def _limb_places(self, name, vectors):
        """Both limbs of ``vectors``, by tile."""
        return [[at for vector in vectors for at in self._shared.limbs(tile, name)[vector]]
                for tile in range(self._machine.system.tiles)]

    def _attention(self, builder, tile, rope):
        """Attention of a tile's heads; returns the vectors of the result that it made."""
        machine, part, shared = self._machine, self._part, self._shared
        size = part.vectors
        limbs = shared.limbs(tile, "normed")
        place = self._tiles[tile]
        normed_limbs(builder, machine, f"tile {tile} attention norm", tile, shared.x(tile),
                     self._vector(tile, "attention_gain"), place["attention_eps"].at(), limbs)
        sums = {name: product(builder, f"tile {tile} {name}", place[name], limbs)
                for name in ("k", "v", "q") if name in place}
        vectors = []
        for number, (_, heads) in enumerate(part.kv_heads(tile).items()):
            mine = slice(number * size, (number + 1) * size)
            self._keys_and_values(builder, tile, number, sums, mine, rope)
            local = [head - part.heads(tile).start for head in heads]
            queries = [self._query(builder, tile, head, sums["q"], rope) for head in local]
            name = f"tile {tile} KV head {number}"
            results = attend(builder, machine, name, tile, queries, place["keys", number],
                             place["values", number], shared.attention(tile, self._slots))
            for head, results_of_head in zip(local, results, strict=True):
                for c, total in enumerate(results_of_head):
                    vector = (part.heads(tile).start + head) * size + c
                    chain = Chain(self._cfg, f"{name} attended {vector}", tile)
                    gain = place["attended_gain"].at(head * size + c)
                    write_limbs(chain, scaled(chain, total, gain),
                                shared.limbs(tile, "attended")[vector])
                    builder.add(chain.cluster())
                    vectors.append(vector)
        return vectors

    def _keys_and_values(self, builder, tile, number, sums, mine, rope):
        machine, place = self._machine, self._tiles[tile]
        name = f"tile {tile} KV head {number}"
        factor = inverse_rms(builder, machine, f"{name} K", tile, sums["k"][mine],
                             self._vector(tile, "k_scale")[mine], place["k_eps"].at())
        append_key(builder, f"{name} K", tile, sums["k"][mine],
                   self._vector(tile, "k_gain")[mine], rope, factor, place["keys", number])
        values = sums["k"]
        if "v" in sums:
            values = sums["v"]
            factor = inverse_rms(builder, machine, f"{name} V", tile, values[mine],
                                 self._vector(tile, "v_scale")[mine], place["v_eps"].at())
        append_value(builder, f"{name} V", tile, values[mine], self._vector(tile, "v_gain")[mine],
                     factor, place["values", number])

    def _query(self, builder, tile, head, sums, rope):
        """16-bit query of a tile's head number ``head``."""
        mine = slice(head * self._part.vectors, (head + 1) * self._part.vectors)
        name = f"tile {tile} query {head}"
        factor = inverse_rms(builder, self._machine, name, tile, sums[mine],
                             self._vector(tile, "q_scale")[mine], self._tiles[tile]["q_eps"].at())
        limbs = self._shared.limbs(tile, "query")[mine]
        write_query(builder, name, tile, sums[mine], self._vector(tile, "q_gain")[mine], rope,
                    factor, limbs)
        return limbs

    def _gated(self, builder, tile):
        machine, shared, place = self._machine, self._shared, self._tiles[tile]
        limbs = shared.limbs(tile, "normed")
        normed_limbs(builder, machine, f"tile {tile} FFN norm", tile, shared.x(tile),
                     self._vector(tile, "ffn_gain"), place["ffn_eps"].at(), limbs)
        gates, ups = (product(builder, f"tile {tile} {name}", place[name], limbs)
                      for name in ("gate", "up"))
        target = [shared.limbs(tile, "gated")[vector]
                  for vector in self._part.blocks(tile, self._ffn)]
        gate(builder, f"tile {tile} gate", tile, gates, ups, self._vector(tile, "gate_scale"),
             self._vector(tile, "up_gain"), float(GELU_BETA), target)

    def _output(self, builder, name, source):
        """A matrix back to the residual stream, its sums exchanged, its norm and the addition."""
        machine, shared = self._machine, self._shared
        tiles = range(machine.system.tiles)
        for tile in tiles:
            sums = product(builder, f"tile {tile} {name}", self._tiles[tile][name],
                           shared.limbs(tile, source))
            for vector, total in zip(self._part.blocks(tile, self._hidden), sums, strict=True):
                chain = Chain(self._cfg, f"tile {tile} {name} sum {vector}", tile)
                chain.write(chain.acc(*total), shared.sums(tile)[vector])
                builder.add(chain.cluster())
        for tile in tiles:
            mine = self._part.blocks(tile, self._hidden)
            exchange(builder, machine, f"{name} sums", tile,
                     [[shared.sums(other)[vector] for vector in mine] for other in tiles])
        for tile in tiles:
            add_normed(builder, machine, f"tile {tile} {name} norm", tile, shared.sums(tile),
                       self._vector(tile, f"{name}_scale"), self._vector(tile, f"{name}_gain"),
                       self._tiles[tile][f"{name}_eps"].at(), shared.x(tile))
