"""Conformance where queues wait for messages: everything at a fixed time behind a release.

When messages come is not planned, so the plan of such a program is in a time of each tile's own,
which stands still while the tile waits.  What must hold: every queue does what is planned in the
planned order, and between two waits all queues of a tile are late by one and the same number of
cycles.
"""

from dataclasses import dataclass

import numpy as np

from compiler.plan import expand
from sim.conformance.check import sticky_errors

__all__ = ["Released", "check_stages"]


@dataclass(frozen=True)
class Released:
    """Result of `check_stages`.

    Attributes
    ----------
    late : list of array of int (steps, stages)
        By tile: cycles by which it begins each stage later than it would without waiting; -1
        where nothing is seen of it.
    equal : dict of str to int
        Issues and writes that are as planned.
    problems : tuple of str
        One line for each queue, slice or stage of which something is not, and each fault.
    """

    late: list
    equal: dict
    problems: tuple

    @property
    def ok(self):
        """Whether everything is."""
        return not self.problems

    def summary(self):
        """One line."""
        releases = sum(late.size for late in self.late)
        return (f"stages: {self.equal['issues']:,} instructions and {self.equal['writes']:,} SRAM "
                f"writes at the planned distance from {releases:,} releases, "
                f"{len(self.problems):,} problems")

    def cycle(self, tile, stage, virtual, step=0, period=0):
        """Cycle of what is planned for cycle ``virtual`` of step ``step`` and stage ``stage``."""
        return virtual + step * period + int(self.late[tile][step, stage])


def check_stages(plan, starts, observed, steps=1):
    """Compare a run with its plan.

    Parameters
    ----------
    plan : Plan
        Of steps, with the words filled in.
    starts : list of list of int
        By tile: cycle of the step in which each stage begins.
    observed : sim.events.Observation
    steps : int

    Returns
    -------
    Released
    """
    period, planned = plan.root.children[0].period, expand(plan, steps)
    problems = [f"{error}" for error in sticky_errors(observed)]
    problems += [f"tile {tile}, {queue} has not halted" for tile, queue in observed.running]
    equal, late = {}, [np.full((steps, len(stages)), -1) for stages in starts]
    for kind, payload in (("issues", ("crc", "index")), ("writes", ("address",))):
        seen = getattr(observed.events, kind)
        equal[kind] = 0
        for tile, stages in enumerate(starts):
            pairs, found = _in_order(kind, tile, planned[kind], seen, payload)
            problems += found
            equal[kind] += sum(len(one) for one, _ in pairs)
            problems += _shifts(kind, tile, stages, period, pairs, late[tile])
    for tile, shifts in enumerate(late):
        seen = shifts[shifts >= 0]
        if shifts[0, 0] > 0 or (np.diff(seen) < 0).any():
            problems.append(f"tile {tile}: its stages are late by {seen.tolist()} cycles, which "
                            "must begin with 0 and never fall")
    return Released(late, equal, tuple(problems))


def _in_order(kind, tile, planned, seen, payload):
    """Planned and observed cycles of each unit of a tile, and what does not belong together."""
    pairs, problems = [], []
    mine, its = (table[table["tile"] == tile] for table in (planned, seen))
    for unit in np.union1d(mine["unit"], its["unit"]).tolist():
        wanted, got = (np.sort(table[table["unit"] == unit], order="cycle")
                       for table in (mine, its))
        if len(wanted) != len(got):
            problems.append(f"tile {tile}: {len(wanted)} {kind} of unit {unit} planned, {len(got)} "
                            "seen")
        elif any(not np.array_equal(wanted[name], got[name]) for name in payload):
            problems.append(f"tile {tile}: {kind} of unit {unit} are not those planned")
        else:
            pairs.append((wanted["cycle"].astype(np.int64), got["cycle"].astype(np.int64)))
    return pairs, problems


def _shifts(kind, tile, stages, period, pairs, late):
    """Fill in how late each stage begins, where that is not known (-1); a line for what is late by
    something else."""
    problems = []
    for planned, seen in pairs:
        step, within = np.divmod(planned, period)
        stage = np.searchsorted(stages, within, "right") - 1
        shift = seen - planned
        for s in np.unique(step).tolist():
            for g in np.unique(stage[step == s]).tolist():
                here = np.unique(shift[(step == s) & (stage == g)])
                if late[s, g] < 0:
                    late[s, g] = here[0]
                if not np.array_equal(here, [late[s, g]]):
                    problems.append(f"tile {tile}: {kind} of step {s}, stage {g} are late by "
                                    f"{here.tolist()} cycles, others by {late[s, g]}")
    return problems
