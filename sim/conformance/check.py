"""The conformance of plan, emulator and RTL: events, bits, final SRAM, faults, halted queues.

Faults are compared although events are: a word that issues nothing is no event.  Where a HALT, NOP
or LOOP is left out or changed into a word that the queue does not have, everything that should
issue may have issued before, and only the error register (``ICU_WORD``) tells.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from hdl.arch.errors import FAULT_MEANING, Fault
from sim.conformance.compare import BITS, CYCLES, compare, summary_line
from sim.conformance.matching import CATEGORIES, ConformanceError
from sim.conformance.naming import Difference
from sim.events import KINDS

__all__ = ["Report", "check", "sram_difference", "sticky_errors"]

#: What is compared: expected side, observed side, payload.
_PAIRS = (("plan", "RTL", CYCLES), ("plan", "emulator", CYCLES), ("emulator", "RTL", BITS))


@dataclass(frozen=True)
class Report:
    """Result of `check`.

    Attributes
    ----------
    comparisons : dict of (str, str) to Comparison
        By names of the two sides.
    errors : tuple of (str, Difference)
        Every bit of a sticky error register that is set, with the machine's name.
    problems : tuple of str
        One line for everything else: final SRAM, queues still running.
    """

    comparisons: dict
    errors: tuple = field(default=())
    problems: tuple = field(default=())

    @property
    def ok(self):
        """Whether everything agrees."""
        return not self.errors and not self.problems \
            and all(found.ok for found in self.comparisons.values())

    def first(self, side):
        """The first `Difference` that ``side`` (``plan``, ``emulator``, ``RTL``) takes part in, or
        None: in one cycle events come before sticky errors, those of unknown cycle are last."""
        found = [(comparison.first.cycle, 0, comparison.first)
                 for pair, comparison in self.comparisons.items()
                 if side in pair and not comparison.ok]
        found += [(math.inf if error.cycle is None else error.cycle, 1, error)
                  for machine, error in self.errors if machine == side]
        return min(found, key=lambda item: item[:2], default=(None,))[-1]

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
        lines += [f"{machine}: {error}" for machine, error in self.errors]
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
    errors, problems = [], []
    for name, seen in machines.items():
        if seen is not None:
            errors += [(name, error) for error in sticky_errors(seen)]
            problems += [f"{name}: tile {tile}, {queue} has not halted"
                         for tile, queue in seen.running]
    if emulator is not None and rtl is not None and None not in (emulator.sram, rtl.sram):
        problems += sram_difference(system.tile, emulator.sram, rtl.sram)
    return Report(comparisons, tuple(errors), tuple(problems))


def sticky_errors(seen):
    """A `Difference` for every bit of the error registers that is set: with place and cycle of its
    first `sim.events.FaultEvent`, or none where nothing was recorded.

    Parameters
    ----------
    seen : sim.events.Observation
    """
    first = {}
    for event in sorted(seen.fault_events, key=lambda event: event.cycle):
        first.setdefault((event.tile, event.fault), event)
    found = []
    for tile, bits in enumerate(seen.faults):
        for bit in range(bits.bit_length()):
            if bits >> bit & 1:
                event = first.get((tile, bit))
                name, meaning = (Fault(bit).name, FAULT_MEANING[bit]) if bit < len(Fault) else \
                    (f"BIT_{bit}", "an unknown sticky error")
                found.append(Difference(
                    category="sticky error", kind="errors", tile=tile,
                    queue=event.place if event else "error register",
                    cycle=event.cycle if event else None, mnemonic=name,
                    expected="no error", observed=meaning))
    return found


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
