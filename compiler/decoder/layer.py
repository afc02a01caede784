"""One decoder layer on all tiles: where its data lies, and its operations in order."""

from functools import partial

import numpy as np

from compiler.quantise.graph import GELU_BETA

from ..lower.chain import Chain
from ..lower.product import Product, place_matrix
from .attention import (
    Cache,
    append_key,
    append_value,
    cache_rows,
    inverse_rms,
    mix,
    scaled,
    score,
    softmax,
    write_query,
)
from .feed_forward import Gate
from .partition import Partition
from .vectors import (
    OrderedSum,
    add_normed,
    exchange,
    normed_limbs,
    scaled_limbs,
    sum_of_squares,
    write_limbs,
)

__all__ = ["LayerGroup"]


class LayerGroup:
    """Layers of one shape that share their instructions.

    Parameters
    ----------
    machine : Machine
    record : Record
        For the data of all of them; the caller closes it.
    layers : list of QuantisedLayer
    late_norms : bool
        As of `QuantisedModel`.
    slots : int
        Slots of their KV caches.
    shared : SharedPlaces
        Residual stream, buffers, angles and limits, the same for all layers.
    """

    def __init__(self, machine, record, layers, late_norms, slots, shared):
        self._machine = machine
        self._record = record
        self._layers = layers
        self._late = late_norms
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
            values = [getattr(layer, name) for layer in self._layers]
            if any(values):         # adding +0 to a square changes nothing
                found[name] = record.vector(name, tile, turn(tile, "quads"), np.repeat(
                    np.array(values, np.float32)[:, None], self._cfg.lanes, 1))
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
            builder.operation = "exchange attended"
            exchange(builder, self._machine, "attended limbs", tile,
                     self._limb_places("attended", attended[tile]))
        squares = [OrderedSum(builder, self._machine, f"tile {tile} FFN norm", tile,
                              self._eps(tile, "ffn")) for tile in tiles]
        self._output(builder, "o", "attended", [
            partial(self._feed, tile, squares[tile]) for tile in tiles])
        for tile in tiles:
            builder.operation = "gated network"
            self._gated(builder, tile, squares[tile])
        for tile in tiles:
            builder.operation = "exchange gated"
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
        name = f"tile {tile} attention norm"
        builder.operation = "attention norm"
        gain = self._vector(tile, "attention_gain")
        if self._late:
            scaled_limbs(builder, name, tile, shared.x(tile), gain, limbs)
        else:
            squares = sum_of_squares(builder, machine, name, tile, shared.x(tile),
                                     self._eps(tile, "attention"))
            normed_limbs(builder, machine, name, tile, shared.x(tile), gain, squares, limbs)
        kept = set()
        sums = {}
        for name in ("k", "q", "v"):
            if name in place:
                builder.operation = f"{name} projection"
                work = Product(builder, f"tile {tile} {name}", place[name], limbs, kept=kept)
                sums[name] = [work.column(n) for n in range(place[name].n_blocks)]
        scratch = shared.attention(tile, self._slots)
        groups = [[head - part.heads(tile).start for head in heads]
                  for heads in part.kv_heads(tile).values()]
        name = f"tile {tile} KV head"
        scores, vectors = {}, []
        for number in range(len(groups)):
            builder.operation = "values"
            self._value(builder, tile, number, sums)
        for number, heads in enumerate(groups):
            builder.operation = f"keys and queries {number}"
            self._key(builder, tile, number, sums["k"], rope)
            queries = [self._query(builder, tile, head, sums["q"], rope) for head in heads]
            if builder.free_accumulators(tile) < len(heads) * place["keys", number].blocks(
                    self._cfg.lanes):
                self._softmax(builder, tile, scores)
            builder.operation = f"scores {number}"
            found = score(builder, f"{name} {number}", tile, queries, place["keys", number])
            scores.update(zip(heads, found, strict=True))
        self._softmax(builder, tile, scores)
        for number, heads in enumerate(groups):
            builder.operation = f"attention output {number}"
            results = mix(builder, f"{name} {number}", tile,
                          [scratch["limbs"][head] for head in heads], place["values", number], size)
            for head, totals in zip(heads, results, strict=True):
                vectors += self._attended(builder, tile, head, totals)
        return vectors

    def _softmax(self, builder, tile, scores):
        """16-bit attention weights of the heads in ``scores``, which is emptied."""
        builder.operation = "softmax"
        scratch = self._shared.attention(tile, self._slots)
        for head, found in scores.items():
            softmax(builder, self._machine, f"tile {tile} head {head}", tile, found, scratch, head)
        scores.clear()

    def _attended(self, builder, tile, head, totals):
        """16-bit result of one head; returns the vectors of the whole that it makes."""
        size = self._part.vectors
        first = (self._part.heads(tile).start + head) * size
        for c, total in enumerate(totals):
            chain = Chain(self._cfg, f"tile {tile} attended {first + c}", tile)
            gain = self._tiles[tile]["attended_gain"].at(head * size + c)
            write_limbs(chain, scaled(chain, total, gain),
                        self._shared.limbs(tile, "attended")[first + c])
            builder.add(chain.cluster())
        return range(first, first + size)

    def _of_head(self, number):
        """Vectors of head ``number`` in those of all heads of a tile."""
        return slice(number * self._part.vectors, (number + 1) * self._part.vectors)

    def _key(self, builder, tile, number, sums, rope):
        """Key of one KV head into its cache; returns the inverse RMS as (ALU, entry)."""
        mine, name = self._of_head(number), f"tile {tile} KV head {number} K"
        factor = self._inverse_rms(builder, tile, name, "k", sums[mine], mine)
        append_key(builder, self._machine, name, tile, sums[mine],
                   self._vector(tile, "k_gain")[mine], rope, factor,
                   self._tiles[tile]["keys", number])

    def _value(self, builder, tile, number, sums):
        """Value of one KV head into its cache; where V is made from K, so is its inverse RMS."""
        mine, name = self._of_head(number), f"tile {tile} KV head {number} V"
        source = "v" if "v" in sums else "k"
        factor = self._inverse_rms(builder, tile, name, source, sums[source][mine], mine)
        append_value(builder, name, tile, sums[source][mine], self._vector(tile, "v_gain")[mine],
                     factor, self._tiles[tile]["values", number])

    def _inverse_rms(self, builder, tile, name, kind, sums, mine):
        return inverse_rms(builder, self._machine, name, tile, sums,
                           self._vector(tile, f"{kind}_scale")[mine], self._eps(tile, kind))

    def _eps(self, tile, name):
        """What the squares of a norm begin with; None where it is 0 in every layer."""
        place = self._tiles[tile].get(f"{name}_eps")
        return place.at() if place else None

    def _query(self, builder, tile, head, sums, rope):
        """16-bit query of a tile's head number ``head``."""
        mine = self._of_head(head)
        name = f"tile {tile} query {head}"
        factor = self._inverse_rms(builder, tile, name, "q", sums[mine], mine)
        limbs = self._shared.limbs(tile, "query")[mine]
        write_query(builder, self._machine, name, tile, sums[mine],
                    self._vector(tile, "q_gain")[mine], rope, factor, limbs)
        return limbs

    def _gated(self, builder, tile, squares):
        """Inputs of the last matrix that this tile makes; ``squares``: sum of those of x."""
        machine, shared, place = self._machine, self._shared, self._tiles[tile]
        limbs = shared.limbs(tile, "normed")
        gating = Gate(builder, machine, f"tile {tile} gate", tile, float(GELU_BETA))
        if self._late:
            gating.keep_factor(*squares.total())
        else:
            normed_limbs(builder, machine, f"tile {tile} FFN norm", tile, shared.x(tile),
                         self._vector(tile, "ffn_gain"), squares, limbs)
        kept = set()
        gates, ups = (Product(builder, f"tile {tile} {name}", place[name], limbs, kept=kept)
                      for name in ("gate", "up"))
        scales, gains = self._vector(tile, "gate_scale"), self._vector(tile, "up_gain")
        for n, vector in enumerate(self._part.blocks(tile, self._ffn)):
            gating.add(gates.column(n), ups.column(n), scales[n], gains[n],
                       shared.limbs(tile, "gated")[vector])

    def _feed(self, tile, squares, chain, c, value):
        """What the network in the middle needs of vector ``c`` of the new residual stream."""
        if self._late:
            gain = self._tiles[tile]["ffn_gain"].at(c)
            write_limbs(chain, chain.alu("MUL", value, chain.read(gain)),
                        self._shared.limbs(tile, "normed")[c])
        squares.add(chain, chain.alu("MUL", value, value))

    def _output(self, builder, name, source, then=None):
        """A matrix back to the residual stream, its sums exchanged, its norm and the addition;
        ``then``: by tile, what uses the new residual stream as it is made."""
        machine, shared = self._machine, self._shared
        tiles = range(machine.system.tiles)
        for tile in tiles:
            builder.operation = f"{name} projection"
            work = Product(builder, f"tile {tile} {name}", self._tiles[tile][name],
                           shared.limbs(tile, source))
            for n, vector in enumerate(self._part.blocks(tile, self._hidden)):
                total = work.column(n)
                chain = Chain(self._cfg, f"tile {tile} {name} sum {vector}", tile)
                chain.write(chain.acc(*total), shared.sums(tile)[vector])
                builder.add(chain.cluster())
        for tile in tiles:
            mine = self._part.blocks(tile, self._hidden)
            builder.operation = f"exchange {name}"
            exchange(builder, machine, f"{name} sums", tile,
                     [[shared.sums(other)[vector] for vector in mine] for other in tiles])
        for tile in tiles:
            builder.operation = f"{name} norm"
            add_normed(builder, machine, f"tile {tile} {name} norm", tile, shared.sums(tile),
                       self._vector(tile, f"{name}_scale"), self._vector(tile, f"{name}_gain"),
                       self._eps(tile, name), shared.x(tile),
                       then[tile] if then else None)
