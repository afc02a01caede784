"""Running the comparison."""

import argparse
from dataclasses import replace

import numpy as np

from compiler.model import checkpoint
from compiler.quantise import calibration_sequences, quantise
from sim.bench.network.machines import Machines
from sim.bench.network.parts import batches, collectives, contention, layers, messages
from sim.bench.report import finish
from sim.compiling import DEFAULT_MODEL, machine

__all__ = ["BARS", "main", "misses"]

#: What the figures must reach.
BARS = {
    "residual": 0.0,    # cycles: of T = A + N / B for planned links
    "wrong": 0,         # results, or events that are not where they are planned
}
_PARTS = ("messages", "contention", "collectives", "layers", "batch")
#: Positions of the layer's KV cache, and steps that are run.
_POSITIONS, _STEPS = 128, 2


def misses(residual, problems):
    """One line for every bar that is missed."""
    found = [f"wrong: {line}" for line in problems[:20]]
    if residual > BARS["residual"] + 1e-6:
        found.append(f"planned links deviate by {residual:.2f} cycles from T = A + N / B")
    return found


def _layer(seed=1):
    """The global layer of the default model, and inputs."""
    whole = checkpoint.load(DEFAULT_MODEL)
    config = replace(whole.config, layers=whole.config.layers[-1:])
    weights = replace(whole.weights, config=config, layers=whole.weights.layers[-1:])
    model = quantise(weights, calibration_sequences(DEFAULT_MODEL, whole), machine().tile.lanes,
                     None)
    rng = np.random.default_rng(seed)
    return model, rng.standard_normal((_STEPS, config.hidden)).astype(np.float32)


def main(arguments):
    """Run the bench; returns 0, or 1 where a figure misses its bar."""
    parser = argparse.ArgumentParser(
        prog="oncycle bench network",
        description="planned links beside a conventional network around the same tiles, on RTL")
    parser.add_argument("--parts", default=",".join(_PARTS),
                        help="some of them (default: %(default)s)")
    parser.add_argument("--tiles", default="1,2,4,8", help="tile counts (default: %(default)s)")
    parser.add_argument("--topologies", default="all_to_all,ring",
                        help="default: both")
    parser.add_argument("--batches", default="1,2,4,8", help="default: %(default)s")
    parser.add_argument("--batch-tiles", type=int, default=4, help="default: %(default)s")
    options = parser.parse_args(arguments)
    parts, counts = options.parts.split(","), [int(text) for text in options.tiles.split(",")]
    topologies = options.topologies.split(",")
    machines = Machines(max(counts))
    found, problems, residual = {}, [], 0.0
    if "messages" in parts:
        found["messages"], more, residual = messages(machines)
        problems += more
    if "contention" in parts:
        found["contention"], more = contention(machines, max(counts))
        problems += more
    if "collectives" in parts:
        found["collectives"], more = collectives(machines, [n for n in counts if n > 1], topologies)
        problems += more
    if "layers" in parts or "batch" in parts:
        model, inputs = _layer()
    if "layers" in parts:
        found["layers"], more = layers(machines, model, inputs, _POSITIONS, counts, topologies)
        problems += more
    if "batch" in parts:
        found["batch"], more = batches(machines, model, inputs, _POSITIONS, options.batch_tiles,
                                       [int(text) for text in options.batches.split(",")])
        problems += more
    return finish("network", {"bars": BARS, **found, "problems": problems},
                  misses(residual, problems), f"{', '.join(found)}; {len(problems)} problems")
