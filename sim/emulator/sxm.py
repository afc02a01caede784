"""SXM: lanes of one stream, or of four aligned ones alike, change places."""

from hdl.arch.isa import SXM_MAPS
from hdl.arch.timing import timing

__all__ = ["Sxm"]


class Sxm:
    """One SXM of one tile.

    Timing: everything is taken at the issue and is on the streams ``t_d`` later.  A map that was
    taken in ``k`` is used from ``k + 2`` on.

    Parameters
    ----------
    context : Context
        The machine around it.
    number : int
        Which of the tile's SXMs this is.
    garbage : numpy.random.Generator or None
        What fills the map registers; None: zeros.
    """

    def __init__(self, context, number, garbage):
        self._context = context
        self._name = context.cfg.slices("sxm")[number]
        lanes = context.cfg.lanes
        # (cycle of the MAP, lane numbers) of the two last, of which one may be still to come
        self._maps = [[(-2, bytes(lanes) if garbage is None else garbage.bytes(lanes))] * 2
                      for _ in range(SXM_MAPS)]

    def bind(self, queue, op, fields, table):
        """Function (cycle, 0, 0, step) that does what an issue of the word does."""
        context = self._context
        if op == "MAP":
            return self._map(fields)
        count = 4 if fields["quad"] else 1
        take = context.streams.reader(context.tile, self._name, fields, count)
        put = context.streams.writer(context.tile, self._name, fields, count)
        delay = timing(context.cfg)["sxm", op].t_d
        move = self._move(op, fields)

        def issue(cycle, _0, _1, _step):
            put(cycle + delay, [move(cycle, vector) for vector in take(cycle)])
        return issue

    def _map(self, fields):
        take = self._context.streams.reader(self._context.tile, self._name, fields)
        maps = self._maps[fields["map"]]

        def issue(cycle, _0, _1, _step):
            maps[:] = maps[1], (cycle, take(cycle))
        return issue

    def _move(self, op, fields):
        """Function (cycle, vector) that gives the moved vector."""
        lanes = self._context.cfg.lanes
        if op == "PERMUTE":
            maps = self._maps[fields["map"]]
            # a lane number has 8 bits; what is no lane gives zero
            padding = bytes(256 - lanes) if lanes < 256 else b""

            def permute(cycle, vector):
                taken, numbers = maps[1]
                if taken + 2 > cycle:
                    _, numbers = maps[0]
                return numbers.translate(vector[:256] + padding)
            return permute
        amount = fields["amount"]
        if op == "SHIFT":
            return lambda _, vector: (bytes(amount) + vector)[:lanes]
        if op == "ROTATE":
            turn = amount % lanes
            return lambda _, vector: vector[lanes - turn:] + vector[:lanes - turn]
        return lambda _, vector: vector[amount:amount + 1].rjust(1, b"\0") * lanes
