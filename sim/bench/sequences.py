"""``oncycle bench batch``: cycles a step against sequences in it, each as it is alone, on RTL."""

import argparse
import sys

from compiler.decoder.program import compile_decoder
from compiler.model import checkpoint
from sim.bench.planned import plain_tokens, run_planned
from sim.bench.report import finish
from sim.compiling import DEFAULT_MODEL, MAX_BATCH, machine, quantised
from sim.decoding import host_tokens, with_prompts
from sim.rtl.build import build_rtl

__all__ = ["BARS", "main", "misses"]

#: What the figures must reach.
BARS = {
    "gain": 1.0,        # more than: cycles a token over those of the next larger batch
}
CONTEXT = 128
#: Steps that are run.
STEPS = 3


def prompts(count, vocab):
    """One for each sequence, no two alike, of one token or two."""
    return [[(2 + 5 * n) % vocab, *range(n % 2)] for n in range(count)]


def agrees(model, program, asked, observed, context=CONTEXT):
    """Whether every sequence has the tokens that the plain model gives it alone, with a context of
    so many positions."""
    chosen = host_tokens(observed.host)
    for number, prompt in enumerate(asked):
        expected = plain_tokens(model, context, program.shards, prompt, STEPS)
        if chosen[number::len(asked)] != expected:
            return False
    return len(chosen) == STEPS * len(asked)


def misses(rows):
    """One line for every run that was not as it should be, and every batch that gains nothing."""
    found = [f"{row['batch']} sequences on {row['tiles']} tiles: {row['verdict']}"
             for row in rows if not row["ok"]]
    for one, other in zip(rows, rows[1:], strict=False):
        gain = one["cycles"] / one["batch"] / (other["cycles"] / other["batch"])
        if one["tiles"] == other["tiles"] and gain <= BARS["gain"]:
            found.append(f"{other['batch']} sequences on {other['tiles']} tiles: no fewer cycles a "
                         f"token than {one['batch']}")
    return found


def main(arguments):
    """Run the bench; returns 0, or 1 where something is not as it should be."""
    parser = argparse.ArgumentParser(prog="oncycle bench batch", description=__doc__)
    parser.add_argument("--batches", default="1,2,4,8", help="sequences (default: %(default)s)")
    parser.add_argument("--tiles", default="1,4", help="tile counts (default: %(default)s)")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="model directory or file")
    parser.add_argument("--no-rtl", action="store_true",
                        help="cycles of the plans alone, nothing is run")
    options = parser.parse_args(arguments)

    def say(text):
        print(f"  {text}", file=sys.stderr, flush=True)

    whole = machine(MAX_BATCH)
    build = None if options.no_rtl else build_rtl(whole, report=say)
    model = quantised(checkpoint.load(options.model), options.model, whole.tile.lanes)
    rows = []
    print(f"{'tiles':>5} {'batch':>5} {'cycles a step':>13} {'a token':>8}  on RTL")
    for tiles in map(int, options.tiles.split(",")):
        for batch in map(int, options.batches.split(",")):
            program = compile_decoder(whole.restrict(tiles), model, CONTEXT, search=False,
                                      batch=batch)
            cycles, asked = program.plan.cycles(1), prompts(batch, model.vocab)
            verdict, ok = "not run", True
            if build:
                verdict, ok = run_planned(
                    build, whole, program, with_prompts(program, asked, STEPS).binary, STEPS,
                    lambda seen, program=program, asked=asked: agrees(model, program, asked, seen),
                    f"batch-{tiles}-{batch}", say)
            rows.append({"tiles": tiles, "batch": batch, "cycles": cycles, "verdict": verdict,
                         "ok": ok})
            print(f"{tiles:>5} {batch:>5} {cycles:>13,} {cycles / batch:>8,.0f}  {verdict}",
                  flush=True)
    return finish("batch", {"context": CONTEXT, "rows": rows}, misses(rows), f"{len(rows)} runs")
