"""MXM: int8 weights, exact accumulators.

Nothing is multiplied before an ACC asks: an accumulator keeps its base and the vectors and weights
that were added since.  Their sum is one product of a long vector and a tall matrix in float64,
exact because it stays far below 2**53.
"""

import numpy as np

from hdl.arch import isa
from hdl.arch.timing import timing

from .fp import acc_to_fp32
from .planes import to_planes

__all__ = ["Mxm"]

#: Products that an accumulator keeps before they are added up.
_KEPT = 256


class Mxm:
    """One MXM of one tile.

    Timing: LW takes its vectors at its issue, writes the shadow one cycle later.  ABC takes vector
    and shadow at its issue ``j`` and is in the accumulator behind cycle ``j + t_d - 1``.  ACC reads
    its accumulator at its issue and is on the streams ``t_d`` later.

    Parameters
    ----------
    context : Context
        The machine around it.
    number : int
        Which of the tile's MXMs this is.
    garbage : numpy.random.Generator or None
        What fills weights, buffer and accumulators; None: zeros.
    """

    def __init__(self, context, number, garbage):
        cfg = context.cfg
        self._context = context
        self._name = cfg.slices("mxm")[number]
        self._half = 1 << cfg.accumulator_bits - 1
        fill = bytes if garbage is None else garbage.bytes
        self._shadow = bytearray(fill(cfg.lanes ** 2))      # row after row
        self._active = fill(cfg.lanes ** 2)
        self._loads = []            # (cycle of issue, function that changes the shadow), in order
        accumulators, activations = (1 << bits for bits in isa.index_bits(cfg, "mxm_act"))
        self._buffer = [fill(cfg.lanes) for _ in range(activations)]
        self._sums = [self._wrap(np.frombuffer(fill(8 * cfg.lanes), np.int64))
                      for _ in range(accumulators)]
        # (cycle of issue, weights, vector, high, clear) by accumulator, in order
        self._products = [[] for _ in range(accumulators)]
        self._abc_to_sum = timing(cfg)["mxm_act", "ABC"].t_d

    def bind(self, queue, op, fields, table):
        """Function (cycle, index, index, step) that does what an issue of the word does."""
        return {"LW": self._lw, "ABC": self._abc, "ACC": self._acc}[op](fields)

    def _lw(self, fields):
        lanes, columns = self._context.cfg.lanes, fields["columns"]
        count = 1 << min(fields["count_log2"], 2)
        take = self._context.streams.reader(self._context.tile, self._name, fields, count)
        loads = self._loads

        def lw(cycle, row, _, _step):
            loads.append((cycle, columns, row % lanes, take(cycle)))
        return lw

    def _install(self, cycle):
        """Make the shadow of ``cycle`` the active weights."""
        lanes, shadow, done = self._context.cfg.lanes, self._shadow, 0
        for issued, columns, row, vectors in self._loads:
            if issued + 1 >= cycle:
                break
            done += 1
            for vector in vectors:
                if columns:
                    shadow[row::lanes] = vector
                else:
                    shadow[row * lanes:(row + 1) * lanes] = vector
                row = (row + 1) % lanes
        del self._loads[:done]
        self._active = bytes(shadow)

    def _abc(self, fields):
        install, buffered, keep = fields["install"], fields["buffered"], fields["keep"]
        high, clear = fields["high"], fields["clear"]
        take = self._context.streams.reader(self._context.tile, self._name, fields)
        buffer, products = self._buffer, self._products

        def abc(cycle, accumulator, activation, _step):
            vector = buffer[activation] if buffered else take(cycle)
            if keep:
                buffer[activation] = vector
            if install:
                self._install(cycle)
            added = products[accumulator]
            added.append((cycle, self._active, vector, high, clear))
            if len(added) > _KEPT:
                self._settle(accumulator, cycle)
        return abc

    def _acc(self, fields):
        delay = timing(self._context.cfg)["mxm_act", "ACC"].t_d
        put = self._context.streams.writer(self._context.tile, self._name, fields, 4)
        mode = fields["mode"]

        def acc(cycle, accumulator, _, _step):
            total = self._settle(accumulator, cycle)
            if mode == isa.AccMode.RAW_HIGH.value:
                result = (total >> 16).astype("<i4")
            elif mode == isa.AccMode.RAW_LOW.value:
                result = (total & 0xFFFF).astype("<i4")
            else:
                result = acc_to_fp32(total).astype("<f4")
            put(cycle + delay, to_planes(result))
        return acc

    def _settle(self, accumulator, cycle):
        """Contents of an accumulator in ``cycle``, an array (lanes,) of int64."""
        added, ready, first = self._products[accumulator], 0, 0
        for issued, _, _, _, clear in added:
            if issued + self._abc_to_sum > cycle:
                break
            if clear:
                first = ready
            ready += 1
        if ready:
            if added[first][4]:
                self._sums[accumulator] = np.zeros(self._context.cfg.lanes, np.int64)
            self._sums[accumulator] = self._wrap(
                self._sums[accumulator] + self._product(added[first:ready]))
            del added[:ready]
        return self._sums[accumulator]

    def _product(self, added):
        lanes = self._context.cfg.lanes
        _, weights, vectors, high, _ = zip(*added, strict=True)
        vector = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, lanes)
        vector = vector * np.where(high, 256.0, 1.0)[:, None]
        matrix = np.frombuffer(b"".join(weights), np.int8).astype(np.float64)
        return (vector.ravel() @ matrix.reshape(-1, lanes)).astype(np.int64)

    def _wrap(self, value):
        return (value + self._half & 2 * self._half - 1) - self._half
