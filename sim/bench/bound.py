"""``oncycle bench bound``: cycles a token beside what no schedule can beat, and with barriers."""

import argparse
from dataclasses import replace

from compiler.bounds import bounds_of
from compiler.decoder.compilation import Compilation
from compiler.model import checkpoint
from hdl.arch.config import all_to_all, ring
from sim.bench.report import finish
from sim.compiling import DEFAULT_MODEL, MACHINE_TILES, machine, quantised

__all__ = ["BARS", "main"]

#: What the figures must reach.
BARS = {
    "over_schedule_bound": 1.20,    # at most: cycles over the schedule bound, at every tile count
    "model_bound_share": 0.70,      # at least: model bound over cycles on one tile
    "barriers": 1.08,               # at least: cycles with barriers over cycles, on 2 and 4 tiles
}


def _system(tiles, topology):
    """Tiles of ``make sim``, with as many ports as they need."""
    if topology == "ring":
        return ring(machine().tile, tiles)
    if tiles <= MACHINE_TILES:
        return machine().restrict(tiles)
    return all_to_all(replace(machine().tile, ports=machine().tile.ports[:1] * (tiles - 1)), tiles)


def measure(model, tiles, topology, context):
    """Figures of one system: a dict."""
    compilation = Compilation(_system(tiles, topology), model, context)
    cycles = compilation.decoder().plan.cycles(1)
    found = bounds_of(compilation)
    return {"tiles": tiles, "topology": topology, "cycles": cycles,
            "schedule_bound": found.schedule, "model_bound": found.model,
            "model_binds": found.model_binds, "barrier_cycles": found.barrier,
            "regions": [region._asdict() for region in found.regions]}


def misses(rows):
    """One line for every bar that ``rows`` miss."""
    found = []
    for row in rows:
        name = f"{row['tiles']} tiles, {row['topology']}"
        ratio = row["cycles"] / row["schedule_bound"]
        if ratio > BARS["over_schedule_bound"]:
            found.append(f"{name}: {ratio:.3f}x the schedule bound, at most "
                         f"{BARS['over_schedule_bound']}")
        share = row["model_bound"] / row["cycles"]
        if row["tiles"] == 1 and share < BARS["model_bound_share"]:
            found.append(f"{name}: model bound {share:.3f} of the cycles, at least "
                         f"{BARS['model_bound_share']}")
        gain = row["barrier_cycles"] / row["cycles"]
        if row["tiles"] in (2, 4) and gain < BARS["barriers"]:
            found.append(f"{name}: with barriers {gain:.3f}x, at least {BARS['barriers']}")
    direct = [row for row in rows if row["topology"] == "all_to_all"]
    for fewer, more in zip(direct, direct[1:], strict=False):
        if more["cycles"] >= fewer["cycles"]:
            found.append(f"{more['tiles']} tiles, all_to_all: {more['cycles']:,} cycles, no fewer "
                         f"than {fewer['tiles']}")
    return found


def _show(row):
    print(f"{row['tiles']:>5} {row['topology']:<10} {row['cycles']:>7,} "
          f"{row['schedule_bound']:>15,} {row['cycles'] / row['schedule_bound']:>6.3f} "
          f"{row['model_bound']:>12,} {row['model_bound'] / row['cycles']:>6.3f} "
          f"{row['barrier_cycles']:>9,} {row['barrier_cycles'] / row['cycles']:>6.3f}")
    for region in row["regions"]:
        print(f"      region of {region['cycles']:,} cycles, {region['runs']} runs: bound "
              f"{region['bound']:,}, {region['binds']}", flush=True)


def main(arguments):
    """Run the bench; returns 0, or 1 where a figure misses its bar."""
    parser = argparse.ArgumentParser(prog="oncycle bench bound", description=__doc__)
    parser.add_argument("--tiles", default="1,2,4,8",
                        help="tile counts with a link between every two (default: %(default)s)")
    parser.add_argument("--rings", default="4,8", help="tile counts of rings (default: 4,8)")
    parser.add_argument("--model", default=DEFAULT_MODEL,
                        help="model directory or file")
    parser.add_argument("--calibration", help="text (calibration.txt of the model)")
    parser.add_argument("--context", type=int, default=128, help="positions (default: 128)")
    options = parser.parse_args(arguments)
    model = quantised(checkpoint.load(options.model), options.model, machine().tile.lanes,
                      options.calibration)
    rows = []
    print(f"{'tiles':>5} {'topology':<10} {'cycles':>7} {'schedule bound':>15} {'ratio':>6} "
          f"{'model bound':>12} {'share':>6} {'barriers':>9} {'ratio':>6}")
    for topology, counts in (("all_to_all", options.tiles), ("ring", options.rings)):
        for tiles in map(int, filter(None, counts.split(","))):
            rows.append(measure(model, tiles, topology, options.context))
            _show(rows[-1])
    return finish("bound", {"context": options.context, "rows": rows}, misses(rows),
                  f"{len(rows)} systems")
