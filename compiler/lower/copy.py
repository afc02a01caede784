"""A program that copies vectors between slices in nested loops."""

from ..plan import Plan, Region, Term
from ..schedule.listing import schedule
from .chain import At, Chain
from .layout import Memory

__all__ = ["copy_program"]

#: Steps with this bit clear write; the others issue and do not write.
_STEP_BIT = 1


def copy_program(system, contents, chunks, words):
    """Copy ``chunks * words`` words of every mem slice into the opposite slice.

    In each step, ``chunks`` times, ``words`` words of slice ``i`` go to slice ``n - 1 - i``; a
    WRITE into an odd slice is suppressed in odd steps, and the target moves on by ``chunks *
    words`` words with every second step, four times before it wraps.

    Parameters
    ----------
    system : SystemConfig
    contents : array of uint8 (tiles, slices, chunks * words, lanes)

    Returns
    -------
    (Plan, Memory)
    """
    cfg = system.tile
    names = cfg.slices("mem")
    memory = Memory(system)
    total = chunks * words
    outer, inner = Term(0, 1, 3, total), Term(1, 0, _mask(chunks), words)
    clusters = []
    for tile in range(system.tiles):
        source = memory.place("source", tile, names, total, contents[tile])
        target = memory.place("target", tile, names, 4 * total)
        for word in range(words):
            for i, name in enumerate(names):
                j = len(names) - 1 - i
                if i == j:
                    continue
                chain = Chain(cfg, f"copy {name} word {word}", tile)
                value = chain.read(At((name,), source.address + word, (inner,)))
                chain.write(value, At((names[j],), target.address + word, (outer, inner)),
                            [Term(0, 0, _STEP_BIT, 0) if j % 2 else None])
                clusters.append(chain.cluster())
    body = schedule(cfg, clusters, [])
    loop = Region(start=1, period=body.end, count=chunks, issues=body.issues)
    step = Region(start=0, period=1 + chunks * body.end, count=None, children=[loop])
    root = Region(start=0, period=step.period, count=1, children=[step])
    return Plan(root, system), memory


def _mask(chunks):
    """Mask that keeps every index below ``chunks``."""
    return (1 << (chunks - 1).bit_length()) - 1 if chunks > 1 else 0
