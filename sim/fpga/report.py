"""What came of a design on an FPGA: text, and what of it misses a bar."""

from sim.fpga.netlist import totals
from sim.report.table import percent, table

__all__ = ["BARS", "figures", "lines", "misses"]

#: What the figures must reach, in MHz; `goal` is what is aimed at, missing it is no failure.
BARS = {"mhz": 50.0}
GOAL_MHZ = 80.0
#: Units that are listed, by the beginning of their names; what none of them has is the tile's.
_GROUPS = ("vxm", "mxm", "sxm", "mem", "icu", "stream", "c2c", "board")
_COUNTED = ("LUT", "FF", "block RAM", "DSP", "LUT RAM")


def _group(unit):
    return next((group for group in _GROUPS if unit.startswith(group)), "tile")


def by_group(counts):
    """`sim.fpga.netlist.cells_by_unit` with alike units added up: dict of dict by kind."""
    found = {}
    for unit, cells in counts.items():
        group = found.setdefault(_group(unit), dict.fromkeys(_COUNTED, 0))
        for kind, number in cells.items():
            group[kind] += number
    return dict(sorted(found.items(), key=lambda item: -item[1]["LUT"]))


def figures(counts, routed, *, inferred):
    """Everything as JSON."""
    return {"cells": by_group(counts), "totals": dict(totals(counts)), "not_inferred": inferred,
            "used": {name: {"used": used, "available": has}
                     for name, (used, has) in routed.used.items()},
            "mhz": round(routed.mhz, 2), "goal_mhz": GOAL_MHZ, "bars": BARS,
            "critical_path": [{"unit": unit, "kind": kind, "ns": round(delay, 2)}
                              for unit, kind, delay in routed.path],
            "longest_path_into": {unit: round(delay, 2)
                                  for unit, delay in routed.arrivals.items()}}


def lines(counts, routed):
    """Tables: cells by group, what nextpnr uses, the critical path."""
    groups = by_group(counts)
    text = table(("synthesised", *_COUNTED), [(name, *(cells[kind] for kind in _COUNTED))
                                              for name, cells in groups.items()])
    text += ["", *table(("placed and routed", "used", "of", ""), [
        (name, used, has, percent(used, has)) for name, (used, has) in routed.used.items()])]
    text += ["", *table(("critical path", "ns"), [(unit, f"{delay:.2f}")
                                                  for unit, delay in routed.path_by_unit()])]
    worst = {}
    for unit, delay in routed.arrivals.items():
        worst[_group(unit)] = max(worst.get(_group(unit), 0), delay)
    if worst:
        text += ["", *table(("longest path into", "ns"), [
            (name, f"{delay:.2f}") for name, delay in sorted(worst.items(), key=lambda i: -i[1])])]
    return text


def misses(routed, inferred, mhz):
    """One line for everything that is not as it should be; ``mhz``: clock of the board."""
    found = list(inferred)
    least = max(BARS["mhz"], mhz)
    if routed.mhz < least:
        found.append(f"clock of {routed.mhz:.1f} MHz is below {least:.1f} MHz")
    return found
