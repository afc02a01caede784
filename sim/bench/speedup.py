"""``oncycle bench speedup``: what tensor parallelism gains at batch 1, on RTL.

Three loads on 1 to 16 tiles, one machine for all of them: a token of the demo model; one layer of
SmolLM2-135M's shape; and the attention of the demo model's global layer at a context of 8,192
positions, from the last vector of Q, K and V to the last of its result on every tile.
"""

import argparse
import sys
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from compiler.decoder.compilation import UNROLLED, Compilation
from compiler.model import checkpoint
from compiler.model.config import LayerConfig, ModelConfig
from compiler.model.weights import random_weights
from compiler.quantise import calibration_sequences, quantise
from compiler.reference import PlainModel
from hdl.arch.config import all_to_all
from sim.bench.planned import plain_tokens, run_planned
from sim.bench.report import finish
from sim.compiling import DEFAULT_MODEL, machine
from sim.decoding import host_tokens, with_prompt, written_vectors
from sim.rtl.build import build_rtl

__all__ = ["BARS", "main", "misses", "neighbours"]

#: What the figures must reach: how many times faster than one tile.
BARS = {
    ("layer", "all_to_all", 8): 4.0,
    ("layer", "ring", 8): 4.0,
    ("attention", "all_to_all", 16): 10.0,
}
#: Tile counts at each of which a token of the demo model takes fewer cycles than at the one before.
FALLING = (1, 2, 4, 8)
CONTEXT, LONG_CONTEXT = 128, 8192
#: Steps that are run: of a decode the last is free, of layers each has an input of its own.
STEPS = 2
PROMPT = (2, 7)

#: SmolLM2-135M, of its 30 equal layers one, with a small vocabulary (no program has it).
SMOLLM2 = ModelConfig(
    vocab=256, hidden=576, ffn=1536, eps=1e-5, softcap=None, max_position=64, activation="silu",
    post_norms=False, layer_scalars=False, scaled_embedding=False,
    layers=(LayerConfig(heads=9, kv_heads=3, head_dim=64, window=None, k_eq_v=False,
                        rope_theta=1e5, rope_pairs=32, qk_norm=False, v_norm=False,
                        scale=64**-0.5),))


@dataclass(frozen=True)
class Load:
    """A model and what of it is run.

    Attributes
    ----------
    name : str
    model : QuantisedModel
    positions : int
    inputs : array of float32 (steps, hidden) or None
        Of layers alone.
    apart : bool
        Attention alone is counted.
    """

    name: str
    model: object
    positions: int
    inputs: np.ndarray | None = None
    apart: bool = False

    def compile(self, system):
        """Its program for ``system``, and the cycles that count."""
        compilation = Compilation(system, self.model, self.positions, search=self.inputs is None,
                                  unrolled=self.positions if self.apart else UNROLLED)
        if self.inputs is None:
            program = compilation.decoder()
            return program, program.plan.cycles(1)
        program = compilation.layers(self.inputs, self.apart)
        return program, compilation.regions[2 if self.apart else 1].body.end

    def prepared(self, program):
        """The program as it is run."""
        return program if self.inputs is not None else with_prompt(program, PROMPT, STEPS)

    def agrees(self, program, observed):
        """Whether a run gave the plain model's bits."""
        if self.inputs is None:
            return host_tokens(observed.host) == plain_tokens(
                self.model, self.positions, program.shards, PROMPT, STEPS)
        # three times a step: the input, behind attention, behind the gated network
        streams = written_vectors(program, observed.events.writes, "x")[2::3]
        tiles = streams.reshape(STEPS, program.system.tiles, -1)[..., :self.inputs.shape[1]]
        expected = PlainModel(self.model, self.positions, program.shards).layers(self.inputs)
        return all(np.array_equal(tiles[:, tile].view(np.uint32), expected.view(np.uint32))
                   for tile in range(program.system.tiles))


def loads(names, smollm2, calibration):
    """Those of ``names``, one after the other.

    Parameters
    ----------
    names : sequence of str
    smollm2, calibration : path or None
        A checkpoint whose first layer takes the place of random weights, and its text.
    """
    if "decode" in names or "attention" in names:
        demo = checkpoint.load(DEFAULT_MODEL)
        texts = calibration_sequences(DEFAULT_MODEL, demo)
    lanes, rng = machine().tile.lanes, np.random.default_rng(1)
    if "decode" in names:
        yield Load("decode", quantise(demo.weights, texts, lanes, None), CONTEXT)
    if "layer" in names:
        weights, sequences = _smollm2(smollm2, calibration, rng)
        model = quantise(weights, sequences, lanes, None)
        inputs = weights.embedding[sequences[0][:STEPS]].astype(np.float32)
        yield Load("layer", model, SMOLLM2.max_position, inputs)
    if "attention" in names:
        config = replace(demo.config, max_position=LONG_CONTEXT, layers=demo.config.layers[-1:])
        weights = replace(demo.weights, config=config, layers=demo.weights.layers[-1:])
        inputs = rng.standard_normal((STEPS, config.hidden)).astype(np.float32)
        yield Load("attention", quantise(weights, texts, lanes, None), LONG_CONTEXT, inputs, True)


def _smollm2(path, calibration, rng):
    if path is None:
        return random_weights(SMOLLM2, 1), [rng.integers(0, SMOLLM2.vocab, 64)]
    found = checkpoint.load(path)
    config = replace(found.config, layers=found.config.layers[:1],
                     max_position=SMOLLM2.max_position)
    sequences = calibration_sequences(path, found, calibration)[:, :config.max_position]
    return replace(found.weights, config=config, layers=found.weights.layers[:1]), sequences


def large_machine(tiles, words=1 << 15):
    """The tile of ``make sim`` with memories that hold every load, ``words`` of a slice among them,
    and a link between every two."""
    tile = machine().tile
    tile = replace(tile, mem_words=words, icu_words=1 << 15, activations=128, accumulators=64,
                   ports=tile.ports[:1] * (tiles - 1))
    return all_to_all(tile, tiles)


def neighbours(system):
    """Of the links between all tiles those that make a ring."""
    links = tuple(link for link in system.links
                  if (link.target - link.source) % system.tiles in (1, system.tiles - 1))
    return replace(system, links=links)


def misses(rows):
    """One line for every bar that ``rows`` miss."""
    found = [f"{row['load']} on {row['tiles']} tiles, {row['topology']}: {row['verdict']}"
             for row in rows if not row["ok"]]
    by = {(row["load"], row["topology"], row["tiles"]): row for row in rows}
    for (load, topology, tiles), bar in BARS.items():
        row = by.get((load, topology, tiles))
        if row and row["speedup"] < bar:
            found.append(f"{load} on {tiles} tiles, {topology}: {row['speedup']:.2f}x one tile, "
                         f"at least {bar}")
    token = [by[key]["cycles"] for tiles in FALLING
             if (key := ("decode", "all_to_all", tiles)) in by]
    if any(more >= fewer for fewer, more in zip(token, token[1:], strict=False)):
        found.append(f"decode: cycles {token} do not fall with every doubling of tiles")
    return found


def _systems(whole, counts, rings):
    for tiles in counts:
        yield "all_to_all", whole.restrict(tiles)
    for tiles in rings:
        yield "ring", neighbours(whole.restrict(tiles))


def main(arguments):
    """Run the bench; returns 0, or 1 where a figure misses its bar."""
    parser = argparse.ArgumentParser(prog="oncycle bench speedup", description=__doc__)
    parser.add_argument("--loads", default="decode,layer,attention",
                        help="some of them (default: %(default)s)")
    parser.add_argument("--tiles", default="1,2,4,8,16",
                        help="tile counts with a link between every two (default: %(default)s); 1 "
                             "is always measured")
    parser.add_argument("--rings", default="4,8,16", help="tile counts of rings (default: 4,8,16)")
    parser.add_argument("--smollm2", help="checkpoint of SmolLM2-135M whose first layer is run "
                                          "(default: random weights of its shape)")
    parser.add_argument("--calibration", help="text for its activation ranges")
    parser.add_argument("--no-rtl", action="store_true",
                        help="cycles of the plans alone, nothing is run")
    options = parser.parse_args(arguments)
    counts, rings = ([int(text) for text in filter(None, given.split(","))]
                     for given in (options.tiles, options.rings))
    counts = sorted({1, *counts})

    def say(text):
        print(f"  {text}", file=sys.stderr, flush=True)

    whole = large_machine(max([2, *counts, *rings]))
    build = None if options.no_rtl else build_rtl(whole, report=say)
    rows = []
    print(f"{'load':<10} {'topology':<10} {'tiles':>5} {'cycles':>8} {'speed-up':>8}  on RTL")
    for load in loads(options.loads.split(","), options.smollm2, options.calibration):
        for topology, system in _systems(whole, counts, rings):
            if topology == "ring" and load.apart:
                continue
            program, cycles = load.compile(system)
            verdict, ok = "not run", True
            if build:
                verdict, ok = run_planned(
                    build, whole, program, load.prepared(program).binary, STEPS,
                    partial(load.agrees, program),
                    f"speedup-{load.name}-{topology}-{system.tiles}", say)
            base = rows[-1]["one_tile"] if rows and rows[-1]["load"] == load.name else cycles
            rows.append({"load": load.name, "topology": topology, "tiles": system.tiles,
                         "cycles": cycles, "one_tile": base, "speedup": base / cycles,
                         "shards": list(program.shards), "verdict": verdict, "ok": ok})
            print(f"{load.name:<10} {topology:<10} {system.tiles:>5} {cycles:>8,} "
                  f"{base / cycles:>8.2f}  {verdict}", flush=True)
    return finish("speedup", {"rows": rows}, misses(rows), f"{len(rows)} runs")
