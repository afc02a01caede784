"""From cells to the configuration of an FPGA, with nextpnr: resources, clock, critical path."""

import json
from collections import defaultdict
from dataclasses import dataclass

from sim.fpga.netlist import unit_of
from sim.fpga.tools import ECPPACK, NEXTPNR, run_tool

__all__ = ["Routed", "pack", "place_and_route", "read_report"]

#: What nextpnr calls the resources that are reported.
RESOURCES = {"LUT": "TRELLIS_COMB", "FF": "TRELLIS_FF", "block RAM": "DP16KD",
             "DSP": "MULT18X18D"}


@dataclass(frozen=True)
class Routed:
    """What nextpnr says of a design.

    Attributes
    ----------
    used : dict of str to (int, int)
        By resource: used, available.
    mhz : float
        Highest clock of the tile.
    path : list of (str, str, float)
        The critical path: unit, kind of delay, ns.
    arrivals : dict of str to float
        By unit: ns of the longest path that ends in it.
    """

    used: dict
    mhz: float
    path: list
    arrivals: dict

    def path_by_unit(self):
        """(unit, ns) of the critical path, in its order."""
        parts = []
        for unit, _, delay in self.path:
            if parts and parts[-1][0] == unit:
                parts[-1][1] += delay
            else:
                parts.append([unit, delay])
        return [(unit, round(delay, 2)) for unit, delay in parts]


def place_and_route(synthesis, part, *, package, speed, lpf, seed):
    """Place and route for a `Part`; the configuration is left as ``board.config``.

    Returns
    -------
    Routed

    Raises
    ------
    sim.fpga.tools.ToolFailed
        If nextpnr is missing or the design does not fit.
    """
    directory = synthesis.directory
    (directory / "board.lpf").write_text(lpf)
    run_tool(NEXTPNR, [part.option, "--package", package, "--speed", str(speed),
                       "--json", synthesis.json.name, "--lpf", "board.lpf",
                       "--textcfg", "board.config", "--report", "report.json",
                       "--detailed-timing-report", "--seed", str(seed), "--timing-allow-fail"],
             directory, log="nextpnr.log")
    return read_report(json.loads((directory / "report.json").read_text()))


def pack(directory):
    """The bitstream of a configuration: `Path` of ``board.bit``, beside it."""
    run_tool(ECPPACK, ["--compress", "board.config", "board.bit"], directory, log="ecppack.log")
    return directory / "board.bit"


def read_report(report):
    """`Routed` of the report that nextpnr writes.  Its clock is the slowest one that is
    constrained by more than an oscillator."""
    used = {name: (report["utilization"][cell]["used"], report["utilization"][cell]["available"])
            for name, cell in RESOURCES.items()}
    clock = min(report["fmax"], key=lambda name: report["fmax"][name]["achieved"])
    paths = [path for path in report["critical_paths"]
             if clock in path["from"] and clock in path["to"]]
    worst = max(paths, key=lambda path: sum(step["delay"] for step in path["path"]))
    steps = [(unit_of(step["to"]["cell"]) or unit_of(step.get("net", "")) or "", step["type"],
              step["delay"]) for step in worst["path"]]
    return Routed(used, report["fmax"][clock]["achieved"], _named(steps), _arrivals(report))


def _named(steps):
    """Steps of a path; one without a unit is in that of the step before."""
    unit, found = "tile", []
    for name, kind, delay in steps:
        unit = name or unit
        found.append((unit, kind, delay))
    return found


def _arrivals(report):
    arrivals = defaultdict(float)
    for net in report.get("detailed_net_timings", ()):
        for end in net["endpoints"]:
            unit = unit_of(end["cell"]) or unit_of(net["net"])
            if unit:
                arrivals[unit] = max(arrivals[unit], end["delay"])
    return dict(sorted(arrivals.items(), key=lambda item: -item[1]))
