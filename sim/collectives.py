"""Random operands of collectives, what has to come of them, and what the tiles hold."""

import numpy as np

from compiler.collectives import collective_program, vectors_of
from compiler.program import from_plan
from compiler.verify import verify

__all__ = ["compile_collective", "expected", "operands", "result_of"]


def operands(system, collective, vectors, rng, dtype=np.int32):
    """Vectors of each tile: list of arrays of ``dtype`` (n, lanes)."""
    def draw(count):
        shape = (count, system.tile.lanes)
        if dtype == np.int32:
            return rng.integers(-2**31, 2**31, shape).astype(np.int32)
        return (rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 7, shape)).astype(np.float32)
    return [draw(count) for count in vectors_of(collective, system.tiles, vectors)[0]]


def expected(collective, data):
    """What every tile shall have in the end: list of arrays (n, lanes).

    Sums of int32 are modulo 2**32, those of float32 are added in the order of the tiles.
    """
    tiles = len(data)
    if collective == "all_gather":
        vectors = sum(map(len, data))
        return [np.stack([data[v % tiles][v // tiles] for v in range(vectors)])] * tiles
    total = data[0]
    for mine in data[1:]:
        total = total + mine
    return [total if collective == "all_reduce" else total[tile::tiles] for tile in range(tiles)]


def compile_collective(system, collective, algorithm, data):
    """Program of a collective, verified."""
    program = from_plan(*collective_program(system, collective, algorithm, data))
    verify(system, program.binary)
    return program


def result_of(program, sram, tile, like):
    """What ``tile`` has in its SRAM: an array in the form of ``like``."""
    mems = program.system.tile.slices("mem")
    found, names = np.zeros_like(like), []
    while (name := f"y{len(names)}@{tile}") in program.symbols:
        names.append(name)
    for number, name in enumerate(names):
        symbol, mine = program.symbols[name], found[number::len(names)]
        units = [mems.index(slice_) for slice_ in symbol.slices]
        words = sram[tile][units, symbol.address:symbol.address + len(mine)]
        mine[:] = np.ascontiguousarray(words.transpose(1, 2, 0)).view(like.dtype)[..., 0]
    return found
