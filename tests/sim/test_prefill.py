"""K and V that the host hands over: word for word what the tiles would have written."""

from dataclasses import replace

import numpy as np
import pytest

from compiler.decoder.program import compile_decoder
from compiler.reference import PlainModel
from hdl.arch.config import all_to_all
from sim.decoding import host_tokens, prompt_words
from sim.emulator.machine import Machine
from sim.prefill import cache_words, host_caches
from tests.compiler.decoder.reading import fp32_vector
from tests.sim.decoders import LLAMA, MIXED, TILE, WIDE, small_model

#: Longer than the windows of 8, shorter than the context of 16.
PROMPT = [2, 7, 28, 3, 3, 19, 0, 11, 5, 23, 14]
CONTEXT, STEPS = 16, 14


def _floorplan(*last):
    return replace(TILE, floorplan=("mxm0", *TILE.floorplan[1:-2], *last))


#: Tiles, shards, tile, model: alone and together, positions shared, blocks of keys dealt out to
#: MXMs with slices of their own, in common, and to too many of them.
CASES = {
    "one tile": (1, 1, TILE, MIXED),
    "two tiles": (2, 1, WIDE, MIXED),
    "four tiles": (4, 1, WIDE, MIXED),
    "positions shared by two": (2, 2, WIDE, MIXED),
    "two groups that share": (4, 2, WIDE, MIXED),
    "Llama": (1, 1, TILE, LLAMA),
    "Llama, positions shared": (4, 4, WIDE, LLAMA),
    "three MXMs": (1, 1, _floorplan("sxm1", "mxm1", "mxm2"), MIXED),
    "MXMs on one side": (1, 1, replace(TILE, floorplan=(
        "sxm0", *TILE.floorplan[2:-2], "sxm1", "mxm0", "mxm1")), MIXED),
}


class _Tiles:
    """A machine that begins somewhere in a text."""

    def __init__(self, program, garbage):
        self.program = program
        self.machine = Machine(program.system, garbage=garbage)
        self.machine.load(program.binary)

    def write(self, words):
        for run in words:
            self.machine.write_sram(*run)

    def run(self, first_step, steps):
        result = self.machine.start(first_step=first_step, steps=steps)
        assert not any(result.faults) and not result.running
        return result

    def word(self, tile, name, address):
        return self.machine.sram(tile)[name][address].tobytes()


@pytest.fixture(params=CASES)
def case(request):
    """Program and quantised model."""
    tiles, shards, tile, config = CASES[request.param]
    model = small_model(config)
    program = compile_decoder(all_to_all(tile, tiles), model, CONTEXT, search=False, shards=shards)
    assert max(program.shards) == shards
    return program, model


def test_what_the_host_hands_over_is_what_the_tiles_write(case):
    program, model = case
    by_tiles, by_host = _Tiles(program, 5), _Tiles(program, 6)
    held = len(PROMPT) - 1
    by_tiles.write(prompt_words(program, PROMPT, CONTEXT))
    writes = by_tiles.run(0, held).writes
    words = cache_words(program, model, host_caches(model, program.shards, PROMPT), 0, held)
    by_host.write(words)
    lanes = program.system.tile.lanes
    handed = [(tile, name, address + i) for tile, name, address, content in words
              for i in range(len(content) // lanes)]
    assert len(set(handed)) == len(handed)
    assert set(handed) == _written(program, writes)
    for at in handed:
        assert by_host.word(*at) == by_tiles.word(*at), at

    by_host.write(prompt_words(program, PROMPT[-1:], 1, held))
    results = [tiles.run(held, STEPS - held) for tiles in (by_tiles, by_host)]
    chosen, logits = _plain(model, program.shards)
    for tiles, result in zip((by_tiles, by_host), results, strict=True):
        assert host_tokens(result.host) == chosen[held:]
        np.testing.assert_array_equal(
            fp32_vector(program.system, tiles.machine, program, "logits", model.vocab), logits)


def _written(program, writes):
    """Words of caches that tiles wrote: tile, slice, address."""
    names, found = program.system.tile.slices("mem"), set()
    caches = [symbol for name, symbol in program.symbols.items()
              if name.startswith("caches") and "." not in name]
    for tile, unit, address in {*zip(*(writes[name].tolist() for name in
                                       ("tile", "unit", "address")), strict=True)}:
        if any(symbol.tile == tile and 0 <= address - symbol.address < symbol.words
               for symbol in caches):
            found.add((tile, names[unit], address))
    return found


def _plain(model, shards):
    """Tokens chosen in every step, and the logits of the last one."""
    plain, chosen = PlainModel(model, CONTEXT, shards), []
    for position in range(STEPS):
        logits = plain.step(PROMPT[position] if position < len(PROMPT) else chosen[-1], position)
        chosen.append(plain.token)
    return chosen, logits


def test_only_positions_that_are_asked_for_are_handed_over():
    model = small_model(MIXED)
    program = compile_decoder(all_to_all(WIDE, 2), model, CONTEXT, search=False, shards=2)
    caches = host_caches(model, program.shards, PROMPT)

    def words(first, end):
        lanes = program.system.tile.lanes
        return {(tile, name, address + i): content[i * lanes:(i + 1) * lanes]
                for tile, name, address, content in cache_words(program, model, caches, first, end)
                for i in range(len(content) // lanes)}

    assert words(4, 4) == {}
    assert words(0, 4) | words(4, 10) == words(0, 10)
    # K and V, one vector each, of two sliding layers with two KV heads and of a full one with two
    # vectors: every position is on one tile
    assert len(words(4, 5)) == 2 * (2 * 2 + 2)
