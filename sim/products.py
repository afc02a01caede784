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
    """The product (n,) as `matvec_program` leaves it in the SRAMs."""
    cfg, tiles = program.system.tile, program.system.tiles
    mxms, mems = cfg.slices("mxm"), cfg.slices("mem")
    parts = np.zeros((-(-n // cfg.lanes), cfg.lanes), np.float32)
    for tile in range(tiles):
        for number, mxm in enumerate(mxms):
            mine = parts[tile::tiles][number::len(mxms)]
            if len(mine):
                symbol = program.symbols[f"y.{mxm}@{tile}"]
                units = [mems.index(name) for name in symbol.slices]
                words = sram[tile][units, symbol.address:symbol.address + len(mine)]
                mine[:] = np.ascontiguousarray(words.transpose(1, 2, 0)).view("<f4")[..., 0]
    return parts.reshape(-1)[:n]
