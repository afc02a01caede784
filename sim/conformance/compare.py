"""Comparing the events of two machines, or of a plan and a machine."""

from dataclasses import dataclass

import numpy as np

from sim.conformance.matching import CATEGORIES, match
from sim.conformance.naming import Difference, Names
from sim.events import KINDS

__all__ = ["BITS", "CYCLES", "Comparison", "compare", "summary_line"]

#: Payload by kind of event, for two machines: every bit.
BITS = {"issues": ("crc", "index"), "writes": ("address", "data"), "arrivals": ("data",),
        "host": ("data",)}
#: The same for a plan, which knows no data.
CYCLES = {"issues": ("crc", "index"), "writes": ("address",), "arrivals": ()}


def summary_line(planned, equal, counts):
    """The line that everything serves.

    Parameters
    ----------
    planned : int
        Expected instructions.
    equal : dict of str to int
        Matched events by kind.
    counts : dict of str to int
        Differences by category of `CATEGORIES`.
    """
    faults = ", ".join(f"{counts[name]:,} {name.replace('_', '-')}" for name in CATEGORIES)
    return (f"conformance: {equal['issues']:,} of {planned:,} planned instructions, "
            f"{equal['arrivals']:,} link vectors, {equal['writes']:,} SRAM writes; {faults}")


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`.

    Attributes
    ----------
    matches : dict of str to sim.conformance.matching.Match
        By kind of event: `sim.events.KINDS`, and ``host`` where both sides tell what the host got.
    names : sim.conformance.naming.Names
    """

    matches: dict
    names: Names

    @property
    def planned(self):
        """Number of expected instructions."""
        return len(self.matches["issues"].expected)

    @property
    def equal(self):
        """Matched events by kind."""
        return {kind: found.equal for kind, found in self.matches.items()}

    @property
    def counts(self):
        """Differences by category."""
        return {category: sum(len(getattr(found, category)) for found in self.matches.values())
                for category in CATEGORIES}

    @property
    def faults(self):
        """Number of differences."""
        return sum(self.counts.values())

    @property
    def ok(self):
        """Whether the tables agree."""
        return self.faults == 0

    def summary(self):
        """`summary_line` of this comparison."""
        return summary_line(self.planned, self.equal, self.counts)

    @property
    def first(self):
        """The `Difference` that happens first, or None."""
        return next(iter(self.differences(1)), None)

    def differences(self, limit):
        """The first ``limit`` `Difference`s by the cycle in which the sides part; in one cycle
        issues come before writes, writes before arrivals, then by tile and unit."""
        found = []
        for number, kind in enumerate(self.matches):
            for category in CATEGORIES:
                found += self._earliest(number, kind, category, limit)
        return [self._name(*where) for _, where in sorted(found)[:limit]]

    def _earliest(self, number, kind, category, limit):
        """Up to ``limit`` of (sort key, (kind, category, expected index, observed index))."""
        pairs = getattr(self.matches[kind], category)
        if not len(pairs):
            return []
        absent = np.full(len(pairs), -1)
        e, o = {"missing": (pairs, absent), "unplanned": (absent, pairs)}.get(category) or pairs.T
        expected, observed = self.matches[kind].expected, self.matches[kind].observed
        late = np.iinfo(np.int64).max
        cycles = [np.where(index < 0, late, table["cycle"][index]) if len(table) else late
                  for table, index in ((expected, e), (observed, o))]
        cycle = np.minimum(*cycles)
        source, index = (observed, o) if category == "unplanned" else (expected, e)
        tile, unit = source["tile"][index], source["unit"][index]
        order = np.lexsort((unit, tile, cycle))[:limit]
        return [((int(cycle[i]), number, int(tile[i]), int(unit[i]), category),
                 (kind, category, int(e[i]), int(o[i]))) for i in order]

    def _name(self, kind, category, e, o):
        found = self.matches[kind]
        sides = [None if index < 0 else table[index]
                 for table, index in ((found.expected, e), (found.observed, o))]
        here, other = sides if sides[0] is not None else (sides[1], sides[0])
        issues = self.matches["issues"]
        tables = (issues.expected, issues.observed)
        mnemonic = self.names.mnemonic(kind, here, tables[0 if sides[0] is not None else 1])
        if mnemonic == "?" and other is not None:
            mnemonic = self.names.mnemonic(kind, other, tables[1])
        texts = ["nothing" if side is None else self.names.event(kind, side) for side in sides]
        return Difference(category=category.replace("_", "-"), kind=kind, tile=int(here["tile"]),
                          queue=self.names.queue(kind, int(here["unit"])),
                          cycle=int(here["cycle"]), mnemonic=mnemonic,
                          expected=texts[0], observed=texts[1])


def compare(cfg, expected, observed, payload=BITS, binary=None, host=None):
    """Compare two sets of events.

    Parameters
    ----------
    cfg : hdl.arch.config.TileConfig
    expected, observed : sim.events.Events
    payload : dict of str to tuple of str
        `BITS` or `CYCLES`.
    binary : hdl.arch.binary.SystemBinary, optional
        To name instructions.
    host : (array, array), optional
        Vectors that the host received on either side.

    Returns
    -------
    Comparison

    Raises
    ------
    ConformanceError
        If the tables lack fields.
    """
    matches = {kind: match(getattr(expected, kind), getattr(observed, kind), payload[kind])
               for kind in KINDS}
    if host is not None:
        matches["host"] = match(*host, payload["host"])
    return Comparison(matches, Names(cfg, binary))
