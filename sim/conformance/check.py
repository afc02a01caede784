"""The conformance of plan, emulator and RTL: events, bits, final SRAM, faults, halted queues."""

from dataclasses import dataclass, field

import numpy as np

from hdl.arch.errors import FAULT_MEANING, Fault
from sim.conformance.compare import BITS, CYCLES, compare, summary_line
from sim.conformance.matching import CATEGORIES, ConformanceError
from sim.events import KINDS

__all__ = ["Report", "check", "fault_lines", "sram_difference"]

#: What is compared: expected side, observed side, payload.
_PAIRS = (("plan", "RTL", CYCLES), ("plan", "emulator", CYCLES), ("emulator", "RTL", BITS))


@dataclass(frozen=True)
class Report:
    """Result of `check`.

    Attributes
    ----------
    comparisons : dict of (str, str) to Comparison
        By names of the two sides.
    problems : tuple of str
        One line for everything that is no event: SRAM, faults, queues still running.
    """

    comparisons: dict
    problems: tuple = field(default=())

    @property
    def ok(self):
        """Whether everything agrees."""
        return not self.problems and all(found.ok for found in self.comparisons.values())

    @property
    def counts(self):
        """Differences by category: the most that any pair of sides shows (a fault of one side
        shows in both of its pairs)."""
        return {category: max(found.counts[category] for found in self.comparisons.values())
                for category in CATEGORIES}

    def summary(self):
        """The summary line; its matched events are those that agree on all sides."""
        found = list(self.comparisons.values())
        equal = {kind: min(one.equal[kind] for one in found) for kind in KINDS}
        return summary_line(found[0].planned, equal, self.counts)

    def lines(self):
        """The summary line and, for everything that differs, one line that names the first."""
        lines = [self.summary()]
        for (expected, observed), found in self.comparisons.items():
            if not found.ok:
                lines.append(f"first difference of {expected} and {observed}: {found.first}")
        return [*lines, *self.problems]


def check(system, binary, *, plan=None, emulator=None, rtl=None):
    """Compare what there is of plan, emulator and RTL.

    Parameters
    ----------
    system : hdl.arch.config.SystemConfig
    binary : hdl.arch.binary.SystemBinary
        What was meant to run: names the instructions.
    plan : sim.events.Events, optional
    emulator, rtl : sim.events.Observation, optional

    Returns
    -------
    Report

    Raises
    ------
    ConformanceError
        If fewer than two sides are given, nothing is expected, or tables lack fields.
    """
    machines = {"emulator": emulator, "RTL": rtl}
    sides = {"plan": plan, **{name: seen and seen.events for name, seen in machines.items()}}
    comparisons = {}
    for expected, observed, payload in _PAIRS:
        if sides[expected] is not None and sides[observed] is not None:
            host = None
            if payload is BITS:
                host = machines[expected].host, machines[observed].host
                host = None if any(table is None for table in host) else host
            comparisons[expected, observed] = compare(
                system.tile, sides[expected], sides[observed], payload, binary, host)
    if not comparisons:
        raise ConformanceError("Nothing to compare: give two of plan, emulator and RTL")
    if not all(found.planned for found in comparisons.values()):
        raise ConformanceError("Nothing to compare: no instruction is expected")
    problems = []
    for name, seen in machines.items():
        if seen is not None:
            problems += fault_lines(name, seen.faults)
            problems += [f"{name}: tile {tile}, {queue} has not halted"
                         for tile, queue in seen.running]
    if emulator is not None and rtl is not None and None not in (emulator.sram, rtl.sram):
        problems += sram_difference(system.tile, emulator.sram, rtl.sram)
    return Report(comparisons, tuple(problems))


def fault_lines(name, faults):
    """One line for every bit of the sticky error registers that is set.

    Parameters
    ----------
    name : str
        The machine.
    faults : sequence of int
        Error register by tile.
    """
    lines = []
    for tile, bits in enumerate(faults):
        lines += [f"{name}: tile {tile} has the sticky error {fault.name}: {FAULT_MEANING[fault]}"
                  for fault in Fault if bits >> fault & 1]
        if bits >> len(Fault):
            lines.append(f"{name}: tile {tile} has unknown sticky errors {bits:#x}")
    return lines


def sram_difference(cfg, expected, observed):
    """One line that names the first SRAM word that differs, or none.

    Parameters
    ----------
    cfg : hdl.arch.config.TileConfig
    expected, observed : list of array
        By tile: uint8 of shape (slices, words, lanes).
    """
    if len(expected) != len(observed):
        return [f"final SRAM: {len(expected)} tiles expected, {len(observed)} observed"]
    for tile, (left, right) in enumerate(zip(expected, observed, strict=True)):
        if left.shape != right.shape:
            return [f"final SRAM: tile {tile} has shape {right.shape}, {left.shape} was expected"]
        differs = np.argwhere((left != right).any(axis=2))
        if len(differs):
            unit, word = differs[0]
            texts = [side[unit, word].tobytes().hex() for side in (left, right)]
            return [f"final SRAM: words of tile {tile} that differ: {len(differs):,}, the first "
                    f"{cfg.slices('mem')[unit]} word {word}: expected {texts[0]}, "
                    f"observed {texts[1]}"]
    return []
