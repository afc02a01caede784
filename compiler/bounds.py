"""Bounds of a compiled decode, and the same program with a barrier after every operation."""

from typing import NamedTuple

from .collection import uncollected
from .model_bound import model_bound
from .schedule.bound import schedule_bound
from .schedule.listing import schedule
from .schedule.modulo import least_period

__all__ = ["Bounds", "RegionBound", "barrier_cycles", "bounds_of"]


class RegionBound(NamedTuple):
    """A closed region of time: its cycles, runs a step, schedule bound and what binds.

    That of a loop of its own has all iterations; its bound is that of one, and for each of the
    others the work of the busiest unit: iterations follow each other at equal distances.
    """
    cycles: int
    runs: int
    bound: int
    binds: str


class Bounds(NamedTuple):
    """What a program's cycles a token are measured against.

    Attributes
    ----------
    regions : list of RegionBound
        In order of time.
    model : int
        No program for the model takes fewer.
    model_binds : str
        What ``model`` comes from.
    barrier : int
        Cycles of the same compiler with a barrier after every operation.
    """

    regions: list
    model: int
    model_binds: str
    barrier: int

    @property
    def schedule(self):
        """Cycles a token that no schedule of the same lowered graph goes below.

        Regions are closed by construction (nothing is under way when a loop body ends), so none is
        faster than the bounds of all of them one after the other.
        """
        return sum(region.bound * region.runs for region in self.regions)

    def line(self, cycles):
        """One line that sets ``cycles`` a token beside them."""
        return (f"bounds: {self.schedule:,} cycles for this graph ({cycles / self.schedule:.3f}x), "
                f"{self.model:,} for the model ({self.model_binds}, "
                f"{self.model / cycles:.3f} of the cycles); with a barrier after every operation "
                f"{self.barrier:,} ({self.barrier / cycles:.3f}x)")


@uncollected
def bounds_of(compilation, report=None):
    """`Bounds` of a `decoder.compilation.Compilation` that has been carried out; ``report`` as of
    `decoder.program.compile_decoder`."""
    system, regions = compilation.system, []
    for number, region in enumerate(compilation.regions):
        clusters = region.builder.clusters
        bound, binds = schedule_bound(system.tile, clusters, region.builder.edges)
        bound += (region.body.turns - 1) * least_period(system.tile, clusters)
        regions.append(RegionBound(region.body.end, region.runs, bound, binds))
        if report:
            report(f"bound of region {number}: {bound:,} cycles, {binds}")
    return Bounds(regions, *model_bound(system, compilation.model, compilation.positions),
                  barrier_cycles(compilation))


def barrier_cycles(compilation):
    """Cycles a step of the same compiler with a barrier after every tensor operation.

    Every operation is scheduled alone, on all tiles, and begins when the one before has ended.
    """
    return sum(_barrier(compilation.system.tile, region.builder) * region.body.turns * region.runs
               for region in compilation.regions)


def _barrier(cfg, builder):
    groups, of = {}, {}
    for cluster, operation in zip(builder.clusters, builder.operations, strict=True):
        groups.setdefault(operation, ([], []))[0].append(cluster)
        of[cluster] = operation
    for edge in builder.edges:
        operation = of[edge.source.cluster]
        if operation == of[edge.target.cluster]:
            groups[operation][1].append(edge)
    return sum(schedule(cfg, *group).end for group in groups.values())
