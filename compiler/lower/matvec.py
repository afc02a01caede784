"""A matrix-vector product over tiles: each holds a part of the input and makes one of the output.

``y[n] = fp32(sum over k of x[k] * w[k][n])`` with 16-bit ``x`` (two int8 limbs) and int8 ``w``.
Tile ``i`` holds the input vectors (``lanes`` elements each) ``i, i + tiles, ...``, sends them to
all others, and computes the output vectors ``i, i + tiles, ...``, its MXMs in turn.  Sizes that are
no multiple of the lanes are filled up with zeros.
"""

import numpy as np

from ..errors import CompileError
from ..plan import stepped
from ..schedule.listing import schedule
from .builder import Builder
from .chain import At, Chain
from .layout import near_slices
from .product import Product, place_matrix
from .record import Record

__all__ = ["matvec_graph", "matvec_program"]


def matvec_program(system, weights, x):
    """Lower and schedule ``y = x @ weights``.

    Parameters
    ----------
    system : SystemConfig
        Every two tiles must be joined by a link in each direction.
    weights : array of int8 (K, N)
    x : array of int (K,)
        Each in -32,639 .. 32,639.

    Returns
    -------
    (Plan, Memory)
        The results of each MXM are symbol ``y.<mxm>`` of its tile: four slices (byte planes of
        fp32) on one side of it, one word for each vector.  Number ``j`` of MXM ``m`` of ``M`` on
        tile ``i`` is output vector ``i + tiles * (m + M * j)``.

    Raises
    ------
    CompileError
        When shapes or values do not fit, a link is missing, or memory is short.
    """
    builder = matvec_graph(system, weights, x)
    body = schedule(system.tile, builder.clusters, builder.edges)
    return stepped(system, body), builder.memory


def matvec_graph(system, weights, x):
    """The `Builder` with the clusters of `matvec_program`, before they are scheduled."""
    weights, x = np.asarray(weights), np.asarray(x)
    _check(system, weights, x)
    cfg, tiles = system.tile, system.tiles
    limbs = _limbs(x, cfg.lanes)
    near = near_slices(cfg, cfg.slices("mxm")[0], 2)
    builder = Builder(system)
    at = [_place_input(builder.memory, tile, tiles, near, limbs) for tile in range(tiles)]
    for k in range(len(limbs)):
        for target in range(tiles):
            if target != k % tiles:
                for limb in range(2):
                    _transfer(builder, f"x{k}.{limb}", k % tiles, target, at, k, limb)
    n_blocks = -(-weights.shape[1] // cfg.lanes)
    columns = np.pad(weights, ((0, 0), (0, n_blocks * cfg.lanes - weights.shape[1])))
    record = Record(builder.memory, system, "w")
    matrices = [place_matrix(record, "w", tile, _shard(columns, cfg.lanes, tile, tiles))
                for tile in range(tiles)]
    record.close()
    for tile, matrix in enumerate(matrices):
        y = _place_results(builder.memory, cfg, matrix)
        order = sorted(range(len(limbs)), key=lambda k, tile=tile: (k % tiles != tile, k))
        work = Product(builder, f"tile {tile} w", matrix, [at[tile]], order)
        for n in range(matrix.n_blocks):
            total, = work.column(n)
            chain = Chain(cfg, f"tile {tile} y{n}", tile)
            chain.write(chain.acc(*total), y[n])
            builder.add(chain.cluster())
    return builder


def _shard(columns, lanes, tile, tiles):
    """Block columns ``tile, tile + tiles, ...`` as a matrix of one layer: (1, K, n)."""
    blocks = columns.reshape(len(columns), -1, lanes)[:, tile::tiles]
    return np.ascontiguousarray(blocks).reshape(1, len(columns), -1)


def _check(system, weights, x):
    if weights.ndim != 2 or weights.dtype != np.int8 or x.shape != weights.shape[:1]:
        raise CompileError("Matrix must be int8 (K, N) and the vector (K,), not "
                           f"{weights.dtype} {weights.shape} and {x.shape}")
    if not weights.size:
        raise CompileError(f"Matrix must have rows and columns, not {weights.shape}")
    if np.abs(x).max() > 32639:
        raise CompileError("Vector elements must be in -32639..32639")
    if not system.tile.slices("mxm"):
        raise CompileError("Matrix product needs an mxm slice in the floorplan")


def _limbs(x, lanes):
    """Low and high int8 limbs of ``x`` as bytes: (blocks, 2, lanes)."""
    padded = np.zeros(-(-len(x) // lanes) * lanes, np.int64)
    padded[:len(x)] = x
    low = (padded + 128) % 256 - 128
    parts = np.stack([low, (padded - low) >> 8]).astype(np.int8).view(np.uint8)
    return parts.reshape(2, -1, lanes).transpose(1, 0, 2)


def _place_input(memory, tile, tiles, slices, limbs):
    """Words for all limbs on ``tile``, filled where it holds the input; (low, high) by block."""
    content = np.zeros((2, *limbs.shape[::2]), np.uint8)
    content[:, tile::tiles] = limbs[tile::tiles].transpose(1, 0, 2)
    x = memory.place("x", tile, slices, len(limbs), content,
                     "limbs (low, high) by slice, one vector a word")
    return [tuple(At((slice_,), x.address + k) for slice_ in slices) for k in range(len(limbs))]


def _place_results(memory, cfg, matrix):
    """Words for the block columns of ``matrix``, those of each MXM near it; an `At` for each."""
    mxms = cfg.slices("mxm")
    found = {}
    for number, mxm in enumerate(mxms):
        mine = range(number, matrix.n_blocks, len(mxms))
        if mine:
            y = memory.place(f"y.{mxm}", matrix.tile, near_slices(cfg, mxm, 4), len(mine),
                             meaning="byte planes of fp32 by slice, one vector a word")
            found |= {n: At(y.slices, y.address + j) for j, n in enumerate(mine)}
    return found


def _transfer(builder, name, source, target, at, k, limb):
    """Send limb ``limb`` of block ``k`` from ``source`` to ``target``."""
    link = next((link for link in builder.system.links
                 if (link.source, link.target) == (source, target)), None)
    if link is None:
        raise CompileError(f"Matrix product needs a link from tile {source} to tile {target}")
    send = Chain(builder.cfg, f"send {name} to tile {target}", source)
    send.send(send.read(at[source][k][limb]), [link.source_port])
    builder.add(send.cluster())
    receive = Chain(builder.cfg, f"receive {name} from tile {source}", target)
    receive.write(receive.recv(link.target_port), at[target][k][limb])
    builder.add(receive.cluster())
