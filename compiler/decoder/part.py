"""Stretches of a region's clusters that are scheduled by themselves, and their place in time."""

from dataclasses import replace
from typing import NamedTuple

from ..plan import Region

__all__ = ["Part", "RegionOfTime", "in_turn"]


class Part(NamedTuple):
    """Clusters ``first`` to ``last - 1`` of a `Builder`.

    Of a loop of ``turns`` iterations, whose index is that of ``level``, these are two iterations,
    the other one from ``second`` on.
    """

    first: int
    last: int
    second: int | None = None
    turns: int = 1
    level: int | None = None


class RegionOfTime(NamedTuple):
    """A closed stretch of a step.

    Attributes
    ----------
    builder : Builder
        Its graph; of a loop of its own, that of one iteration.
    body : Schedule or LoopSchedule
    runs : int
        How often it runs a step.
    """

    builder: object
    body: object
    runs: int


def in_turn(region, bodies, cursor):
    """Put schedules into ``region``, one after the other from ``cursor`` on, those of loops as
    regions within it; returns the end."""
    for body in bodies:
        if body.turns > 1:
            region.children.append(Region(cursor, body.period, body.turns, body.issues))
            cursor += body.end + 1      # the LOOP word
        else:
            region.issues += [replace(issue, start=issue.start + cursor) for issue in body.issues]
            cursor += body.end
    return cursor
