"""``oncycle bench prefill``: a layer of SmolLM2-135M's shape over a whole prompt, against the bound
of the MACs.

Several consecutive positions go through the layer in every step.  The bound is what it takes to
multiply: weights by every position, and causal attention (position p by p + 1 keys and values), on
all MACs of the machine in every cycle.  Activations of 16 bits take two passes of int8, so for
these numerics it is twice as many.
"""

import argparse
import sys
from dataclasses import replace
from functools import partial

import numpy as np

from compiler.decoder.compilation import Compilation
from compiler.decoder.shared import of_sequence
from compiler.model.weights import random_weights
from compiler.plan import expand
from compiler.quantise import quantise
from compiler.reference import PlainModel
from sim.bench.planned import run_planned
from sim.bench.report import finish
from sim.bench.speedup import SMOLLM2, large_machine
from sim.conformance import check
from sim.decoding import written_vectors
from sim.emulate import run_emulator
from sim.events import Events
from sim.rtl.build import build_rtl
from sim.rtl.run import GRACE

__all__ = ["BARS", "main", "misses"]

#: What the figures must reach.
BARS = {
    "of_bound": 0.5,        # at least: the bound of two passes over the cycles, at its best
}
POSITIONS = 128
#: Passes of int8 that a product with 16-bit activations takes.
PASSES = 2


def macs(config, positions):
    """Multiplications of all layers for a prompt from position 0 on.

    Parameters
    ----------
    config : ModelConfig
    positions : int

    Returns
    -------
    int
    """
    total = 0
    for layer in config.layers:
        heads = 2 * layer.heads + (1 if layer.k_eq_v else 2) * layer.kv_heads
        weights = config.hidden * (heads * layer.head_dim + 3 * config.ffn)
        seen = sum(min(position + 1, layer.window or positions) for position in range(positions))
        total += positions * weights + 2 * seen * layer.heads * layer.head_dim
    return total


def machine_macs(system):
    """Multiplications of a machine in one cycle."""
    tile = system.tile
    return system.tiles * len(tile.slices("mxm")) * tile.lanes**2


def wide_machine(tiles, batch, lanes=16):
    """A machine with room for a layer's weights and for ``batch`` positions in every step."""
    whole = large_machine(tiles)
    return replace(whole, tile=replace(whole.tile, lanes=lanes, icu_words=1 << 17,
                                       mem_words=1 << 16, accumulators=64 * max(2, batch),
                                       activations=128 * batch))


def agrees(model, inputs, program, batch, steps, observed):
    """Whether a run of some steps gave the plain model's bits behind the layers, on every tile."""
    tiles = program.system.tiles
    expected = PlainModel(model, len(inputs), program.shards).layers(inputs[:steps * batch])
    for number in range(batch):
        # three times a step: the input, behind attention, behind the gated network
        streams = written_vectors(program, observed.events.writes, of_sequence("x", number))[2::3]
        streams = streams.reshape(steps, tiles, -1)[..., :inputs.shape[1]]
        if any(not np.array_equal(streams[:, tile].view(np.uint32),
                                  expected[number::batch].view(np.uint32))
               for tile in range(tiles)):
            return False
    return True


def emulated(model, inputs, program, batch, steps):
    """Run the first steps on the emulator; what came of it, and whether all is as it should be."""
    observed, = run_emulator(program.system, program.binary, garbage=1, runs=[(0, steps)],
                             limit=program.plan.cycles(steps) + GRACE)
    if any(observed.running):
        return "the run did not end", False
    found = check(program.system, program.binary, emulator=observed,
                  plan=Events(**expand(program.plan, steps)))
    equal = agrees(model, inputs, program, batch, steps, observed)
    return f"{'equal' if equal else 'DIFFERENT'} bits; {found.lines()[0]}", found.ok and equal


def misses(rows):
    """One line for every run that was not as it should be, and one where all are too slow."""
    found = [f"{row['batch']} positions a step on {row['tiles']} tiles: {row['verdict']}"
             for row in rows if not row["ok"]]
    best = max(row["of_bound"] for row in rows)
    if best < BARS["of_bound"]:
        found.append(f"{best:.1%} of the bound of {PASSES} passes, at least "
                     f"{BARS['of_bound']:.0%}")
    return found


def main(arguments):
    """Run the bench; returns 0, or 1 where a figure misses its bar."""
    parser = argparse.ArgumentParser(prog="oncycle bench prefill", description=__doc__)
    parser.add_argument("--batches", default="1,4,8",
                        help="positions a step, powers of two (default: %(default)s)")
    parser.add_argument("--tiles", type=int, default=8, help="tiles (default: %(default)s)")
    parser.add_argument("--lanes", type=int, default=16,
                        help="lanes of a tile, 16 or 32 (default: %(default)s)")
    parser.add_argument("--shards", type=int,
                        help="in how many shares tiles have the positions (default: as estimated)")
    parser.add_argument("--search", action="store_true",
                        help="try several orders and improve the schedule, which takes long")
    parser.add_argument("--steps", type=int, default=2,
                        help="steps to run on the emulator, 0: none, cycles of the plans alone "
                        "(default: %(default)s)")
    parser.add_argument("--rtl", action="store_true",
                        help="run them on RTL too: a build for every size of a batch")
    options = parser.parse_args(arguments)

    def say(text):
        print(f"  {text}", file=sys.stderr, flush=True)

    config, rng = replace(SMOLLM2, max_position=POSITIONS), np.random.default_rng(1)
    model = quantise(random_weights(config, 1), [rng.integers(0, config.vocab, POSITIONS)],
                     options.lanes, None)
    inputs = rng.standard_normal((POSITIONS, config.hidden)).astype(np.float32)
    work = macs(config, POSITIONS)
    width = machine_macs(wide_machine(options.tiles, 1, options.lanes))
    bound = -(-work // width)
    print(f"{POSITIONS} positions: {work:,} multiplications, {width:,} a cycle on {options.tiles} "
          f"tiles of {options.lanes} lanes: {bound:,} cycles, {PASSES * bound:,} in {PASSES} "
          "passes")
    rows = []
    print(f"{'a step':>6} {'steps':>5} {'cycles a step':>13} {'cycles':>9} {'of one pass':>11} "
          f"{f'of {PASSES} passes':>11}  on {'RTL' if options.rtl else 'the emulator'}")
    for batch in map(int, options.batches.split(",")):
        system = wide_machine(options.tiles, batch, options.lanes)
        compilation = Compilation(system, model, POSITIONS, options.search, options.shards,
                                  batch=batch, consecutive=True, report=say)
        program = compilation.layers(inputs)
        step = compilation.regions[1].body.end      # behind the copying of the inputs
        cycles = POSITIONS // batch * step
        steps = min(options.steps, POSITIONS // batch)
        verdict, ok = "not run", True
        if steps and options.rtl:
            verdict, ok = run_planned(
                build_rtl(system, report=say), system, program, program.binary, steps,
                partial(agrees, model, inputs, program, batch, steps), f"prefill-{batch}", say)
        elif steps:
            verdict, ok = emulated(model, inputs, program, batch, steps)
        rows.append({"tiles": options.tiles, "lanes": options.lanes, "batch": batch,
                     "step": step, "cycles": cycles, "bound": bound,
                     "of_bound": PASSES * bound / cycles, "shards": list(program.shards),
                     "verdict": verdict, "ok": ok})
        print(f"{batch:>6} {POSITIONS // batch:>5} {step:>13,} {cycles:>9,} "
              f"{bound / cycles:>11.1%} {PASSES * bound / cycles:>11.1%}  {verdict}", flush=True)
    return finish("prefill", {"positions": POSITIONS, "rows": rows}, misses(rows),
                  f"{len(rows)} programs")
