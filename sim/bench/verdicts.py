"""Verdicts on mutants, and how they are shown."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

__all__ = ["EQUAL", "KILLED", "MASKED", "MISSED", "Outcome", "first_difference", "same", "summary",
           "table"]

KILLED, EQUAL, MASKED, MISSED = "killed", "equal", "masked", "missed"
_VERDICTS = (KILLED, EQUAL, MASKED, MISSED)


@dataclass(frozen=True)
class Outcome:
    """What came of a mutant.

    Attributes
    ----------
    group : str
        Side, or unit of the netlist.
    what : str
    verdict : str
    first : str
        First difference, or what is the same.
    named : bool
        Of a killed one: an event is named, with its instruction, or a sticky error.
    """

    group: str
    what: str
    verdict: str
    first: str
    named: bool = True


def same(left, right):
    """Whether two `sim.events.Observation` are equal in everything.

    Nothing of `sim.conformance` is used: a fault there must not hide itself.
    """
    tables = [(getattr(left.events, kind), getattr(right.events, kind))
              for kind in left.events._fields] + [(left.host, right.host)]
    for one, other in tables:
        if sorted(row.tobytes() for row in one) != sorted(row.tobytes() for row in other):
            return False
    if (left.sram is None) != (right.sram is None):
        return False
    contents = left.sram is None or all(
        np.array_equal(a, b) for a, b in zip(left.sram, right.sram, strict=True))
    return contents and left.faults == right.faults and left.running == right.running


def first_difference(report, side):
    """First difference in full, event or sticky error, in which the mutated side takes part; and
    whether its cycle and instruction (or error) are named."""
    first = report.first(side)
    if first is not None:
        return str(first), first.mnemonic != "?" and first.cycle is not None
    return report.problems[0] if report.problems else "", False


def table(outcomes, groups):
    """Verdicts by group as text."""
    lines = [f"{'':<14}{'mutants':>8}" + "".join(f"{verdict:>8}" for verdict in _VERDICTS)]
    for group in groups:
        counts = Counter(one.verdict for one in outcomes if one.group == group)
        if counts:
            lines.append(f"{group:<14}{sum(counts.values()):>8}"
                         + "".join(f"{counts[verdict]:>8}" for verdict in _VERDICTS))
    return "\n".join(lines)


def summary(inputs, netlist):
    """One line."""
    parts = []
    for name, outcomes in (("inputs", inputs), ("netlist", netlist)):
        counts = Counter(one.verdict for one in outcomes)
        parts.append(f"{counts[KILLED]} of {len(outcomes)} {name} mutants killed "
                     f"({counts[KILLED] / max(1, len(outcomes)):.1%}), {counts[EQUAL]} equal, "
                     f"{counts[MASKED]} masked, {counts[MISSED]} missed")
    return "mutation: " + "; ".join(parts)
