"""``oncycle bench bound``: cycles a token beside what no schedule can beat, and with barriers."""

import argparse
import sys

from compiler.bounds import bounds_of
from compiler.decoder.program import Compilation
from compiler.model import hf
from sim.bench.report import OUTPUT, write_json
from sim.compiling import DEFAULT_MODEL, machine, quantised

__all__ = ["BARS", "main"]

#: What the figures must reach.
BARS = {
    "over_schedule_bound": 1.35,    # at most: cycles over the schedule bound, at every tile count
    "model_bound_share": 0.62,      # at least: model bound over cycles on one tile
}


def measure(model, tiles, context):
    """Figures of one tile count: a dict."""
    compilation = Compilation(machine().restrict(tiles), model, context)
    cycles = compilation.decoder().plan.cycles(1)
    found = bounds_of(compilation)
    return {"tiles": tiles, "cycles": cycles, "schedule_bound": found.schedule,
            "model_bound": found.model, "model_binds": found.model_binds,
            "barrier_cycles": found.barrier,
            "regions": [region._asdict() for region in found.regions]}


def misses(rows):
    """One line for every bar that ``rows`` miss."""
    found = []
    for row in rows:
        ratio = row["cycles"] / row["schedule_bound"]
        if ratio > BARS["over_schedule_bound"]:
            found.append(f"{row['tiles']} tiles: {ratio:.3f}x the schedule bound, "
                         f"at most {BARS['over_schedule_bound']}")
        share = row["model_bound"] / row["cycles"]
        if row["tiles"] == 1 and share < BARS["model_bound_share"]:
            found.append(f"1 tile: model bound {share:.3f} of the cycles, at least "
                         f"{BARS['model_bound_share']}")
    for fewer, more in zip(rows, rows[1:], strict=False):
        if more["cycles"] >= fewer["cycles"]:
            found.append(f"{more['tiles']} tiles take {more['cycles']:,} cycles, no fewer than "
                         f"{fewer['tiles']}")
    return found


def main(arguments):
    """Run the bench; returns 0, or 1 where a figure misses its bar."""
    parser = argparse.ArgumentParser(prog="oncycle bench bound", description=__doc__)
    parser.add_argument("--tiles", default="1,2,4", help="tile counts (default: %(default)s)")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="model directory")
    parser.add_argument("--context", type=int, default=128, help="positions (default: 128)")
    options = parser.parse_args(arguments)
    model = quantised(hf.load(options.model), options.model, machine().tile.lanes)
    rows = []
    print(f"{'tiles':>5} {'cycles':>7} {'schedule bound':>15} {'ratio':>6} {'model bound':>12} "
          f"{'share':>6} {'barriers':>9} {'ratio':>6}")
    for tiles in map(int, options.tiles.split(",")):
        row = measure(model, tiles, options.context)
        rows.append(row)
        print(f"{tiles:>5} {row['cycles']:>7,} {row['schedule_bound']:>15,} "
              f"{row['cycles'] / row['schedule_bound']:>6.3f} {row['model_bound']:>12,} "
              f"{row['model_bound'] / row['cycles']:>6.3f} {row['barrier_cycles']:>9,} "
              f"{row['barrier_cycles'] / row['cycles']:>6.3f}", flush=True)
        for region in row["regions"]:
            print(f"      region of {region['cycles']:,} cycles, {region['runs']} runs: bound "
                  f"{region['bound']:,}, {region['binds']}")
    write_json(OUTPUT / "bound.json", {"context": options.context, "rows": rows})
    missed = misses(rows)
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    print(f"bound: {len(rows)} tile counts, {len(missed)} bars missed")
    return 1 if missed else 0
