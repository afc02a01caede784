"""Machines and models off the beaten track: bit for bit the plain model, or one clear error."""

from dataclasses import replace

import numpy as np
import pytest

from compiler.decoder.partition import best_shards
from compiler.decoder.program import compile_decoder, compile_layers
from compiler.decoder.shared import of_sequence
from compiler.errors import CompileError
from compiler.model.config import LayerConfig, ModelConfig
from compiler.model.weights import random_weights
from compiler.quantise import quantise
from compiler.reference import PlainModel
from compiler.verify import verify
from hdl.arch.config import AluConfig, PortConfig, TileConfig, all_to_all, ring
from sim.decoding import host_tokens, with_prompts
from sim.emulator.machine import Machine
from tests.compiler.decoder.reading import fp32_vector

BOTH, ADD, MUL, ALL, ADD_SPECIAL = (AluConfig(features=features) for features in (
    ("add", "mul"), ("add",), ("mul",), ("add", "mul", "special"), ("add", "special")))
TILE = TileConfig(lanes=8, icu_words=8192)
LAYER = LayerConfig(heads=4, kv_heads=2, head_dim=8, window=8, k_eq_v=False, rope_theta=1e4,
                    rope_pairs=4)
MODEL = ModelConfig(vocab=29, hidden=20, ffn=33, eps=1e-6, softcap=30.0, max_position=16,
                    layers=(LAYER,), bos=2)
#: Llama's: nothing is normalised but the inputs of the matrices.
PLAIN = replace(LAYER, qk_norm=False, v_norm=False, scale=8**-0.5)
LLAMA = replace(MODEL, layers=(PLAIN, replace(PLAIN, window=None)), activation="silu",
                softcap=None, post_norms=False, layer_scalars=False, tied=False,
                scaled_embedding=False)


def _tile(**changes):
    return replace(TILE, **changes)


def _model(**changes):
    layer = replace(LAYER, **changes.pop("layer", {}))
    return replace(MODEL, layers=(layer,) * changes.pop("count", 1), **changes)


def _quantised(config, late=True):
    rng = np.random.default_rng(1)
    texts = [rng.integers(0, config.vocab, config.max_position) for _ in range(2)]
    return quantise(random_weights(config, 1), texts, lanes=TILE.lanes, late_norms=late)


NARROW = PortConfig(bytes=1, fifo=4)
PLAN = TILE.floorplan
#: What each is about: one ALU adds up all sums, so the largest score is kept nowhere; it makes the
#: factors that it multiplies by; V and K read the same sums; scores are the logits; caches of two
#: MXMs lie in the same slices; more vectors come than a FIFO holds; a tile has none of the gated
#: network; of a cluster's instructions some could take the only unit of another; heads fill no
#: whole vectors, or more than can be normalised at once; some tiles have more heads, or none; norms
#: are missing, so that the stream's factor comes late to Q, K and V; an SXM lies between the slices
#: of a group.
CASES = {
    "one ALU for sums": (1, _tile(alus=(ALL, BOTH)), _model(), True),
    "special functions on the only factor": (1, _tile(alus=(BOTH, ALL)), _model(), True),
    "K read twice": (1, _tile(accumulators=8, floorplan=PLAN[:-1]),
                     _model(layer={"heads": 4, "kv_heads": 4, "k_eq_v": True}), True),
    "no softcap": (1, TILE, _model(softcap=None), True),
    "MXMs on one side": (1, _tile(floorplan=(
        "sxm0", *PLAN[2:-2], "sxm1", "mxm0", "mxm1")), _model(layer={"window": 16}), True),
    "three MXMs": (1, _tile(floorplan=("mxm0", *PLAN[1:-2], "sxm1", "mxm1", "mxm2")),
                   _model(layer={"window": 16, "head_dim": 16}), True),
    "four MXMs": (1, _tile(floorplan=("mxm0", "mxm1", *PLAN[1:-2], "sxm1", "mxm2", "mxm3")),
                  _model(layer={"window": 16}), False),
    "full FIFOs": (2, _tile(ports=(PortConfig(bytes=8, fifo=4),)),
                   _model(hidden=40, layer={"heads": 8, "head_dim": 16}), True),
    "narrow links": (4, _tile(ports=(NARROW,) * 3), _model(), False),
    "no vectors": (2, _tile(alus=(ALL, ALL), ports=(NARROW,)), _model(ffn=7), True),
    "three ALUs": (1, _tile(alus=(BOTH, BOTH, ALL)), _model(layer={"head_dim": 16}), True),
    "two ALUs": (1, _tile(alus=(ALL, BOTH)), _model(layer={"head_dim": 16}), True),
    "long heads": (1, _tile(accumulators=64), _model(layer={"head_dim": 26}), True),
    "short heads": (2, TILE, _model(layer={"head_dim": 4, "rope_pairs": 2}), True),
    "heads unevenly": (3, TILE, _model(), True),
    "tiles without heads": (5, _tile(ports=(PortConfig(),) * 4), _model(vocab=45), True),
    "nothing normed": (2, TILE, LLAMA, False),
    "nothing normed, late": (3, TILE, LLAMA, True),
    "long heads not normed": (1, _tile(accumulators=64), replace(
        LLAMA, layers=(replace(PLAIN, head_dim=30),)), True),
    "V not normed": (1, TILE, _model(layer={"v_norm": False}), True),
    "V of K not normed": (1, TILE, _model(layer={"v_norm": False, "k_eq_v": True}), True),
    "V of K alone normed": (1, TILE, _model(layer={"qk_norm": False, "k_eq_v": True}), True),
    "late on other ALUs": (1, _tile(alus=(ADD, MUL, MUL, ADD_SPECIAL)), LLAMA, True),
    "few multipliers": (1, _tile(alus=(ADD, MUL, MUL, ADD_SPECIAL)),
                        _model(layer={"head_dim": 16}), False),
    "unequal ALUs": (1, _tile(alus=(BOTH, MUL, MUL, ADD_SPECIAL)), MODEL, True),
    "SXM within slices": (1, _tile(floorplan=(
        "mem0", "mem1", "sxm0", *(f"mem{i}" for i in range(2, 12)), "vxm", "mxm0", "c2c")),
        _model(), True),
}


def _check(system, model, program, batch=1):
    """Run sequences of 12 tokens, of different prompts; returns the plain model of the last."""
    assert verify(system, replace(program.binary, steps=2)) > 0
    prompts = ([2, 7, model.vocab - 1], [5], [1, 1, 2, 3], [6, 4])[:batch]
    program, machine = with_prompts(program, prompts, 12), Machine(system, garbage=5)
    machine.load(program.binary)
    result = machine.start()
    assert not any(result.faults)
    chosen = host_tokens(result.host)
    assert len(chosen) == 12 * batch
    for sequence, prompt in enumerate(prompts):
        plain, expected = PlainModel(model, 16, program.shards), []
        for position in range(12):
            token = prompt[position] if position < len(prompt) else expected[-1]
            logits = plain.step(token, position)
            expected.append(plain.token)
        assert chosen[sequence::batch] == expected
        for name, values in (("scores", plain.scores), ("logits", logits)):
            np.testing.assert_array_equal(
                fp32_vector(system, machine, program, of_sequence(name, sequence), model.vocab),
                values)
    return plain


@pytest.mark.parametrize("name", CASES)
def test_scores_logits_and_tokens_are_those_of_the_plain_model(name):
    tiles, tile, config, late = CASES[name]
    system = all_to_all(tile, tiles, latency=(3, 16, 9, 5)[:tiles - 1])
    model = _quantised(config, late)
    _check(system, model, compile_decoder(system, model, 16, search=False))


#: Every tile has some heads; there are two groups of tiles; some tiles have no KV heads of their
#: own, or no heads at all, and a window has room for fewer tiles; vectors go past other tiles.
SHARED = {
    "all by two": (2, 2, all_to_all, _model(), True),
    "two groups": (4, 2, all_to_all, _model(vocab=45), False),
    "fewer KV heads than tiles": (4, 4, all_to_all, replace(LLAMA, vocab=45), True),
    "fewer heads than tiles": (4, 4, all_to_all, replace(
        LLAMA, vocab=45, layers=(replace(PLAIN, heads=3, kv_heads=1, window=None),)), False),
    "V made of K": (2, 2, all_to_all, _model(layer={"k_eq_v": True, "head_dim": 16}), True),
    "long heads": (2, 2, all_to_all, _model(layer={"head_dim": 26}), True),
    "around a ring": (6, 2, ring, _model(vocab=45, layer={"window": 16}), True),
    "across a ring": (4, 4, ring, _model(vocab=45, layer={"window": 16}), True),
}


@pytest.mark.parametrize("name", SHARED)
def test_tiles_that_share_positions_give_the_plain_models_bits(name):
    tiles, shards, topology, config, late = SHARED[name]
    system = topology(_tile(accumulators=64, ports=(PortConfig(),) * 5), tiles)
    model = _quantised(config, late)
    program = compile_decoder(system, model, 16, search=False, shards=shards)
    assert max(program.shards) == shards
    _check(system, model, program)


#: Sequences, tiles and shares of the positions: on one tile and on several, with factors that come
#: late and in time, norms of all kinds, and tiles that put together heads of all sequences.
BATCHES = {
    "one tile": (1, 1, 2, _model(), True),
    "two tiles": (2, 1, 3, _model(count=2), True),
    "norms in time": (2, 1, 3, _model(), False),
    "nothing normed": (2, 1, 2, LLAMA, True),
    "no softcap": (1, 1, 4, _model(softcap=None), True),
    "positions shared": (4, 4, 2, replace(LLAMA, vocab=45), True),
}


@pytest.mark.parametrize("name", BATCHES)
def test_each_sequence_of_a_batch_is_as_it_is_alone(name):
    tiles, shards, batch, config, late = BATCHES[name]
    system = all_to_all(_tile(accumulators=64, ports=(PortConfig(),) * 3), tiles)
    model = _quantised(config, late)
    _check(system, model, compile_decoder(system, model, 16, search=False, shards=shards,
                                          batch=batch), batch)


@pytest.mark.parametrize("batch", [0, 65])
def test_a_batch_out_of_range_is_refused(batch):
    with pytest.raises(CompileError, match=f"Batch must be 1 to 64 sequences, not {batch}"):
        compile_decoder(all_to_all(TILE, 1), _quantised(MODEL), 16, batch=batch)


@pytest.mark.parametrize(("changes", "message"), [
    ({"accumulators": 8}, "needs [0-9]+ accumulators at once, it has 8: raise TileConfig.accum"),
    ({"mem_words": 384}, "needs [0-9,]+ bytes of SRAM .*, [0-9,]+ of 24,576 are free: raise"),
    ({"icu_words": 1024}, "needs [0-9]+ instruction words, the queue holds 1024: raise TileConf"),
])
def test_a_batch_that_is_too_large_is_told_what_it_needs(changes, message):
    system = all_to_all(_tile(**changes), 1)
    compile_decoder(system, _quantised(MODEL), 16, search=False)
    with pytest.raises(CompileError, match=message):
        compile_decoder(system, _quantised(MODEL), 16, search=False, batch=8)


@pytest.mark.parametrize("shards", [3, 4, 0])
def test_shares_that_do_not_fit_the_tiles_are_refused(shards):
    with pytest.raises(CompileError, match=f"a power of two of tiles .* not by {shards}"):
        compile_decoder(all_to_all(TILE, 3), _quantised(MODEL), 16, shards=shards)


def test_layers_that_share_instructions_must_share_positions_alike():
    model = _quantised(_model(count=2))
    with pytest.raises(CompileError, match=r"must have equal shards, not \(1, 2\)"):
        compile_decoder(all_to_all(TILE, 2), model, 16, search=False, shards=(1, 2))


@pytest.mark.parametrize(("heads", "kv_heads", "tiles", "slots", "shards"), [
    (8, 4, 4, 128, 1),          # as many KV heads as tiles
    (8, 4, 16, 64, 1),          # short: the way there and back takes longer
    (8, 4, 16, 8192, 4),        # four tiles to a KV head
    (9, 3, 8, 8192, 8), (8, 4, 1, 8192, 1),
])
def test_positions_are_shared_where_it_pays(heads, kv_heads, tiles, slots, shards):
    layer = _quantised(_model(layer={"heads": heads, "kv_heads": kv_heads})).layers[0]
    assert best_shards(layer, TILE, tiles, slots, 70) == shards


@pytest.mark.parametrize("tiles", [1, 2])
def test_lanes_behind_the_last_token_are_none_where_all_scores_are_negative(tiles):
    model = _quantised(replace(MODEL, vocab=9))
    model = replace(model, logit_gain=-np.abs(model.logit_gain),
                    head_gain=np.abs(model.head_gain), embedding=np.abs(model.embedding))
    system = all_to_all(_tile(ports=(PortConfig(),)), tiles)
    plain = _check(system, model, compile_decoder(system, model, 16, search=False))
    assert plain.scores.max() < 0


@pytest.mark.parametrize("tile,config,message", [
    (_tile(alus=(ADD, MUL, ADD_SPECIAL)), MODEL,
     "tile 0 .* needs more ALUs for MUL in one cycle than 1 of one depth: add to TileConfig.alus"),
    (_tile(accumulators=5, floorplan=PLAN[:-1]),    # not: K's sums lost between V and K
     _model(layer={"heads": 4, "kv_heads": 4, "k_eq_v": True}),
     "Tile 0 mxm0 needs 9 accumulators at once, it has 5: raise TileConfig.accumulators"),
    (_tile(streams=4), MODEL,
     "tile 0 .* needs more than 4 streams at once: raise TileConfig.streams"),
    (_tile(floorplan=(*PLAN[:7], *PLAN[8:10], "c2c", *PLAN[10:])), MODEL,
     "two groups of four mem slices, each on one side of the vxm slice and of the c2c slice"),
    (_tile(floorplan=("mem0", "mem1", "sxm0", *(f"mem{i}" for i in range(2, 8)), "vxm", "mxm0",
                      "c2c")), MODEL, "Decoder needs two groups of four mem slices|and four others "
     "on one side of that sxm slice"),
])
def test_what_a_tile_lacks_is_said(tile, config, message):
    with pytest.raises(CompileError, match=message):
        compile_decoder(all_to_all(tile, 1), _quantised(config), 16, search=False)


def test_layers_alone_need_a_slice_that_rotates():
    tile = _tile(floorplan=tuple(name for name in PLAN if name[:3] != "sxm"))
    with pytest.raises(CompileError, match="Heads as long as the lanes need an sxm slice"):
        compile_layers(all_to_all(tile, 1), _quantised(MODEL), np.ones((2, 20)), search=False)
