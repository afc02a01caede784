"""Cosines and sines of the step's position, once per step for every kind of layer."""

import numpy as np

from compiler.quantise.graph import ROPE_LOW

from ..lower.chain import At, Chain
from .shared import of_sequence

__all__ = ["RopePlaces"]

_LOW_BITS = ROPE_LOW.bit_length() - 1


class RopePlaces:
    """Two-level tables of one kind of layer, and the angles of a step's positions, on every tile.

    Row ``i`` of a level lies ``i`` times ``vectors`` words behind the first.

    Parameters
    ----------
    machine : Machine
    record : Record
        Of one layer; the caller closes it.
    name : str
    rope : Rope
    positions : list of StepPosition
        By sequence.
    """

    def __init__(self, machine, record, name, rope, positions):
        self._machine = machine
        self._vectors = rope.cos_low.shape[1] // machine.cfg.lanes
        self._high_mask = (1 << (len(rope.cos_high) - 1).bit_length()) - 1
        self._positions = positions
        self._tiles = []
        for tile in range(machine.system.tiles):
            found = {}
            for table in ("cos_low", "sin_low", "cos_high", "sin_high"):
                values = np.asarray(getattr(rope, table), np.float32)
                slices = machine.here if table.endswith("high") else machine.there
                found[table] = record.vector(f"{name} {table}", tile, slices,
                                             values.reshape(1, -1))
            for position in dict.fromkeys(positions):
                for result, slices in (("cos", machine.here), ("sin", machine.there)):
                    found[result, position] = record.add(
                        of_sequence(f"{name} {result}", position.number), tile, slices,
                        self._vectors)
            self._tiles.append(found)

    def angles(self, tile):
        """By sequence, ``cos`` and ``sin`` of its position: lists of At."""
        return [{name: [self._tiles[tile][name, position].at(c) for c in range(self._vectors)]
                 for name in ("cos", "sin")} for position in self._positions]

    def _row(self, tile, table, c, position):
        """Vector ``c`` of the row that a position selects."""
        shift, mask = (_LOW_BITS, self._high_mask) if table.endswith("high") else \
            (0, ROPE_LOW - 1)
        word, terms = position.field(shift, mask, self._vectors)
        at = self._tiles[tile][table].at(c + word)
        return At(at.slices, at.address, (*at.terms, *terms), at.key)

    def emit(self, builder):
        """cos = cos_high cos_low - sin_high sin_low; sin = sin_high cos_low + cos_high sin_low."""
        for tile in range(self._machine.system.tiles):
            for position in dict.fromkeys(self._positions):
                for c in range(self._vectors):
                    self._emit(builder, tile, position, c)

    def _emit(self, builder, tile, position, c):
        for result, op, first, second in (
                ("cos", "SUB", ("cos_high", "cos_low"), ("sin_high", "sin_low")),
                ("sin", "ADD", ("sin_high", "cos_low"), ("cos_high", "sin_low"))):
            chain = Chain(builder.cfg, f"tile {tile} {result} {c}", tile)
            products = [chain.alu("MUL", *(chain.read(self._row(tile, table, c, position))
                                           for table in pair)) for pair in (first, second)]
            later = chain.alu("PASS", products[0])      # the tables are read in turn
            chain.write(chain.alu(op, later, products[1]),
                        self._tiles[tile][result, position].at(c))
            builder.add(chain.cluster())
