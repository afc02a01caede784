import re
from dataclasses import replace

import numpy as np
import pytest

from compiler.decoder.program import compile_layers
from compiler.model.config import LayerConfig
from compiler.model.weights import random_weights
from compiler.quantise import quantise
from hdl.arch.config import ring
from sim.bench import speedup
from sim.bench.speedup import SMOLLM2, STEPS, Load, large_machine, misses, neighbours
from sim.emulate import run_emulator


def row(load="layer", topology="all_to_all", tiles=8, cycles=100, speedup=5.0, ok=True):
    return {"load": load, "topology": topology, "tiles": tiles, "cycles": cycles,
            "speedup": speedup, "ok": ok, "verdict": "DIFFERENT bits"}


@pytest.mark.parametrize(("rows", "message"), [
    ([row(), row(topology="ring", speedup=4.0), row("attention", tiles=16, speedup=10.0)], None),
    ([row(speedup=3.99)], "layer on 8 tiles, all_to_all: 3.99x one tile, at least 4.0"),
    ([row(topology="ring", speedup=3.9)], "layer on 8 tiles, ring: 3.90x"),
    ([row("attention", tiles=16, speedup=9.9)], "attention on 16 tiles"),
    ([row(ok=False)], "layer on 8 tiles, all_to_all: DIFFERENT bits"),
    ([row("decode", tiles=n, cycles=c) for n, c in ((1, 9), (2, 8), (4, 8), (8, 7))],
     r"decode: cycles \[9, 8, 8, 7\] do not fall"),
    ([row("decode", tiles=n, cycles=c) for n, c in ((1, 9), (2, 8), (4, 7), (8, 6), (16, 6))],
     None),
])
def test_bars(rows, message):
    found = misses(rows)
    assert len(found) == (message is not None)
    if message:
        assert re.search(message, found[0])


def test_a_ring_is_a_part_of_the_links_between_all():
    part = neighbours(large_machine(8).restrict(5))
    pairs = {(link.source, link.target) for link in part.links}
    assert pairs == {(link.source, link.target) for link in ring(large_machine(8).tile, 5).links}


@pytest.fixture(scope="module")
def small_load():
    layer = LayerConfig(heads=3, kv_heads=1, head_dim=8, window=None, k_eq_v=False, rope_theta=1e4,
                        rope_pairs=4, qk_norm=False, v_norm=False, scale=8**-0.5)
    config = replace(SMOLLM2, hidden=24, ffn=40, layers=(layer,))
    rng = np.random.default_rng(1)
    model = quantise(random_weights(config, 1), [rng.integers(0, 200, 64)])
    return Load("layer", model, 64, rng.standard_normal((STEPS, 24)).astype(np.float32))


@pytest.mark.parametrize("tiles", [1, 2])
def test_layers_are_compared_with_the_plain_model(small_load, tiles):
    system = large_machine(2).restrict(tiles)
    program, cycles = small_load.compile(system)
    assert program.plan.cycles(1) > cycles > 0
    observed, = run_emulator(system, program.binary, garbage=1, runs=[(0, STEPS)])
    assert small_load.agrees(program, observed)
    other = replace(small_load, inputs=small_load.inputs + np.float32(0.01))
    assert not other.agrees(program, observed)


def test_attention_apart_gives_the_same_bits(small_load):
    system = large_machine(2)
    load = replace(small_load, apart=True)
    program, cycles = load.compile(system)
    observed, = run_emulator(system, program.binary, garbage=1, runs=[(0, STEPS)])
    assert load.agrees(program, observed)
    whole = compile_layers(system, load.model, load.inputs, positions=64, search=False)
    assert cycles < whole.plan.cycles(1) < program.plan.cycles(1)


def test_bars_are_those_of_measured_loads():
    assert {load for load, *_ in speedup.BARS} <= {"decode", "layer", "attention"}
