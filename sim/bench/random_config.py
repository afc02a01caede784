"""Random machines: floorplan, streams, memories, ALUs, accumulators, links."""

import numpy as np

from compiler.errors import AllocationError
from compiler.lower.layout import near_slices
from hdl.arch.config import (
    ALU_FEATURES,
    AluConfig,
    Link,
    PortConfig,
    SystemConfig,
    TileConfig,
)

__all__ = ["random_system"]

#: Slices on one side of an MXM that a matrix lies in.
_MATRIX_SLICES = 4
#: Depths of the ALUs; no unit computes in less than the least.
_ALU_DEPTHS = (6, 7, 8, 9)


def random_system(rng, *, lanes, tiles, vxm):
    """A random machine on which a matrix product can be compiled.

    Parameters
    ----------
    rng : numpy.random.Generator
    lanes : int
        4, 8 or 16.
    tiles : int
        Every two are joined by a link in each direction.
    vxm : bool
        Whether the floorplan has a vxm slice.

    Returns
    -------
    hdl.arch.config.SystemConfig
    """
    tile = TileConfig(
        lanes=lanes,
        streams=int(rng.choice([8, 12, 16])),
        floorplan=_floorplan(rng, vxm),
        mem_words=int(rng.integers(3 * lanes, 6 * lanes) + 32),
        alus=_alus(rng),
        reduce_depth=int(rng.integers(3, 6)),
        accumulators=int(rng.integers(2, 10)),
        activations=int(rng.integers(2, 10)),
        accumulator_bits=int(rng.integers(30, 49)),
        icu_words=int(rng.integers(200, 300)),
        loop_levels=int(rng.integers(1, 5)),
        ports=tuple(_port(rng, lanes) for _ in range(tiles - 1)),
        host=_port(rng, lanes))
    links = tuple(Link(source=source, source_port=port, target=(source + port + 1) % tiles,
                       target_port=port, latency=int(rng.integers(1, 41)))
                  for source in range(tiles) for port in range(tiles - 1))
    return SystemConfig(tile=tile, tiles=tiles, links=links,
                        host_latency=int(rng.integers(1, 5)))


def _floorplan(rng, vxm):
    """Slices in a random order in which every MXM has room for a matrix on one side."""
    kinds = ["c2c"] + ["mem"] * int(rng.integers(_MATRIX_SLICES, _MATRIX_SLICES + 3))
    kinds += ["mxm"] * int(rng.integers(1, 3)) + ["sxm"] * int(rng.integers(0, 2))
    kinds += ["vxm"] * vxm
    while True:
        names, numbers = [], {}
        for kind in rng.permutation(kinds).tolist():
            number = numbers[kind] = numbers.get(kind, -1) + 1
            names.append(kind if kind in ("c2c", "vxm") else f"{kind}{number}")
        cfg = TileConfig(floorplan=tuple(names))
        try:
            for mxm in cfg.slices("mxm"):
                near_slices(cfg, mxm, _MATRIX_SLICES)
        except AllocationError:
            continue
        return cfg.floorplan


def _alus(rng):
    """One to three ALUs of random features."""
    alus = []
    for _ in range(int(rng.integers(1, 4))):
        chosen = np.array(ALU_FEATURES)[rng.random(len(ALU_FEATURES)) < 0.5].tolist()
        alus.append(AluConfig(features=tuple(chosen or ["add"]),
                              depth=int(rng.choice(_ALU_DEPTHS))))
    return tuple(alus)


def _port(rng, lanes):
    return PortConfig(bytes=int(rng.integers(1, lanes + 3)), fifo=int(rng.choice([4, 8, 16])))
