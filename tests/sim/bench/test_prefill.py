from dataclasses import replace

import numpy as np
import pytest

from compiler.decoder.program import compile_layers
from compiler.model.config import LayerConfig
from compiler.model.weights import random_weights
from compiler.quantise import quantise
from sim.bench import prefill
from sim.bench.prefill import emulated, machine_macs, macs, misses, wide_machine
from sim.bench.speedup import SMOLLM2

LAYER = LayerConfig(heads=3, kv_heads=1, head_dim=8, window=None, k_eq_v=False, rope_theta=1e4,
                    rope_pairs=4, qk_norm=False, v_norm=False, scale=8**-0.5)
CONFIG = replace(SMOLLM2, hidden=24, ffn=40, max_position=16, layers=(LAYER,))


def row(of_bound=0.9, ok=True):
    return {"batch": 4, "tiles": 8, "of_bound": of_bound, "ok": ok, "verdict": "DIFFERENT bits"}


@pytest.mark.parametrize(("rows", "message"), [
    ([row(), row(of_bound=0.1)], None),
    ([row(of_bound=0.49), row(of_bound=0.1)], "49.0% of the bound of 2 passes, at least 50%"),
    ([row(ok=False)], "4 positions a step on 8 tiles: DIFFERENT bits"),
])
def test_bars(rows, message):
    assert misses(rows) == ([message] if message else [])


@pytest.mark.parametrize("changes", [{}, {"k_eq_v": True, "window": 4}, {"kv_heads": 3}])
def test_multiplications_are_those_of_the_matrices_and_of_what_is_visible(changes):
    config = replace(CONFIG, layers=(replace(LAYER, **changes), LAYER))
    model = quantise(random_weights(config, 1), [np.arange(16)], 8, None)
    expected = 0
    for layer in model.layers:
        matrices = (layer.q, layer.k, layer.v, layer.o, layer.gate, layer.up, layer.down)
        expected += 16 * sum(matrix.size for matrix in matrices if matrix is not None)
        apart = np.subtract.outer(np.arange(16), np.arange(16))
        visible = (apart >= 0) & (apart < (layer.window or 16))
        expected += 2 * visible.sum() * layer.heads * layer.head_dim
    assert macs(config, 16) == expected


def test_a_machine_of_eight_tiles_multiplies_4096_times_a_cycle():
    assert machine_macs(wide_machine(8, 1)) == 4096


def test_the_first_steps_are_compared_with_plan_and_plain_model(rng, monkeypatch):
    model = quantise(random_weights(CONFIG, 1), [rng.integers(0, 200, 16)])
    inputs = rng.standard_normal((16, 24)).astype(np.float32)
    program = compile_layers(wide_machine(2, 4), model, inputs, search=False, batch=4,
                             consecutive=True)
    verdict, ok = emulated(model, inputs, program, 4, 2)
    assert ok, verdict
    assert verdict.startswith("equal bits; conformance: ")
    others = inputs.copy()
    others[5, 3] += 1       # of step 1
    verdict, ok = emulated(model, others, program, 4, 2)
    assert not ok
    assert verdict.startswith("DIFFERENT bits; conformance: ")
    monkeypatch.setattr(prefill, "GRACE", -program.plan.cycles(1))
    assert emulated(model, inputs, program, 4, 2) == ("the run did not end", False)
