"""``oncycle bench context``: cycles a token against the positions a program has room for."""

import argparse
import sys
from dataclasses import replace

from compiler.decoder.program import compile_decoder
from compiler.model import checkpoint
from compiler.quantise import calibration_sequences, quantise
from sim.bench.planned import plain_tokens, run_planned
from sim.bench.report import finish
from sim.bench.speedup import large_machine
from sim.compiling import DEFAULT_MODEL
from sim.decoding import host_tokens, with_prompt
from sim.rtl.build import build_rtl

__all__ = ["BARS", "main", "misses"]

#: What the figures must reach.
BARS = {
    "growth": 8.0,      # less than: cycles over those of an eighth of the capacity
}
#: Steps that are run, and the prompt.
STEPS, PROMPT = 2, (2, 7)
#: Of a slice: what the caches of 8,192 positions need on one tile.
_WORDS = 1 << 16


def long_model(path, positions, lanes):
    """A model with tables for so many positions, its layers as they are."""
    found = checkpoint.load(path)
    sequences = calibration_sequences(path, found)
    config = replace(found.config, max_position=positions)
    return quantise(replace(found.weights, config=config), sequences, lanes, None)


def agrees(model, program, capacity, observed):
    """Whether a run gave the plain model's tokens."""
    return host_tokens(observed.host) == plain_tokens(model, capacity, program.shards, PROMPT,
                                                      STEPS)


def misses(rows):
    """One line for every run that was not as it should be, and every growth out of proportion."""
    found = [f"{row['capacity']} positions on {row['tiles']} tiles: {row['verdict']}"
             for row in rows if not row["ok"]]
    for row in rows:
        for other in rows:
            same = row["tiles"] == other["tiles"] and other["capacity"] == 8 * row["capacity"]
            if same and other["cycles"] >= BARS["growth"] * row["cycles"]:
                found.append(f"{other['capacity']} positions on {row['tiles']} tiles: "
                             f"{other['cycles'] / row['cycles']:.2f}x the cycles of an eighth")
    return found


def main(arguments):
    """Run the bench; returns 0, or 1 where something is not as it should be."""
    parser = argparse.ArgumentParser(prog="oncycle bench context", description=__doc__)
    parser.add_argument("--capacities", default="128,1024,8192",
                        help="positions (default: %(default)s)")
    parser.add_argument("--tiles", default="1,4,16", help="tile counts (default: %(default)s)")
    parser.add_argument("--rtl", default="1024:4,8192:1,8192:4", metavar="CAPACITY:TILES,...",
                        help="what is run on RTL, too (default: %(default)s)")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="model directory or file")
    options = parser.parse_args(arguments)
    capacities, counts = ([int(text) for text in given.split(",")]
                          for given in (options.capacities, options.tiles))
    on_rtl = {tuple(map(int, pair.split(":"))) for pair in filter(None, options.rtl.split(","))}

    def say(text):
        print(f"  {text}", file=sys.stderr, flush=True)

    whole = large_machine(max(2, *counts), _WORDS)
    built = large_machine(max([2, *(tiles for _, tiles in on_rtl)]), _WORDS)
    build = build_rtl(built, report=say) if on_rtl else None
    model = long_model(options.model, max(capacities), whole.tile.lanes)
    rows = []
    print(f"{'tiles':>5} {'capacity':>8} {'cycles a token':>14} {'more':>7}  "
          "shares of positions by layer; on RTL")
    for tiles in counts:
        for capacity in capacities:
            run = (capacity, tiles) in on_rtl
            system = (built if run else whole).restrict(tiles)
            program = compile_decoder(system, model, capacity, search=False)
            verdict, ok = "not run", True
            if run:
                verdict, ok = run_planned(
                    build, built, program, with_prompt(program, PROMPT, STEPS).binary, STEPS,
                    lambda seen, program=program, capacity=capacity:
                    agrees(model, program, capacity, seen), f"context-{tiles}-{capacity}", say)
            rows.append({"tiles": tiles, "capacity": capacity, "cycles": program.plan.cycles(1),
                         "shards": list(program.shards), "verdict": verdict, "ok": ok})
            before = [row["cycles"] for row in rows[:-1] if row["tiles"] == tiles]
            more = f"{rows[-1]['cycles'] / before[-1] - 1:+.1%}" if before else ""
            print(f"{tiles:>5} {capacity:>8,} {rows[-1]['cycles']:>14,} {more:>7}  "
                  f"{'/'.join(map(str, program.shards))}; {verdict}", flush=True)
    return finish("context", {"rows": rows}, misses(rows), f"{len(rows)} programs")
