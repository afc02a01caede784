"""Cosines and sines of the step's position, once per step for every kind of layer."""

import numpy as np

from compiler.quantise.graph import ROPE_LOW

from ..lower.chain import At, Chain
from ..plan import Term

__all__ = ["RopePlaces"]

_LOW_BITS = ROPE_LOW.bit_length() - 1


class RopePlaces:
    """Two-level tables of one kind of layer, and the step's angles, on every tile.

    Row ``i`` of a level lies ``i`` times ``vectors`` words behind the first.

    Parameters
    ----------
    machine : Machine
    record : Record
        Of one layer; the caller closes it.
    name : str
    rope : Rope
    """

    def __init__(self, machine, record, name, rope):
        self._machine = machine
        self._vectors = rope.cos_low.shape[1] // machine.cfg.lanes
        self._high_mask = (1 << (len(rope.cos_high) - 1).bit_length()) - 1
        self._tiles = []
        for tile in range(machine.system.tiles):
            found = {}
            for table in ("cos_low", "sin_low", "cos_high", "sin_high"):
                values = np.asarray(getattr(rope, table), np.float32)
                slices = machine.here if table.endswith("high") else machine.there
                found[table] = record.vector(f"{name} {table}", tile, slices,
                                             values.reshape(1, -1))
            for result, slices in (("cos", machine.here), ("sin", machine.there)):
                found[result] = record.add(f"{name} {result}", tile, slices, self._vectors)
            self._tiles.append(found)

    def angles(self, tile):
        """``cos`` and ``sin`` of the step, lists of At."""
        return {name: [self._tiles[tile][name].at(c) for c in range(self._vectors)]
                for name in ("cos", "sin")}

    def _row(self, tile, table, c):
        """Vector ``c`` of the row that the step selects."""
        at = self._tiles[tile][table].at(c)
        shift, mask = (_LOW_BITS, self._high_mask) if table.endswith("high") else \
            (0, ROPE_LOW - 1)
        terms = (Term(0, shift, mask, self._vectors),) if mask else ()
        return At(at.slices, at.address, (*at.terms, *terms), at.key)

    def emit(self, builder):
        """cos = cos_high cos_low - sin_high sin_low; sin = sin_high cos_low + cos_high sin_low."""
        for tile in range(self._machine.system.tiles):
            for c in range(self._vectors):
                for result, op, first, second in (
                        ("cos", "SUB", ("cos_high", "cos_low"), ("sin_high", "sin_low")),
                        ("sin", "ADD", ("sin_high", "cos_low"), ("cos_high", "sin_low"))):
                    chain = Chain(builder.cfg, f"tile {tile} {result} {c}", tile)
                    products = [chain.alu("MUL", *(chain.read(self._row(tile, table, c))
                                                   for table in pair)) for pair in (first, second)]
                    later = chain.alu("PASS", products[0])      # the tables are read in turn
                    chain.write(chain.alu(op, later, products[1]),
                                self._tiles[tile][result].at(c))
                    builder.add(chain.cluster())
