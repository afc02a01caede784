"""Random matrix-vector products: the program, the exact result, and the result that tiles hold."""

import numpy as np

from compiler.lower.matvec import matvec_program
from compiler.program import from_plan
from compiler.verify import verify

__all__ = ["compile_product", "result_of"]


def compile_product(system, k, n, rng):
    """Program of a random product, and the exact result as float32 (n,)."""
    weights = rng.integers(-128, 128, (k, n)).astype(np.int8)
    x = rng.integers(-32639, 32640, k)
    program = from_plan(*matvec_program(system, weights, x))
    verify(system, program.binary)
    exact = x.astype(np.int64) @ weights.astype(np.int64)
    return program, exact.astype(np.float32)


def result_of(program, sram, n):
    """The product (n,) as it lies in the SRAMs: tile ``i`` has vectors ``i, i + tiles, ...``."""
    cfg, tiles = program.system.tile, program.system.tiles
    parts = np.zeros((-(-n // cfg.lanes), cfg.lanes), np.float32)
    for tile in range(tiles):
        symbol = program.symbols[f"y@{tile}"]
        units = [cfg.slices("mem").index(name) for name in symbol.slices]
        mine = parts[tile::tiles]
        words = sram[tile][units, symbol.address:symbol.address + len(mine)]
        mine[:] = np.ascontiguousarray(words.transpose(1, 2, 0)).view("<f4")[..., 0]
    return parts.reshape(-1)[:n]
