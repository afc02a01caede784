"""What is read from measured cycles: A and B of T = A + N / B, tails, where lines meet."""

from typing import NamedTuple

import numpy as np

from sim.bench.network.programs import PACKETS

__all__ = ["Fit", "catches_up", "fit", "slower_with_more", "tails"]


class Fit(NamedTuple):
    """T = A + N / B, by least squares.

    Attributes
    ----------
    first : float
        A, in cycles.
    rate : float
        B, in bytes a cycle.
    residual : float
        Largest deviation, in cycles.
    """

    first: float
    rate: float
    residual: float


def fit(sizes, cycles):
    """`Fit` of cycles by size in bytes; at least two sizes."""
    sizes, cycles = np.array(sizes, float), np.array(cycles, float)
    slope, first = np.polyfit(sizes, cycles, 1)
    return Fit(float(first), float(1 / slope),
               float(np.abs(first + slope * sizes - cycles).max()))


def catches_up(sizes, cycles, others, within=0.10):
    """The first of ``sizes`` from which on ``cycles`` are at most ``within`` above ``others``, or
    None."""
    found = None
    for size, mine, other in sorted(zip(sizes, cycles, others, strict=True), reverse=True):
        if mine > other * (1 + within):
            break
        found = size
    return found


def slower_with_more(cycles):
    """The first tile count at which ``cycles`` (by tile count) are no fewer than with fewer tiles,
    or None."""
    best = None
    for tiles, taken in sorted(cycles.items()):
        if best is not None and taken >= best:
            return tiles
        best = taken if best is None else min(best, taken)
    return None


def tails(case, run):
    """Cycles from the last that makes a product of a layer, on any tile, to the last write of its
    exchange, on any tile, by product; products that are not exchanged are left out.

    Parameters
    ----------
    case : Case
    run : Run
    """
    found = {}
    for name, (makes, writes) in case.spans.items():
        if any(at is not None for at in writes):
            made, written = (max(_cycle(case, run, tile, at) for tile, at in enumerate(some)
                                 if at is not None) for some in (makes, writes))
            found[name] = written - made
    return found


def _cycle(case, run, tile, at):
    """The cycle of what is planned for cycle ``at`` of a tile."""
    if case.kind != PACKETS:
        return at
    stage = int(np.searchsorted(case.starts[tile], at, "right")) - 1
    return run.released.cycle(tile, stage, at)
