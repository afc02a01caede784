"""One decoder layer on all tiles: its operations in order."""

from functools import partial

from ..lower.product import Product
from .feed_forward import Gate
from .heads import Heads
from .pacing import PROJECT, ROWS, in_order
from .places import TileLayers
from .sharded import ShardedHeads
from .vectors import (
    OrderedSum,
    add_output,
    exchange,
    keep_factor,
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
    model : QuantisedModel
        Theirs.
    part : Partition
        Theirs.
    slots : int
        Slots of their KV caches on a tile.
    shared : SharedPlaces
        Residual stream, buffers, angles and limits, the same for all layers.
    """

    def __init__(self, machine, record, layers, model, part, slots, shared):
        self._machine = machine
        self._late = model.late_norms
        self._activation = model.activation
        self._normed_heads = layers[0].qk_norm, layers[0].v_norm
        self._slots = slots
        self._shared = shared
        self._cfg = machine.cfg
        self._part = part
        self._hidden = layers[0].o.shape[1]
        self._ffn = layers[0].gate.shape[1]
        self._tiles = [TileLayers(machine, record, layers, self._part, slots, tile)
                       for tile in range(machine.system.tiles)]

    def emit(self, builder, rope, pace):
        """Append the operations of one layer to ``builder``.

        Parameters
        ----------
        builder : Builder
        rope : list of dict
            ``cos`` and ``sin`` of the step, by tile.
        pace : Pace
        """
        jobs, makes = [], {}
        for heads in self._heads(builder, rope):
            mine, made = heads.jobs(pace)
            jobs += mine
            makes |= made
        attended = self._rows(builder, "o", "attended", jobs, makes, pace, 2)
        squares = [OrderedSum(builder, self._machine, f"tile {place.tile} FFN norm", place.tile,
                              place.eps("ffn")) for place in self._tiles]
        self._output(builder, "o", attended, [
            partial(self._feed, place, squares[place.tile]) for place in self._tiles])
        jobs, makes = [], {}
        for place in self._tiles:
            jobs += self._gated(builder, place, squares[place.tile], pace, makes)
        self._output(builder, "down",
                     self._rows(builder, "down", "gated", jobs, makes, pace, 9))

    def _heads(self, builder, rope):
        """Attention, by tile or by group of tiles that share the positions."""
        part, machine, norms = self._part, self._machine, self._normed_heads
        for tile in range(0, part.tiles, part.shards):
            group = part.group(tile)
            if not part.group_heads(tile):
                continue
            factors = {other: self._attention_norm(builder, self._tiles[other]) for other in group
                       if part.heads(other) or part.kv_heads(other)}
            if part.shards == 1:
                yield Heads(builder, machine, part, self._tiles[tile], self._shared, self._slots,
                            rope[tile], norms, factors[tile])
            else:
                yield ShardedHeads(builder, machine, part, group, self._tiles, self._shared,
                                   self._slots, rope, norms, factors)

    def _attention_norm(self, builder, place):
        """The inputs of Q, K and V; returns the factor that is still missing: (ALU, entry), or None
        where the heads' own norms cancel it or it is in the inputs."""
        tile, shared = place.tile, self._shared
        name = f"tile {tile} attention norm"
        builder.operation = "attention norm"
        limbs, gain = shared.limbs(tile, "normed"), place.vector("attention_gain")
        if self._late:
            scaled_limbs(builder, name, tile, shared.x(tile), gain, limbs)
            if all(self._normed_heads):
                return None
        squares = sum_of_squares(builder, self._machine, name, tile, shared.x(tile),
                                 place.eps("attention"))
        if self._late:
            return keep_factor(builder, self._machine, tile, *squares.total(), "RSQRT", norm=True)
        normed_limbs(builder, self._machine, name, tile, shared.x(tile), gain, squares, limbs)
        return None

    def _rows(self, builder, name, source, jobs, makes, pace, alus):
        """Carry out ``jobs`` and the matrix ``name``, whose inputs they make, row by row as these
        come.

        Parameters
        ----------
        jobs : list of Job
        makes : dict of int to Job
            The one that makes each vector of ``source``.
        pace : Pace
        alus : int
            Operations of ALUs on the way from the last sum to there.

        Returns
        -------
        list of Product
            By tile.
        """
        first = 2 * len(self._shared.limbs(0, "normed"))    # entries that gate or Q still need
        products = [Product(builder, f"tile {place.tile} {name}", place.matrices[name],
                            self._shared.limbs(place.tile, source), first_entry=first)
                    for place in self._tiles]
        jobs = list(jobs)
        for work, place in zip(products, self._tiles, strict=True):
            for k, job in makes.items():
                away = self._machine.away(job.tile, place.tile)
                jobs.append(pace.job(
                    place.tile, ROWS, place.matrices[name].n_blocks,
                    partial(self._row, builder, name, work, k), [(job, pace.chain(alus) + away)]))
        for job in in_order(jobs):
            job.emit()
        return products

    @staticmethod
    def _row(builder, name, work, k):
        builder.operation = f"{name} projection"
        work.row(k)

    def _gated(self, builder, place, squares, pace, makes):
        """Jobs that make the inputs of the last matrix, noted in ``makes``; ``squares``: sum of
        those of x."""
        machine, shared, tile = self._machine, self._shared, place.tile
        limbs = shared.limbs(tile, "normed")
        builder.operation = "gated network"
        gating = Gate(builder, machine, f"tile {tile} gate", tile, self._activation)
        if self._late and not self._part.blocks(tile, self._ffn):
            builder.add(squares.total()[0].cluster())       # nothing here to be scaled by it
        elif self._late:
            gating.keep_factor(*squares.total())
        else:
            normed_limbs(builder, machine, f"tile {tile} FFN norm", tile, shared.x(tile),
                         place.vector("ffn_gain"), squares, limbs)
        kept = set()
        gates, ups = (Product(builder, f"tile {tile} {name}", place.matrices[name], limbs,
                              kept=kept) for name in ("gate", "up"))
        scales, gains = place.vector("gate_scale"), place.vector("up_gain")

        def emit(n, vector):
            builder.operation = "gated network"
            gating.add(gates.column(n), ups.column(n), scales[n], gains[n],
                       shared.limbs(tile, "gated")[vector])
            builder.operation = "exchange gated"
            exchange(builder, machine, "gated limbs", tile, shared.limb_places("gated", [vector]))

        jobs = []
        for n, vector in enumerate(self._part.blocks(tile, self._ffn)):
            jobs.append(pace.job(tile, PROJECT, 2 * place.matrices["gate"].k_blocks,
                                 partial(emit, n, vector)))
            makes[vector] = jobs[-1]
        return jobs

    def _feed(self, place, squares, chain, c, value):
        """What the network in the middle needs of vector ``c`` of the new residual stream."""
        if self._late:
            gain = place.vector("ffn_gain")[c]
            write_limbs(chain, chain.alu("MUL", value, chain.read(gain)),
                        self._shared.limbs(place.tile, "normed")[c])
        squares.add(chain, chain.alu("MUL", value, value))

    def _output(self, builder, name, products, then=None):
        """A matrix back to the residual stream, its sums exchanged, its norm and the addition;
        ``then``: by tile, what uses the new residual stream as it is made."""
        machine, shared = self._machine, self._shared
        tiles = range(machine.system.tiles)
        sources = [list(shared.sums(tile)) for tile in tiles]
        for tile, work in enumerate(products):
            mine = self._part.blocks(tile, self._hidden)
            builder.operation = f"exchange {name}"
            exchange(builder, machine, f"{name} sums", tile,
                     [[shared.sums(other)[vector] for vector in mine] for other in tiles],
                     work.sums())
            sources[tile][mine.start:mine.stop] = work.sums()
        for tile in tiles:
            place = self._tiles[tile]
            builder.operation = f"{name} norm"
            add_output(builder, machine, f"tile {tile} {name} norm", tile, sources[tile],
                       place.vector(f"{name}_scale"), place.vector(f"{name}_gain"),
                       place.eps(name), shared.x(tile), then[tile] if then else None)
