"""Vectors of one head of Q, K or V: its norm, and the rotation by the step's angles."""

from itertools import product

from ..errors import CompileError
from ..lower.chain import Chain
from ..schedule.footprint import fits
from .reductions import OrderedSum, delayed, ordered_sum
from .vectors import keep_factor, scaled, times

__all__ = ["normed", "normed_apart", "rotated"]

#: PASSes that are tried in front of a factor, so that a cluster does not meet itself.
_DELAYS = 6


def normed(builder, name, tile, sums, scale, eps, value, finish):
    """Vectors of one head times its inverse RMS, all in one cluster: no entry has to keep a factor.

    Parameters
    ----------
    sums : list of (str, int)
        MXM and accumulator of each vector of the head.
    scale : list of At
    eps : At or None
    value, finish : callable
        ``value(chain, c)`` gives what is multiplied, ``finish(chain, product, c)`` takes it.

    Raises
    ------
    ScheduleError
        When the instructions meet in some unit, however late the factor comes.
    """
    for early, apart, late in product((False, True), range(1, _DELAYS), range(_DELAYS)):
        chain = Chain(builder.cfg, name, tile)
        # before the reduction, PASSes do not meet what is made beside the factor
        factor = chain.alu("RSQRT", _mean_square(chain, sums, scale, eps, late if early else 0))
        factor = delayed(chain, factor, 0 if early else late)
        for c in range(len(sums)):
            if c:
                factor = delayed(chain, factor, apart)
            finish(chain, chain.alu("MUL", value(chain, c), factor), c)
        cluster = chain.cluster()
        if fits(builder.cfg, cluster):
            break
    builder.add(cluster)


def normed_apart(builder, machine, name, tile, sums, scale, eps, value, finish):
    """The same for heads of more vectors than one cluster can hold: an entry keeps the factor."""
    total = OrderedSum(builder, machine, name, tile, eps)
    for c, (source, weight) in enumerate(zip(sums, scale, strict=True)):
        chain = Chain(builder.cfg, f"{name} square {c}", tile)
        square = scaled(chain, source, weight)
        total.add(chain, chain.alu("MUL", square, square))
        builder.add(chain.cluster())
    factor = keep_factor(builder, machine, tile, *total.total(), "RSQRT")
    for c in range(len(sums)):
        chain = Chain(builder.cfg, f"{name}.{c}", tile)
        finish(chain, times(chain, value(chain, c), factor), c)
        builder.add(chain.cluster())


def _mean_square(chain, sums, scale, eps, late):
    """Sum of the squares of one head, in every lane; its PASSes: ``late``."""
    squares = []
    for c, (total, weight) in enumerate(zip(sums, scale, strict=True)):
        square = chain.alu("MUL", chain.acc(*total), chain.read(weight))
        square = chain.alu("MUL", square, square)
        if c == 0 and eps is not None:
            square = chain.alu("ADD", square, chain.read(eps))
        elif c == 0 and len(sums) > 1:
            square = chain.alu("PASS", square)        # the vectors' scales are read in turn
        squares.append(square)
    return ordered_sum(chain, squares, late)


def rotated(chain, machine, sums, gain, rope, c):
    """Vector ``c`` of a head, turned by the step's angles.

    Parameters
    ----------
    rope : dict
        ``cos`` and ``sin``: lists of At, one for each vector of the head.
    """
    half = len(sums) // 2
    if half:
        other = (c + half) % len(sums)
        swapped = chain.alu("PASS", scaled(chain, sums[other], gain[other]))    # read in turn
        straight = chain.alu("MUL", scaled(chain, sums[c], gain[c]), chain.read(rope["cos"][c]))
    elif not machine.cfg.slices("sxm"):
        raise CompileError("Heads as long as the lanes need an sxm slice to rotate them: add one "
                           "to TileConfig.floorplan")
    else:
        swapped = chain.move("ROTATE", scaled(chain, sums[0], gain[0]),
                             machine.cfg.slices("sxm")[0], machine.cfg.lanes // 2)
        straight = chain.alu("MUL", scaled(chain, sums[0], gain[0]), chain.read(rope["cos"][0]))
    swapped = chain.alu("MUL", swapped, chain.read(rope["sin"][c]))
    return chain.alu("ADD", straight, swapped)
