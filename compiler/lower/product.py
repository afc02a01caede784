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

#: Block rows that have entries of the activation buffer in turn.
_ROWS = 2


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
    """A matrix times one vector of each of several sequences, block column by block column or block
    row by block row.

    By columns, an MXM keeps the vectors in its activation buffer with its first column, where that
    has room.  By rows, all columns add up side by side, each in its accumulator: blocks of the
    vectors are used up as they come.

    Parameters
    ----------
    builder : Builder
    name : str
    matrix : Matrix
    vectors : list of list of (At, At)
        By sequence: low and high limbs of its vector, by block.
    order : list of int, optional
        In which `column` takes the blocks of the vectors.
    kept : set, optional
        MXMs that hold these very vectors from an earlier product; shared and extended.
    first_entry : int
        Activation buffer entry from which on `row` may use them.
    """

    def __init__(self, builder, name, matrix, vectors, order=None, kept=None, first_entry=0):
        self._builder = builder
        self._name = name
        self._matrix = matrix
        self._vectors = vectors
        self._order = order or range(matrix.k_blocks)
        self._kept = set() if kept is None else kept
        self._fits = 2 * matrix.k_blocks * len(vectors) <= builder.cfg.activations
        self._first_entry = first_entry
        self._sums = None
        self._rows = 0

    def column(self, n, readers=1):
        """Compute block column ``n``; returns the MXM and accumulator of each sequence, each to be
        read by so many clusters, and soon: an MXM has few."""
        mxm = self._matrix.mxm(n)
        sums = self._accumulators(n, readers)
        kept = mxm in self._kept
        for turn, k in enumerate(self._order):
            entries = [2 * (number * self._matrix.k_blocks + k) if self._fits else None
                       for number in range(len(sums))]
            self._block(k, n, sums, clear=turn == 0, entries=entries, kept=kept)
        if self._fits:
            self._kept.add(mxm)
        return sums

    def row(self, k):
        """Add what block row ``k`` contributes to all columns."""
        if self._sums is None:
            self._sums = [self._accumulators(n, 1) for n in range(self._matrix.n_blocks)]
        count = len(self._vectors)
        first = self._first_entry + 2 * count * (self._rows % _ROWS)
        fits = self._first_entry + 2 * count * _ROWS <= self._builder.cfg.activations
        entries = [first + 2 * number if fits else None for number in range(count)]
        seen = set()
        for n, sums in enumerate(self._sums):
            mxm = self._matrix.mxm(n)
            self._block(k, n, sums, clear=self._rows == 0, entries=entries, kept=mxm in seen)
            if fits:
                seen.add(mxm)
        self._rows += 1

    def sums(self, number=0):
        """MXM and accumulator of every column of a sequence, once all rows are in."""
        return [sums[number] for sums in self._sums or ()]

    def _accumulators(self, n, readers):
        mxm = self._matrix.mxm(n)
        return [(mxm, self._builder.accumulator(self._matrix.tile, mxm, readers))
                for _ in self._vectors]

    def _block(self, k, n, sums, *, clear, entries, kept):
        """Multiply by block (k, n); the vectors' blocks are ``kept`` in activation buffer
        ``entries``, or are put there on the way (None: they are not)."""
        builder, tile = self._builder, self._matrix.tile
        mxm, place, word = self._matrix.blocks[k, n]
        label = f"{self._name} {k},{n}"
        load_block(builder, label, tile, mxm, place.at(word))
        for number, ((_, accumulator), entry) in enumerate(zip(sums, entries, strict=True)):
            for limb in range(2):
                chain = Chain(builder.cfg, f"{label}.{limb}", tile)
                flags = {"install": int(number == limb == 0), "high": limb,
                         "clear": int(clear and limb == 0),
                         "activation": 0 if entry is None else entry + limb}
                if kept:
                    chain.multiply(None, mxm, accumulator, **flags)
                else:
                    chain.multiply(chain.read(self._vectors[number][k][limb]), mxm, accumulator,
                                   keep=int(entry is not None), **flags)
                builder.add(chain.cluster())
