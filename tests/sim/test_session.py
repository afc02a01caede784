"""Turns on one loaded machine: the tokens of a fresh run over the whole text."""

import copy

import numpy as np
import pytest

from compiler.decoder.program import compile_decoder
from hdl.arch.config import all_to_all
from sim.decoding import host_tokens, with_prompt
from sim.emulate import LoadedEmulator, run_emulator
from sim.errors import UsageError
from sim.moving import differing_words, held_words
from sim.prefill import made_of
from sim.session import Session, rooms
from tests.sim.decoders import LLAMA, MIXED, TILE, WIDE, small_model

PROMPTS = [[2, 7, 28, 11], [3], [40, 0, 19, 5, 5]]
TOKENS = 3
LIMIT = 200_000
#: Steps of the whole text.
STEPS = sum(map(len, PROMPTS)) + len(PROMPTS) * TOKENS - 1


def _programs(config, tiles, shards, contexts):
    model = small_model(config)
    system = all_to_all(TILE if tiles == 1 else WIDE, tiles)
    made = {context: compile_decoder(system, model, context, search=False, shards=shards)
            for context in dict.fromkeys(contexts)}
    return model, [made[context] for context in contexts]


def _play(session):
    """(turn, observation, new tokens) of every turn, on an emulator with garbage of its own."""
    found = []
    while session.left:
        turn = session.ask()
        if not found:
            loaded = LoadedEmulator(turn.program.system, turn.program.binary, garbage=3)
        elif turn.reload:
            loaded.reload(turn.program.binary)
        seen = loaded.run(turn.first_step, turn.steps, turn.patches, limit=LIMIT)
        assert not any(seen.faults)
        found.append((turn, seen, session.answer(seen)))
    return found


def _logits(program, seen):
    """Bytes of the logits that the tiles have left."""
    names, found = program.system.tile.slices("mem"), []
    for tile in range(program.system.tiles):
        symbol = program.symbols[f"shared.logits@{tile}"]
        found += [seen.sram[tile][names.index(name), symbol.address:][:symbol.words].tobytes()
                  for name in symbol.slices]
    return found


def _check(session, found, program):
    """Compare with a run from position 0 of a machine that has just been loaded."""
    text = session.text
    answers = [tokens for *_, tokens in found]
    assert text == [token for turn in zip(PROMPTS, answers, strict=True) for part in turn
                    for token in part]
    forced = text[:STEPS + 1 - TOKENS]
    fresh, = run_emulator(program.system, with_prompt(program, forced, STEPS).binary, garbage=9,
                          limit=LIMIT)
    chosen, at = host_tokens(fresh.host), 0
    for prompt, answer in zip(PROMPTS, answers, strict=True):
        at += len(prompt)
        assert chosen[at - 1:at - 1 + TOKENS] == answer
        at += TOKENS
    assert _logits(program, found[-1][1]) == _logits(program, fresh)


@pytest.mark.parametrize("prefill", ["tiles", "host"])
@pytest.mark.parametrize(("config", "tiles", "shards"), [
    (MIXED, 1, 1), (MIXED, 2, 2), (LLAMA, 2, (1, 2))])
def test_turns_give_the_tokens_of_a_fresh_run(config, tiles, shards, prefill):
    model, programs = _programs(config, tiles, shards, [32] * len(PROMPTS))
    session = Session(programs, PROMPTS, TOKENS, prefill, model)
    found = _play(session)
    _check(session, found, programs[0])
    words = [len(prompt) if prefill == "tiles" else 1 for prompt in PROMPTS]
    assert [turn.written["tokens"] for turn, *_ in found] == \
        [tiles * count * 4 * TILE.lanes for count in words]
    for turn, *_ in found:
        assert not turn.reload
        assert set(turn.written) == ({"tokens"} if prefill == "tiles" else {"K and V", "tokens"})
    assert sum(turn.steps for turn, *_ in found) == \
        (STEPS if prefill == "tiles" else TOKENS * len(PROMPTS))


@pytest.mark.parametrize("prefill", ["tiles", "host"])
@pytest.mark.parametrize(("tiles", "shards"), [(1, None), (2, (1, 1, 2))])
def test_a_program_of_more_room_goes_on_without_new_weights(tiles, shards, prefill):
    model, programs = _programs(MIXED, tiles, shards, [8, 16, 32])
    session = Session(programs, PROMPTS, TOKENS, prefill, model)
    found = _play(session)
    assert [turn.reload for turn, *_ in found] == [False, True, True]
    for turn, *_ in found[1:]:
        assert turn.agreed
        assert turn.written["weights and constants"] == 0
        assert min(turn.written[what] for what in ("instructions", "context", "K and V")) > 0
    _check(session, found, programs[-1])


def _rewritten(program, name):
    """A copy of a program with one byte changed in the contents of a symbol."""
    other = copy.deepcopy(program)
    symbol = other.symbols[name]
    slice_, tile = symbol.slices[0], other.binary.tiles[symbol.tile]
    start = max(at for at in tile.sram[slice_] if at <= symbol.address)
    content = bytearray(tile.sram[slice_][start])
    content[(symbol.address - start) * TILE.lanes] ^= 1
    tile.sram[slice_][start] = bytes(content)
    return other, symbol


def test_weights_that_differ_are_written():
    _, (program, larger) = _programs(MIXED, 1, None, [8, 16])
    other, symbol = _rewritten(larger, "layers 0.q.mxm1@0")
    constants, context = differing_words(program, other)
    (tile, name, address, content), = constants
    assert (tile, name, address) == (0, symbol.slices[0], symbol.address)
    assert len(content) == TILE.lanes
    assert context == differing_words(program, larger)[1]


def test_k_and_v_that_the_tiles_do_not_hold_are_noticed():
    model, programs = _programs(MIXED, 1, None, [8, 16])
    session = Session(programs, PROMPTS[:2], TOKENS, "tiles", model)
    turn = session.ask()
    seen = LoadedEmulator(turn.program.system, turn.program.binary, garbage=3).run(
        turn.first_step, turn.steps, turn.patches, limit=LIMIT)
    symbol = next(symbol for name, symbol in turn.program.symbols.items()
                  if name.startswith("caches 0.keys 1"))
    names = TILE.slices("mem")
    seen.sram[0][names.index(symbol.slices[1]), symbol.address, 2] ^= 1     # position 1
    session.answer(seen)
    assert not session.ask().agreed


def test_held_words_are_compared_to_the_last_byte():
    sram = [np.zeros((len(TILE.slices("mem")), 4, TILE.lanes), np.uint8)]
    words = [(0, "mem1", 2, bytes(2 * TILE.lanes))]
    assert held_words(TILE, sram, words)
    sram[0][1, 3, -1] = 1
    assert not held_words(TILE, sram, words)


def test_a_program_of_other_numbers_is_noticed():
    model, (program,) = _programs(MIXED, 2, None, [8])
    assert made_of(program, model)
    assert not made_of(program, small_model(MIXED, seed=2))
    assert not made_of(program, small_model(LLAMA))
    assert not made_of(_rewritten(program, "layers 1.attention_gain@0")[0], model)
    for name in ("caches 1@1", "context@0", "layers 0.attention_gain@0"):
        other = copy.copy(program)
        other.symbols = {key: symbol for key, symbol in program.symbols.items() if key != name}
        assert not made_of(other, model)


def test_room_is_doubled_up_to_the_limit():
    texts = [[1] * 4, [1] * 2, [1] * 20]
    assert rooms(texts, 3, 8, 100) == [8, 16, 64]       # 6, 11 and 34 positions
    assert rooms(texts, 3, 8, 40) == [8, 16, 40]
    assert rooms(texts, 3, 50, 50) == [50] * 3
    with pytest.raises(UsageError, match="Turn 3 needs 34 positions, the context has 33: ask for "
                                         "fewer tokens, or raise --context or --context-limit"):
        rooms(texts, 3, 8, 33)
