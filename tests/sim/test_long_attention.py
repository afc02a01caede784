"""Attention in loops over chunks of its caches: bit for bit the plain model, in words that do not
grow with the context."""

import re
from dataclasses import replace

import numpy as np
import pytest

from compiler.decoder.program import compile_decoder
from compiler.decoder.shared import of_sequence
from compiler.errors import CompileError
from compiler.packets import PacketCompilation
from compiler.plan import expand
from compiler.program import load, save
from compiler.reference import PlainModel
from compiler.verify import verify_both
from hdl.arch.config import PortConfig, all_to_all
from sim.decoding import host_tokens, prompt_words, written_vectors
from sim.emulator.machine import Machine
from sim.prefill import cache_words, host_caches
from sim.report.figures import instruction_bytes, stretches
from tests.compiler.decoder.reading import fp32_vector
from tests.sim.decoders import LLAMA, MIXED, TILE, WIDE, small_model

STEPS = 2
#: Slots of a block, and of a chunk of 8 blocks.
BLOCK = TILE.lanes
CHUNK = 8 * BLOCK
_PLAIN = LLAMA.layers[1]
#: Layers that are a loop around the loops of their attention; their heads do without norms.
NESTED = replace(LLAMA, layers=(_PLAIN, _PLAIN))
#: A KV head for each of four heads, of two vectors.
HEADS = replace(MIXED, layers=(replace(MIXED.layers[2], heads=4, kv_heads=4, k_eq_v=False),))


#: With room for several positions in every step.
MANY = replace(WIDE, accumulators=256, activations=256, icu_words=1 << 14)


def _floorplan(*last):
    return replace(WIDE, floorplan=("mxm0", *TILE.floorplan[1:-2], *last))


#: Tiles, shards, batch, tile, model, context and first step.  Of a step all slots up to its own are
#: visible; a context is rounded up to a power of two.
CASES = {
    "a block less than a chunk": (1, 1, 1, WIDE, MIXED, 256, CHUNK - BLOCK - 1),
    "the first of the second chunk": (1, 1, 1, WIDE, MIXED, 256, CHUNK - 1),
    "a block more than a chunk": (1, 1, 1, WIDE, MIXED, 256, CHUNK + BLOCK - 1),
    "into the third chunk": (1, 1, 1, WIDE, MIXED, 250, 2 * CHUNK - 1),
    "the last slots": (1, 1, 1, WIDE, MIXED, 256, 254),
    "no power of two": (1, 1, 1, WIDE, MIXED, 133, 131),
    "from the beginning": (1, 1, 1, WIDE, MIXED, 256, 0),
    "within a loop over layers": (1, 1, 1, WIDE, NESTED, 256, 200),
    "Llama": (1, 1, 1, WIDE, LLAMA, 256, 200),
    "two passes": (1, 1, 1, replace(TILE, accumulators=16), HEADS, 256, 200),
    "chunks of four": (1, 1, 1, replace(TILE, accumulators=8), HEADS, 256, 200),
    "no room in the buffer": (1, 1, 1, replace(WIDE, activations=8), HEADS, 256, 200),
    "a batch": (1, 1, 2, WIDE, MIXED, 256, 200),
    "two tiles": (2, 1, 1, WIDE, MIXED, 256, 200),
    "positions shared by two": (2, 2, 1, WIDE, MIXED, 512, 300),
    "two groups that share": (4, 2, 1, WIDE, NESTED, 512, 300),
    "three MXMs": (1, 1, 1, _floorplan("sxm1", "mxm1", "mxm2"), MIXED, 256, 200),
    "MXMs on one side": (1, 1, 1, replace(WIDE, floorplan=(
        "sxm0", *TILE.floorplan[2:-2], "sxm1", "mxm0", "mxm1")), MIXED, 256, 200),
}


def _compile(config, tile, tiles, context, *, unrolled=8, **options):
    model = small_model(replace(config, max_position=context))
    return model, compile_decoder(all_to_all(tile, tiles), model, context, search=False,
                                  unrolled=unrolled, **options)


def _depths(program):
    """Depth of each region that has instructions."""
    return [depth for region, depth, _ in program.plan.root.walk() if region.issues]


@pytest.mark.parametrize("name", CASES)
def test_bits_and_events(name):
    tiles, shards, batch, tile, config, context, first = CASES[name]
    model, program = _compile(config, tile, tiles, context, shards=shards, batch=batch)
    assert max(_depths(program)) == (2 if config is NESTED else 1)
    rng = np.random.default_rng(4)
    prompts = rng.integers(0, config.vocab, (batch, first + 1)).tolist()
    machine = Machine(program.system, garbage=4)
    machine.load(program.binary)
    for sequence, prompt in enumerate(prompts):
        caches = host_caches(model, program.shards, prompt)
        for run in (*cache_words(_of(program, sequence), model, caches, 0, first),
                    *prompt_words(program, prompt[-1:], 1, first, sequence)):
            machine.write_sram(*run)
    result = machine.start(first_step=first, steps=STEPS)
    assert not any(result.faults) and not result.running
    chosen, logits = zip(*(_plain(model, program, prompt, first) for prompt in prompts),
                         strict=True)
    assert host_tokens(result.host) == np.transpose(chosen).ravel().tolist()
    np.testing.assert_array_equal(
        fp32_vector(program.system, machine, program, "logits", model.vocab), logits[0])

    planned = expand(program.plan, STEPS, first)
    np.testing.assert_array_equal(result.issues, planned["issues"])
    for name in ("writes", "arrivals"):
        for column in planned[name].dtype.names:
            np.testing.assert_array_equal(getattr(result, name)[column], planned[name][column])
    program.binary.first_step, program.binary.steps = first, STEPS
    assert verify_both(program.system, program.binary) == len(planned["issues"])


#: Positions that share the caches of one sequence; tiles, shards, positions a step, tile, model,
#: context and first step.  Those of a step lie in one chunk, or on both sides of its end.
CONSECUTIVE = {
    "one behind a chunk": (1, 1, 4, MANY, NESTED, 256, CHUNK // 4 - 1),
    "beside a window in turn": (1, 1, 2, MANY, MIXED, 256, 2 * CHUNK // 2 - 1),
    "no room in the buffer": (1, 1, 4, replace(MANY, activations=64), NESTED, 256, 50),
    "positions shared by two": (2, 2, 4, MANY, NESTED, 512, 80),
    "shares of more than a step": (4, 4, 2, MANY, NESTED, 512, 130),
}


@pytest.mark.parametrize("name", CONSECUTIVE)
def test_consecutive_positions(name):
    tiles, shards, batch, tile, config, context, first = CONSECUTIVE[name]
    model, program = _compile(config, tile, tiles, context, shards=shards, batch=batch,
                              consecutive=True)
    assert max(_depths(program)) == (2 if config is NESTED else 1)
    begin, count = first * batch, STEPS * batch
    tokens = np.random.default_rng(5).integers(0, config.vocab, begin + count).tolist()
    machine = Machine(program.system, garbage=5)
    machine.load(program.binary)
    caches = host_caches(model, program.shards, tokens)
    for run in (*cache_words(program, model, caches, 0, begin),
                *prompt_words(program, tokens[begin:], count, begin)):
        machine.write_sram(*run)
    result = machine.start(first_step=first, steps=STEPS)
    assert not any(result.faults) and not result.running
    plain, chosen, logits = PlainModel(model, context, program.shards), [], []
    for position, token in enumerate(tokens):
        logits.append(plain.step(token, position))
        chosen.append(plain.token)
    assert host_tokens(result.host) == chosen[begin:]
    for number in range(batch):
        written = written_vectors(program, result.writes, of_sequence("logits", number))
        np.testing.assert_array_equal(written[:, :model.vocab], logits[begin + number::batch])
    program.binary.first_step, program.binary.steps = first, STEPS
    assert verify_both(program.system, program.binary) == len(result.issues)


def test_positions_that_replace_others_do_not_go_in_loops():
    windows = replace(LLAMA, layers=(replace(_PLAIN, window=128),))
    assert max(_depths(_compile(windows, MANY, 1, 128, batch=2, consecutive=True)[1])) == 1
    with pytest.raises(CompileError, match="a window of 128 within a step .* caches of 128 slots, "
                                           "which are loops: use a shorter context, or fewer "):
        _compile(windows, MANY, 1, 256, batch=2, consecutive=True)


def test_stages_do_not_go_in_loops():
    model = small_model(replace(NESTED, max_position=256))
    system = all_to_all(replace(MANY, sync=True, ports=(PortConfig(fifo=64),)), 2)
    with pytest.raises(CompileError, match="loops through caches are parts: use a shorter context"):
        PacketCompilation(system, model, 256, search=False, unrolled=8).decoder()


def _of(program, sequence):
    """``program`` as if one of its sequences were the first."""
    if not sequence:
        return program
    found = dict(program.symbols)
    for name, symbol in program.symbols.items():
        if mine := re.fullmatch(rf"(.*\.(?:keys|values) \d+) {sequence}(\..*)", name):
            found["".join(mine.groups())] = symbol
    return replace(program, symbols=found)


def _plain(model, program, prompt, first):
    """Tokens chosen in the steps that are run, and the logits of the last one."""
    context = program.symbols["context.forced tokens@0"].words
    plain, chosen = PlainModel(model, context, program.shards), []
    for position in range(first + STEPS):
        logits = plain.step(prompt[position] if position <= first else chosen[-1], position)
        chosen.append(plain.token)
    return chosen[first:], logits


def _bytes(program):
    return sum(map(sum, instruction_bytes(program).values()))


@pytest.mark.parametrize("tiles,shards,config", [(1, 1, MIXED), (1, 1, NESTED), (2, 2, LLAMA)])
def test_instruction_bytes_do_not_grow_with_the_context(tiles, shards, config):
    small, large = (_bytes(_compile(config, replace(WIDE, mem_words=1 << 16), tiles,
                                    shards * context, shards=shards)[1])
                    for context in (256, 1024))
    # waits of more cycles take NOPs of their own
    assert small <= large <= small + 64 * tiles


def test_bounds_reports_and_files_know_the_loops(tmp_path):
    _, program = _compile(NESTED, WIDE, 1, 256, bounds=True)
    cycles, bounds = program.plan.cycles(1), program.bounds
    assert bounds.model <= bounds.schedule <= cycles <= bounds.barrier
    # of loops too, all iterations of which are in both
    assert all(region.bound <= region.cycles < 1.6 * region.bound for region in bounds.regions)
    # a cycle behind each loop for its LOOP word: limits, layers, scores and mixing in two layers
    assert sum(region.cycles * region.runs for region in bounds.regions) + 2 + 2 * 2 == cycles
    planned = expand(program.plan, 1)
    parts = stretches(program.plan)
    assert sum(part.issues * part.runs for part in parts if part.depth == 0) == \
        len(planned["issues"])
    chunks = 256 // CHUNK
    assert [part.runs for part in parts if part.loop] == [chunks, 2, chunks - 1, chunks - 1]
    save(program, tmp_path / "p.npz")
    again = load(tmp_path / "p.npz")
    assert again.bounds == bounds
    for name, table in expand(again.plan, 1).items():
        np.testing.assert_array_equal(table, planned[name])


def test_short_caches_are_unrolled_and_long_ones_are_not():
    assert max(_depths(_compile(NESTED, WIDE, 1, 64)[1])) == 1
    program = _compile(NESTED, WIDE, 1, 256, unrolled=32)[1]
    assert max(_depths(program)) == 1
    assert _bytes(program) > 1.5 * _bytes(_compile(NESTED, WIDE, 1, 256, unrolled=31)[1])


def test_caches_of_too_few_chunks_are_unrolled_but_for_their_limits():
    assert max(_depths(_compile(NESTED, WIDE, 1, 64, unrolled=4)[1])) == 1


def test_what_cannot_be_compiled():
    with pytest.raises(CompileError, match="accumulators at once, it has 4: raise"):
        _compile(MIXED, replace(TILE, accumulators=4), 1, 256)
    with pytest.raises(CompileError, match="must be at least 1, not 0"):
        _compile(MIXED, TILE, 1, 64, unrolled=0)
