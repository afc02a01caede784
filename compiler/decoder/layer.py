"""One decoder layer on all tiles: its operations in order."""

from functools import partial

from ..errors import CompileError
from ..lower.product import Product
from .chunks import attend
from .exchange import exchange
from .feed_forward import Gate
from .groups import chunk_of
from .heads import Heads
from .pacing import MIX, PROJECT, ROWS, SCORE, VALUES, in_order
from .part import Part
from .places import TileLayers
from .reductions import OrderedSum
from .sharded import ShardedHeads
from .vectors import (
    add_output,
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
    record, caches : Record
        As of `TileLayers`.
    layers : list of QuantisedLayer
    model : QuantisedModel
        Theirs.
    part : Partition
        Theirs.
    slots : int
        Slots of their KV caches on a tile.
    shared : SharedPlaces
        Residual stream, buffers, angles and limits, the same for all layers.
    order : AttentionOrder
        Which caches there are, and who goes before whom.
    level : int
        Depth of loops within a layer.
    """

    def __init__(self, machine, record, caches, layers, model, part, slots, shared, order, level):
        self._machine = machine
        self._late = model.late_norms
        self._activation = model.activation
        self._normed_heads = layers[0].qk_norm, layers[0].v_norm
        self._slots = slots
        self._loops = shared.loops(slots)
        if self._loops and order.in_turn:
            raise CompileError("Positions that replace others of a window of "
                               f"{layers[0].window} within a step cannot go through caches of "
                               f"{slots} slots, which are loops: use a shorter context, or fewer "
                               "positions a step")
        self._level = level
        self._sequences = shared.sequences
        self._cfg = machine.cfg
        self._part = part
        self._hidden = layers[0].o.shape[1]
        self._ffn = layers[0].gate.shape[1]
        self._order = order
        self._tiles = [TileLayers(machine, record, caches, layers, part, slots, tile, order.caches,
                                  self._loops) for tile in range(machine.system.tiles)]

    def emit(self, builder, rope, pace, apart=False):
        """Append the operations of one layer to ``builder``.

        Parameters
        ----------
        builder : Builder
        rope : list of list of dict
            ``cos`` and ``sin``, by tile and sequence.
        pace : Pace
        apart : bool
            Attention stays apart from what is before and behind it (it is unrolled).

        Returns
        -------
        list of Part
            In order of time; one, unless there are loops or attention is apart.
        """
        jobs, makes, every, parts = [], {}, list(self._heads(builder, rope)), []
        groups = [group for heads in every for group in heads.groups()]
        chunk = chunk_of(self._cfg, groups) if self._loops else None
        for heads in every:
            mine, made = heads.jobs(pace, apart or bool(chunk))
            jobs += mine
            makes |= made
        if apart or chunk:
            self._carry_out(jobs, PROJECT, VALUES)
            if chunk:
                parts = attend(builder, self._machine, groups, chunk, self._level,
                               lambda: [heads.between() for heads in every],
                               lambda: [heads.behind() for heads in every])
            else:
                parts.append(Part(0, len(builder.clusters)))
                self._carry_out(jobs, SCORE, MIX)
                parts.append(Part(parts[0].last, len(builder.clusters)))
            jobs, makes = [], {vector: [] for vector in makes}
        attended = self._rows(builder, "o", "attended", jobs, makes, pace, 2)
        gates = [Gate(builder, self._machine, f"tile {place.tile} gate", place.tile,
                      self._activation) for place in self._tiles]
        factors = self._output(builder, "o", attended, gates)
        jobs, makes = [], {}
        for place, gate in zip(self._tiles, gates, strict=True):
            jobs += self._gated(builder, place, gate, factors[place.tile], pace, makes)
        self._output(builder, "down",
                     self._rows(builder, "down", "gated", jobs, makes, pace, 9))
        return [*parts, Part(parts[-1].last if parts else 0, len(builder.clusters))]

    @staticmethod
    def _carry_out(jobs, *stages):
        for job in in_order([job for job in jobs if job.stage in stages]):
            job.emit()

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
                yield Heads(builder, machine, part, self._tiles[tile], self._sequences,
                            self._slots, rope[tile], norms, factors[tile], self._order)
            else:
                yield ShardedHeads(builder, machine, part, group, self._tiles, self._sequences,
                                   self._slots, rope, norms, factors, self._order)

    def _attention_norm(self, builder, place):
        """The inputs of Q, K and V; returns by sequence the factor that is still missing, or None
        where the heads' own norms cancel it or it is in the inputs."""
        tile, machine, factors = place.tile, self._machine, []
        name, gain = f"tile {tile} attention norm", place.vector("attention_gain")
        builder.operation = "attention norm"
        for shared in self._sequences:
            limbs, factor = shared.limbs(tile, "normed"), None
            if self._late:
                scaled_limbs(builder, name, tile, shared.x(tile), gain, limbs)
            if not (self._late and all(self._normed_heads)):
                squares = sum_of_squares(builder, machine, name, tile, shared.x(tile),
                                         place.eps("attention"))
                if not self._late:
                    normed_limbs(builder, machine, name, tile, shared.x(tile), gain, squares,
                                 limbs)
                elif len(self._sequences) == 1:
                    factor = keep_factor(builder, machine, tile, *squares.total(), "RSQRT",
                                         norm=True)
                else:
                    factor = self._write_factor(builder, squares, shared.factors(tile)[0])
            factors.append(factor)
        return factors

    @staticmethod
    def _write_factor(builder, squares, place):
        """rsqrt of a sum into SRAM, where entries are too few for all sequences; returns the
        place."""
        chain, total = squares.total()
        chain.write(chain.alu("RSQRT", total), place)
        builder.add(chain.cluster())
        return place

    def _rows(self, builder, name, source, jobs, makes, pace, alus):
        """Carry out ``jobs`` and the matrix ``name``, whose inputs they make, row by row as these
        come.

        Parameters
        ----------
        jobs : list of Job
        makes : dict of int to list of Job
            Those that make each vector of ``source``.
        pace : Pace
        alus : int
            Operations of ALUs on the way from the last sum to there.

        Returns
        -------
        list of Product
            By tile.
        """
        # behind the entries that gate or Q still need
        first = 2 * len(self._sequences) * len(self._sequences[0].limbs(0, "normed"))
        products = [Product(builder, f"tile {place.tile} {name}", place.matrices[name],
                            [shared.limbs(place.tile, source) for shared in self._sequences],
                            first_entry=first) for place in self._tiles]
        jobs = list(jobs)
        for work, place in zip(products, self._tiles, strict=True):
            for k, made in makes.items():
                after = [(job, pace.chain(alus) + self._machine.away(job.tile, place.tile))
                         for job in made]
                jobs.append(pace.job(place.tile, ROWS, place.matrices[name].n_blocks,
                                     partial(self._row, builder, name, work, k), after))
        for job in in_order(jobs):
            job.emit()
        return products

    @staticmethod
    def _row(builder, name, work, k):
        builder.operation = f"{name} projection"
        work.row(k)

    def _gated(self, builder, place, gating, factors, pace, makes):
        """Jobs that make the inputs of the last matrix, noted in ``makes``.

        Parameters
        ----------
        gating : Gate
        factors : list of (Entry, At or None)
            By sequence.
        """
        machine, tile = self._machine, place.tile
        vectors = [shared.limbs(tile, "normed") for shared in self._sequences]
        kept = set()
        gates, ups = (Product(builder, f"tile {tile} {name}", place.matrices[name], vectors,
                              kept=kept) for name in ("gate", "up"))
        scales, gains = place.vector("gate_scale"), place.vector("up_gain")

        def emit(n, vector):
            builder.operation = "gated network"
            sums = zip(gates.column(n), ups.column(n), factors, strict=True)
            for shared, (gate, up, factor) in zip(self._sequences, sums, strict=True):
                gating.add(gate, up, scales[n], gains[n], shared.limbs(tile, "gated")[vector],
                           factor)
            builder.operation = "exchange gated"
            for shared in self._sequences:
                exchange(builder, machine, "gated limbs", tile,
                         shared.limb_places("gated", [vector]), readers=self._part.readers)

        jobs = []
        for n, vector in enumerate(self._part.blocks(tile, self._ffn)):
            jobs.append(pace.job(tile, PROJECT, 2 * place.matrices["gate"].k_blocks,
                                 partial(emit, n, vector)))
            makes[vector] = jobs[-1:]
        return jobs

    def _feed(self, place, shared, squares, chain, c, value):
        """What the network in the middle needs of vector ``c`` of the new residual stream."""
        if self._late:
            gain = place.vector("ffn_gain")[c]
            write_limbs(chain, chain.alu("MUL", value, chain.read(gain)),
                        shared.limbs(place.tile, "normed")[c])
        squares.add(chain, chain.alu("MUL", value, value))

    def _fed(self, builder, place, gate, shared, squares):
        """The rest of what it needs; returns its missing factor, or None."""
        tile = place.tile
        if not self._late:
            normed_limbs(builder, self._machine, f"tile {tile} FFN norm", tile, shared.x(tile),
                         place.vector("ffn_gain"), squares, shared.limbs(tile, "normed"))
            return None
        if not self._part.blocks(tile, self._ffn):
            builder.add(squares.total()[0].cluster())       # nothing here to be scaled by it
            return None
        if len(self._sequences) == 1:
            return gate.keep_factor(*squares.total())
        return self._write_factor(builder, squares, shared.factors(tile)[1])

    def _output(self, builder, name, products, gates=None):
        """A matrix back to the residual stream, its sums exchanged, its norm and the addition;
        ``gates``, by tile: what uses the new residual stream as it is made.

        Returns
        -------
        list of list
            By tile and sequence: what `_fed` says.
        """
        machine, factors = self._machine, [[] for _ in self._tiles]
        tiles = range(machine.system.tiles)
        for shared in self._sequences:
            sources = [list(shared.sums(tile)) for tile in tiles]
            for tile, work in enumerate(products):
                mine, sums = self._part.blocks(tile, self._hidden), work.sums(shared.number)
                builder.operation = f"exchange {name}"
                exchange(builder, machine, f"{name} sums", tile,
                         [[shared.sums(other)[vector] for vector in mine] for other in tiles],
                         sums)
                sources[tile][mine.start:mine.stop] = sums
            for tile, place in enumerate(self._tiles):
                builder.operation = f"{name} norm"
                squares = then = None
                if gates:
                    squares = OrderedSum(builder, machine, f"tile {tile} FFN norm", tile,
                                         place.eps("ffn"))
                    then = partial(self._feed, place, shared, squares)
                add_output(builder, machine, f"tile {tile} {name} norm", tile, sources[tile],
                           place.vector(f"{name}_scale"), place.vector(f"{name}_gain"),
                           place.eps(name), shared.x(tile), then)
                if gates:
                    builder.operation = "gated network"
                    factors[tile].append(self._fed(builder, place, gates[tile], shared, squares))
        return factors
