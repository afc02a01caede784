"""Matrix products: int8 weights in SRAM, 16-bit vectors, exact sums in accumulators.

A matrix lies on a tile as blocks of ``lanes`` rows by ``lanes`` columns.  Its block columns are
dealt out to the MXMs; each MXM's blocks lie in four slices on one side of it, row ``r`` of a block
in slice ``r % 4``, so that one LW takes four rows.
"""

from dataclasses import dataclass

import numpy as np

from .chain import Chain
from .layout import weight_slices

__all__ = ["Matrix", "Product", "load_block", "place_matrix"]

#: Activation buffer entries that block rows use: two blocks of two limbs in turn.
_ROW_ENTRIES = 4


@dataclass(frozen=True)
class Matrix:
    """A placed matrix.

    Parameters
    ----------
    tile : int
    k_blocks, n_blocks : int
        Blocks of rows (inputs) and of columns (outputs), filled up with zeros.
    blocks : dict of (int, int) to (str, Place, int)
        For block (k, n): its MXM, where it lies, and its first word there.
    """

    tile: int
    k_blocks: int
    n_blocks: int
    blocks: dict

    def mxm(self, n):
        """The MXM that makes block column ``n``."""
        return self.blocks[0, n][0]


def place_matrix(record, name, tile, weights, first=0):
    """Put a matrix of each layer into the SRAM of ``tile``.

    Parameters
    ----------
    record : Record
    weights : array of int8 (layers, K, N)
    first : int
        Number of the MXM that takes block column 0.

    Raises
    ------
    AllocationError
        When an MXM has no four slices on one side.
    """
    cfg = record.cfg
    lanes = cfg.lanes
    layers, rows, columns = weights.shape
    k_blocks, n_blocks = -(-rows // lanes), -(-columns // lanes)
    padded = np.zeros((layers, k_blocks * lanes, n_blocks * lanes), np.int8)
    padded[:, :rows, :columns] = weights
    # layer, k block, word of the block, slice, n block, lane
    parts = padded.view(np.uint8).reshape(layers, k_blocks, lanes // 4, 4, n_blocks, lanes)
    mxms = cfg.slices("mxm")
    blocks = {}
    for unit, mxm in enumerate(mxms):
        mine = list(range((unit - first) % len(mxms), n_blocks, len(mxms)))
        if not mine:
            continue
        words = len(mine) * k_blocks * (lanes // 4)
        content = parts[:, :, :, :, mine].transpose(3, 0, 4, 1, 2, 5)
        place = record.add(f"{name}.{mxm}", tile, weight_slices(cfg, mxm), words,
                           content.reshape(4, layers, words, lanes))
        for turn, n in enumerate(mine):
            for k in range(k_blocks):
                blocks[k, n] = mxm, place, (turn * k_blocks + k) * (lanes // 4)
    return Matrix(tile, k_blocks, n_blocks, blocks)


def load_block(builder, name, tile, mxm, at, *, columns=False):
    """Load the words of a block, from ``at`` on in four slices, into the shadow of ``mxm``."""
    for row in range(0, builder.cfg.lanes, 4):
        chain = Chain(builder.cfg, f"{name} rows {row}", tile)
        chain.load(chain.read(at.plus(row // 4)), mxm, row, columns)
        builder.add(chain.cluster())


class Product:
    """A matrix times one vector, block column by block column or block row by block row.

    By columns, an MXM keeps the vector in its activation buffer with its first column, where that
    has room.  By rows, all columns add up side by side, each in its accumulator: blocks of the
    vector are used up as they come.

    Parameters
    ----------
    builder : Builder
    name : str
    matrix : Matrix
    limbs : list of (At, At)
        Low and high limbs of the vector, by block.
    order : list of int, optional
        In which `column` takes the blocks of the vector.
    kept : set, optional
        MXMs that hold this very vector from an earlier product; shared and extended.
    first_entry : int
        Activation buffer entry from which on `row` may use them.
    """

    def __init__(self, builder, name, matrix, limbs, order=None, kept=None, first_entry=0):
        self._builder = builder
        self._name = name
        self._matrix = matrix
        self._limbs = limbs
        self._order = order or range(matrix.k_blocks)
        self._kept = set() if kept is None else kept
        self._fits = 2 * matrix.k_blocks <= builder.cfg.activations
        self._first_entry = first_entry
        self._sums = None
        self._rows = 0

    def column(self, n, readers=1):
        """Compute block column ``n``; returns its MXM and accumulator, to be read by so many
        clusters, and soon: an MXM has few."""
        mxm = self._matrix.mxm(n)
        accumulator = self._builder.accumulator(self._matrix.tile, mxm, readers)
        kept = mxm in self._kept
        for turn, k in enumerate(self._order):
            first = 2 * k if self._fits else None
            self._block(k, n, accumulator, clear=turn == 0, entry=first, kept=kept)
        if self._fits:
            self._kept.add(mxm)
        return mxm, accumulator

    def row(self, k):
        """Add what block row ``k`` contributes to all columns."""
        builder, matrix = self._builder, self._matrix
        if self._sums is None:
            self._sums = [(matrix.mxm(n), builder.accumulator(matrix.tile, matrix.mxm(n)))
                          for n in range(matrix.n_blocks)]
        entry = self._first_entry + 2 * (self._rows % 2)
        if self._first_entry + _ROW_ENTRIES > builder.cfg.activations:
            entry = None
        seen = set()
        for n, (mxm, accumulator) in enumerate(self._sums):
            self._block(k, n, accumulator, clear=self._rows == 0, entry=entry, kept=mxm in seen)
            if entry is not None:
                seen.add(mxm)
        self._rows += 1

    def sums(self):
        """MXM and accumulator of every column, once all rows are in."""
        return self._sums

    def _block(self, k, n, accumulator, *, clear, entry, kept):
        """Multiply by block (k, n); the vector's block is ``kept`` in activation buffer ``entry``,
        or is put there on the way (None: it is not)."""
        builder, tile = self._builder, self._matrix.tile
        mxm, place, word = self._matrix.blocks[k, n]
        label = f"{self._name} {k},{n}"
        load_block(builder, label, tile, mxm, place.at(word))
        for limb in range(2):
            chain = Chain(builder.cfg, f"{label}.{limb}", tile)
            flags = {"install": int(limb == 0), "high": limb, "clear": int(clear and limb == 0),
                     "activation": 0 if entry is None else entry + limb}
            if kept:
                chain.multiply(None, mxm, accumulator, **flags)
            else:
                chain.multiply(chain.read(self._limbs[k][limb]), mxm, accumulator,
                               keep=int(entry is not None), **flags)
            builder.add(chain.cluster())
