"""Bounds of a program: derived by hand, below what the compiler reaches, kept in its file."""

from dataclasses import replace

import numpy as np
import pytest

from compiler.decoder.program import compile_decoder
from compiler.model_bound import model_bound
from compiler.program import load, save
from compiler.quantise import quantise
from hdl.arch.config import all_to_all, single
from hdl.arch.presets import DEMO
from tests.compiler.small_models import TINY, WIDE, tokens_of, weights_of

ALU, PRODUCT, SUM = 6, (3 + 2) + 4, 4 * DEMO.reduce_depth       # of 16 lanes, cycles


def _quantised(config, late=True):
    rng = np.random.default_rng(1)
    texts = [tokens_of(config, rng, config.max_position) for _ in range(4)]
    return quantise(weights_of(config, 1), texts, late_norms=late)


def _path(late, alu):
    """By hand: embedding 2 and head 5 operations of ALUs; norm and projection, head norm, scores,
    mixing, norm; the norm in the middle; gating and norm."""
    both = (2 + 5 + 5 + 3 + 6 + 5 + 9 + 5) * alu + 5 * PRODUCT + 5 * SUM
    if not late:        # each of two norms: 4 operations, a sum, and the product behind it
        return both + 2 * (4 * alu + SUM + PRODUCT)
    return both + 2 * alu + PRODUCT + max(3 * alu + PRODUCT, 2 * alu + SUM)


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("depth", [2, ALU, ALU + 1, 20])
def test_the_path_of_one_layer_is_the_sum_of_its_operations(late, depth):
    cfg = replace(DEMO, alus=tuple(replace(alu, depth=depth) for alu in DEMO.alus))
    assert model_bound(single(cfg), _quantised(TINY, late), 3) == \
        (_path(late, depth), "path")


def test_widths_bind_where_there_are_many_weights():
    model = _quantised(WIDE)
    wide = single(replace(DEMO, alus=tuple(replace(alu, depth=2) for alu in DEMO.alus)))
    bound, binds = model_bound(wide, model, 50)
    size = model.embedding.size
    for layer in model.layers:
        size += sum(matrix.size for matrix in (layer.q, layer.k, layer.v, layer.o, layer.gate,
                                               layer.up, layer.down) if matrix is not None)
        size += 2 * layer.kv_heads * layer.head_dim * min(layer.window or 50, 50)
    assert (bound, binds) == (-(-size // (8 * 16)), "SRAM width")


def test_cycles_are_between_bounds_and_barriers_and_the_file_keeps_them(tmp_path):
    program = compile_decoder(all_to_all(DEMO, 2), _quantised(WIDE), 20, bounds=True, search=False)
    cycles, bounds = program.plan.cycles(1), program.bounds
    assert bounds.model <= bounds.schedule <= cycles <= bounds.barrier
    assert sum(region.cycles * region.runs for region in bounds.regions) <= cycles
    save(program, tmp_path / "p.npz")
    assert load(tmp_path / "p.npz").bounds == bounds


def test_bounds_are_computed_only_where_asked_for(tmp_path):
    program = compile_decoder(single(DEMO), _quantised(WIDE), 3, search=False)
    assert program.bounds is None
    save(program, tmp_path / "p.npz")
    assert load(tmp_path / "p.npz").bounds is None
