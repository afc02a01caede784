"""Compiling a decoder: the step loop, the layer loops, and what each region of time holds."""

import numpy as np

from ..collection import uncollected
from ..errors import CompileError
from ..lower.builder import Builder
from ..lower.chain import At, Chain
from ..lower.layout import Memory
from ..lower.record import Record
from ..plan import Plan, Region
from ..program import from_plan
from ..schedule.listing import schedule
from ..schedule.modulo import modulo_schedule
from .layer import LayerGroup
from .machine import Machine
from .pacing import Pace
from .part import Part, RegionOfTime, in_turn
from .partition import Partition, best_shards
from .positions import AttentionOrder, positions_of
from .rope import RopePlaces
from .shared import SharedPlaces
from .slots import cache_slots, layer_groups
from .tokens import TokenPlaces

__all__ = ["UNROLLED", "Compilation"]

#: Sequences that may go through a step side by side.
MAX_BATCH = 64
_LAYER_LEVEL = 1        #: depth of the LOOP over layers of one shape
#: Blocks of a KV cache up to which attention is unrolled: 1,024 positions of a tile of 16 lanes.
UNROLLED = 64
#: Estimates of how much longer chains of operations take beside weights that are being loaded than
#: on an idle tile; the order of work that gives the shortest list is taken.
SLACKS = (1.25, 1.0, 2.0)


class Compilation:
    """One compilation: data placed first, then region after region of the step.

    Parameters
    ----------
    system, model, positions, search, shards, batch, consecutive, unrolled, report
        As in `program.compile_decoder`.

    Attributes
    ----------
    system : SystemConfig
    model : QuantisedModel
    positions : int
    shards : tuple of int
        In how many shares the tiles have the positions of each layer.
    regions : list of RegionOfTime
        In order of time, once `decoder` or `layers` has been called.
    builder : type
        What collects the clusters of a region.
    """

    builder = Builder

    def __init__(self, system, model, positions, search=True, shards=None, batch=1,
                 consecutive=False, unrolled=UNROLLED, report=None):
        if model.lanes != system.tile.lanes:
            raise CompileError(f"Model was quantised for {model.lanes} lanes, the tile has "
                               f"{system.tile.lanes}")
        if not 1 <= positions <= model.max_position:
            raise CompileError(f"Context must be 1 to {model.max_position} positions, as the model "
                               f"has, not {positions}")
        if positions > system.tile.mem_words:
            lanes, there = system.tile.lanes, system.tile.mem_words
            raise CompileError(f"Context of {positions} positions needs {positions * lanes:,} "
                               f"bytes of a slice for its prompt, a slice has {there * lanes:,}: "
                               "ask for fewer, or raise TileConfig.mem_words")
        self.system = system
        self.model = model
        self.positions = positions
        if not 1 <= batch <= MAX_BATCH:
            raise CompileError(f"Batch must be 1 to {MAX_BATCH} sequences, not {batch}")
        self._consecutive = consecutive
        self._positions = positions_of(batch, consecutive, positions)
        if unrolled < 1:
            raise CompileError(f"Unrolled blocks of a cache must be at least 1, not {unrolled}")
        self._machine = Machine(system)
        self._memory = Memory(system)
        self.regions = []
        self._stretches = []        # runs, and the regions that run one after the other
        self._search = search
        self._report = report or (lambda text: None)
        self._record = Record(self._memory, system, "shared")
        self._context = Record(self._memory, system, "context")
        if shards is None or isinstance(shards, int):
            shards = (shards,) * len(model.layers)
        self._parts = [self._partition(*of) for of in zip(model.layers, shards, strict=True)]
        self.shards = tuple(part.shards for part in self._parts)
        self._place_shared(unrolled)

    def _slots(self, layer):
        return cache_slots(layer.window, self.positions)

    def _partition(self, layer, shards):
        tiles, lanes, slots = self.system.tiles, self.system.tile.lanes, self._slots(layer)
        if self._order(layer).in_turn:
            if shards not in (None, 1):
                raise CompileError("Tiles cannot share positions that replace others within a "
                                   f"step, a window of {layer.window} does: use 1 share, or as "
                                   "many positions as the window has")
            shards = 1
        if shards is None:
            apart = max(self._machine.away(0, tile) for tile in range(tiles))
            shards = best_shards(layer, self.system.tile, tiles, slots, apart)
        part = Partition(layer, tiles, lanes, shards)
        return part if shards <= slots // 4 else Partition(layer, tiles, lanes, slots // 4)

    def _order(self, layer):
        return AttentionOrder(len(self._positions), self._consecutive,
                              self._slots(layer) < self.positions)

    def _place_shared(self, unrolled):
        model, tiles = self.model, range(self.system.tiles)
        queries = [len(part.group_heads(tile)) * part.head_dim
                   for part in self._parts for tile in tiles]
        sizes = {"hidden": model.hidden, "gated": model.ffn, "query": max(queries),
                 "attended": max(layer.heads * layer.head_dim for layer in model.layers)}
        self._caches = sorted({(self._slots(layer) // part.shards, part.shards)
                               for layer, part in zip(model.layers, self._parts, strict=True)})
        self._shared = SharedPlaces(self._machine, self._record, self._context, sizes,
                                    self._caches, self._parts, float(model.score_scale),
                                    self._positions, unrolled)
        self._ropes = [RopePlaces(self._machine, self._record, f"rope {number}", rope,
                                  self._positions)
                       for number, rope in enumerate(model.ropes)]

    @uncollected
    def decoder(self):
        """The whole decode."""
        tokens = TokenPlaces(self._machine, self._record, self._context, self.model,
                             self.positions, self._shared)
        groups = self._place_layers()
        builder = self._region()
        tokens.emit_token(builder)
        self._emit_position(builder)
        self._emit_layers(groups)
        builder = self._region()
        tokens.emit_head(builder)
        self._finish(builder)
        return self._program(self.positions)

    @uncollected
    def layers(self, inputs, apart=False):
        """The layers alone.

        Parameters
        ----------
        inputs : array of float32 (steps, hidden)
            Of a batch, those of every sequence.
        apart : bool
            Of a single layer: attention becomes a region of its own, the last but one, from the
            last vector of Q, K and V to the last of its result on every tile.
        """
        lanes = self.system.tile.lanes
        rows = np.pad(inputs, ((0, 0), (0, -inputs.shape[1] % lanes)))
        table = [self._record.vector("inputs", tile, self._machine.there, rows.reshape(1, -1))
                 for tile in range(self.system.tiles)]
        groups = self._place_layers()
        builder = self._region()
        self._emit_inputs(builder, table)
        self._emit_position(builder)
        if apart:
            self._emit_apart(*groups)
        else:
            self._emit_layers(groups)
        return self._program(len(inputs))

    def _place_layers(self):
        """Data of all layers; what depends on the context lies behind all that does not, which so
        stays in place from one context to another."""
        self._record.close()
        groups, caches = [], []
        parts = iter(self._parts)
        for number, layers in enumerate(layer_groups(self.model.layers)):
            part, *others = (next(parts) for _ in layers)
            if any(other.shards != part.shards for other in others):
                raise CompileError("Layers of one shape, one behind the other, must have equal "
                                   f"shards, not {self.shards}")
            record, cache = (Record(self._memory, self.system, f"{name} {number}", len(layers),
                                    _LAYER_LEVEL) for name in ("layers", "caches"))
            group = LayerGroup(self._machine, record, cache, layers, self.model, part,
                               self._slots(layers[0]) // part.shards, self._shared,
                               self._order(layers[0]), _LAYER_LEVEL + (len(layers) > 1))
            record.close()
            groups.append((group, layers))
            caches.append(cache)
        for record in (self._context, *caches):
            record.close()
        return groups

    def _region(self):
        self._machine.begin()
        return self.builder(self.system, self._memory)

    def schedule(self, builder):
        """The first list of a region, or of a part of one."""
        return schedule(self.system.tile, builder.clusters, builder.edges, rounds=0)

    def _finish(self, builder, parts=None, runs=1, listed=None):
        """Schedule the parts of a region (None: it is one), or improve their lists; they follow
        what was before."""
        found = []
        for part, mine, body in listed or self._listed(builder, parts):
            if part and part.turns > 1:
                mine, carried = builder.turning(part.first, part.second, part.last, part.level)
                body = modulo_schedule(self.system.tile, mine.clusters, mine.edges, carried,
                                       part.turns)
            elif self._search:
                body = body.improved()
            self._report(f"region {len(self.regions)}: {len(mine.clusters):,} clusters in "
                         f"{body.end:,} cycles")
            self.regions.append(RegionOfTime(mine, body, runs))
            found.append(body)
        self._stretches.append((runs, found))

    def _listed(self, builder, parts):
        """Each part with its graph and its list; of loops neither."""
        builder.check_accumulators()
        if parts is None or len(parts) == 1:
            if self._machine.relays:
                builder.reorder_wires()
            parts, mine = [None], [builder]
        else:
            mine = [builder.part(*part[:2]) if part.turns == 1 else None for part in parts]
        return [(part, graph, graph and self.schedule(graph))
                for part, graph in zip(parts, mine, strict=True)]

    def _emit_layers(self, groups):
        for group, layers in groups:
            rope = self._ropes[layers[0].rope]
            angles = [rope.angles(tile) for tile in range(self.system.tiles)]
            best = None
            for slack in SLACKS if self._search else SLACKS[:1]:
                builder = self._region()
                listed = self._listed(builder, group.emit(builder, angles,
                                                          Pace(self.system, slack)))
                cycles = sum(body.end for _, _, body in listed if body)
                self._report(f"region {len(self.regions)}, order for slack {slack}: "
                             f"{cycles:,} cycles")
                if best is None or cycles < best[0]:
                    best = cycles, builder, listed
            _, builder, listed = best
            self._finish(builder, runs=len(layers), listed=listed)

    def _emit_apart(self, group):
        """A layer in three regions: before, within and behind attention."""
        group, (layer,) = group
        builder, rope = self._region(), self._ropes[layer.rope]
        self._finish(builder, group.emit(
            builder, [rope.angles(tile) for tile in range(self.system.tiles)],
            Pace(self.system, SLACKS[0]), apart=True))

    def _emit_position(self, builder):
        """What the step's position alone decides: score limits and angles; the end of a region."""
        short = [of for of in self._caches if not self._shared.loops(of[0])]
        for slots, shards in short:
            self._shared.emit_limits(builder, slots, shards)
        for rope in self._ropes:
            rope.emit(builder)
        parts = [Part(0, len(builder.clusters))]
        for slots, shards in self._caches:
            if (slots, shards) not in short:
                parts.append(self._shared.emit_limits_in_loop(builder, slots, shards, 1))
        self._finish(builder, parts)

    def _emit_inputs(self, builder, table):
        """Copy the rows of the step's positions into the residual streams."""
        for tile, place in enumerate(table):
            for shared in self._shared.sequences:
                targets = shared.x(tile)
                mask = (1 << (place.words // len(targets) - 1).bit_length()) - 1
                word, terms = shared.position.field(0, mask, len(targets))
                for c, target in enumerate(targets):
                    at = place.at(word + c)
                    chain = Chain(builder.cfg, f"tile {tile} input {c}", tile)
                    value = chain.read(At(at.slices, at.address, terms))
                    chain.write(chain.alu("PASS", value), target)
                    builder.add(chain.cluster())

    def _program(self, positions):
        step = Region(start=0, period=0, count=None)
        cursor = 0
        for runs, bodies in self._stretches:
            if runs > 1:
                loop = Region(cursor, 0, runs)
                loop.period = in_turn(loop, bodies, 0)
                step.children.append(loop)
                cursor += runs * loop.period + 1
            else:
                cursor = in_turn(step, bodies, cursor)
        step.period = cursor
        self._report(f"{cursor:,} cycles a step; making words")
        program = from_plan(Plan(Region(0, cursor, 1, children=[step]), self.system),
                            self._memory)
        program.binary.steps = positions >> self._positions[0].bits
        program.shards = self.shards
        return program
