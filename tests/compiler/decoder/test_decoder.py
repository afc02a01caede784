"""The whole decode on the emulator: bit for bit the plain model, every event as planned."""

from dataclasses import replace

import numpy as np
import pytest

from compiler.decoder.machine import Machine
from compiler.decoder.program import compile_decoder, compile_layers
from compiler.errors import AllocationError, CompileError
from compiler.model.config import LayerConfig, ModelConfig
from compiler.model.weights import random_weights
from compiler.plan import expand
from compiler.quantise import quantise
from compiler.reference import PlainModel
from compiler.verify import verify
from hdl.arch.config import AluConfig, all_to_all, ring
from hdl.arch.presets import DEMO
from sim.decoding import host_tokens, with_prompt
from sim.emulator.machine import Machine as Emulator
from tests.compiler.decoder.reading import fp32_vector

MACHINE = all_to_all(DEMO, 4, latency=(3, 16, 9))


def _layer(**changes):
    base = dict(heads=4, kv_heads=2, head_dim=16, window=16, k_eq_v=False, rope_theta=1e4,
                rope_pairs=8)
    return LayerConfig(**base | changes)


#: Two sliding layers in a loop and a full one; hidden and vocabulary are no multiple of the lanes.
SMALL = ModelConfig(
    vocab=50, hidden=40, ffn=72, eps=1e-6, softcap=30.0, max_position=40, bos=2,
    layers=(_layer(), _layer(), _layer(heads=4, kv_heads=1, head_dim=32, window=None, k_eq_v=True,
                                       rope_theta=1e6, rope_pairs=4)))


def _model(config=SMALL, late=True, seed=1):
    rng = np.random.default_rng(seed)
    texts = [rng.integers(0, config.vocab, config.max_position) for _ in range(4)]
    return quantise(random_weights(config, seed), texts, late_norms=late)


class _Decode:
    """A machine with a program, and what it holds."""

    def __init__(self, system, program):
        self.program = program
        self._system = system
        self.machine = Emulator(system, garbage=5)

    def run(self, prompt, steps):
        """Run from position 0; returns the tokens sent to the host, checked against the plan."""
        program = with_prompt(self.program, prompt, steps)
        self.machine.load(program.binary)
        result = self.machine.start()
        assert not any(result.faults) and not result.running
        planned = expand(program.plan, steps)
        np.testing.assert_array_equal(result.issues, planned["issues"])
        for name in ("writes", "arrivals"):
            for column in planned[name].dtype.names:
                np.testing.assert_array_equal(getattr(result, name)[column],
                                              planned[name][column])
        return host_tokens(result.host)

    def vector(self, name, size):
        """An fp32 vector of which each tile holds a part."""
        return fp32_vector(self._system, self.machine, self.program, name, size)


#: So few accumulators that scores must be read before all of them are there.
SCARCE = all_to_all(replace(DEMO, accumulators=8), 1)


@pytest.mark.parametrize("system,late,search", [
    (MACHINE.restrict(1), True, False), (MACHINE.restrict(2), False, True), (MACHINE, True, False),
    (SCARCE, True, True), (ring(DEMO, 4, latency=5), True, False)])
def test_scores_logits_and_tokens_are_those_of_the_plain_model(system, late, search):
    model = _model(late=late)
    decode = _Decode(system, compile_decoder(system, model, 40, search=search))
    assert verify(system, replace(decode.program.binary, steps=1)) > 0
    for prompt in ([2, 7, 49, 11], [31]):               # the second run needs no reset
        for steps in (len(prompt), 20):
            chosen = decode.run(prompt, steps)
            plain, expected = PlainModel(model, 40), []
            for position in range(steps):
                token = prompt[position] if position < len(prompt) else expected[-1]
                logits = plain.step(token, position)
                expected.append(plain.token)
            assert chosen == expected
            np.testing.assert_array_equal(decode.vector("scores", model.vocab), plain.scores)
            np.testing.assert_array_equal(decode.vector("logits", model.vocab), logits)


def test_vectors_take_the_fastest_way_to_every_tile():
    around = Machine(ring(DEMO, 5))
    hops = around.spread(1)
    assert [(tile, [link.target for link in links]) for tile, links in hops] == \
        [(1, [0, 2]), (0, [4]), (2, [3])]
    assert around.away(1, 4) == around.away(1, 3) == \
        around.away(1, 2) + around.hop(around.system.links[0])
    assert around.away(1, 1) == 0
    direct = Machine(all_to_all(DEMO, 4, latency=(3, 90, 3))).spread(0)
    assert [(tile, [link.target for link in links]) for tile, links in direct] == \
        [(0, [1, 3]), (1, [2])]


def test_layers_alone_give_the_same_stream_on_every_tile_count():
    model = _model()
    inputs = np.random.default_rng(3).standard_normal((3, model.hidden)).astype(np.float32)
    streams = []
    for tiles in (1, 2, 4):
        system = MACHINE.restrict(tiles)
        decode = _Decode(system, compile_layers(system, model, inputs, search=False))
        decode.machine.load(decode.program.binary)
        assert not any(decode.machine.start(steps=3).faults)
        streams.append(decode.vector("x", model.hidden))
        assert np.abs(streams[-1]).max() > 0
    np.testing.assert_array_equal(streams[0], streams[1])
    np.testing.assert_array_equal(streams[0], streams[2])


def test_instructions_do_not_grow_with_context_steps_or_layers_of_one_shape():
    def words(config, positions):
        system = MACHINE.restrict(1)
        tiles = compile_decoder(system, _model(config), positions, search=False).binary.tiles
        return sum(map(len, tiles[0].words.values()))

    sliding = replace(SMALL, layers=SMALL.layers[:1] * 2)
    assert words(replace(sliding, layers=SMALL.layers[:1] * 4), 40) == words(sliding, 40)
    assert words(sliding, 40) == words(sliding, 24)


@pytest.mark.parametrize("system,config,message", [
    (all_to_all(replace(DEMO, accumulators=2), 1), SMALL,
     "Tile 0 mxm1 needs 4 accumulators at once, it has 2: raise TileConfig.accumulators"),
    (replace(ring(DEMO, 4), links=ring(DEMO, 4).links[:4]), SMALL,
     "Decoder needs a way over links from tile 2 to tile 0: use another topology"),
    (all_to_all(replace(DEMO, mem_words=64), 1), SMALL,
     r"shared needs .* bytes of SRAM .*, 8,192 of 8,192 are free: raise TileConfig.mem_words"),
    (all_to_all(replace(DEMO, floorplan=("mxm0", "mem0", "mem1", "vxm", "c2c", "mem2", "mem3")), 1),
     SMALL, "Decoder needs two groups of four mem slices"),
    (all_to_all(replace(DEMO, floorplan=tuple(n for n in DEMO.floorplan if n[:3] != "mxm")), 1),
     SMALL, "Decoder needs a mxm slice in the floorplan"),
    (all_to_all(replace(DEMO, alus=(AluConfig(features=("add", "mul")),) * 4), 1), SMALL,
     "RSQRT needs an ALU with the feature 'special'"),
])
def test_what_cannot_be_compiled_is_one_clear_error(system, config, message):
    with pytest.raises((CompileError, AllocationError), match=message):
        compile_decoder(system, _model(config), 16)


def test_a_context_beyond_the_model_is_refused():
    with pytest.raises(CompileError, match="Context must be 1 to 40 positions"):
        compile_decoder(MACHINE.restrict(1), _model(), 41)


def test_a_model_of_other_lanes_is_refused():
    with pytest.raises(CompileError, match="Model was quantised for 8 lanes, the tile has 16"):
        compile_decoder(MACHINE.restrict(1), replace(_model(), lanes=8), 16)


def test_a_vocabulary_too_small_for_the_tiles_is_refused():
    model = _model(replace(SMALL, vocab=40))
    with pytest.raises(CompileError, match="Vocabulary of 40 tokens fills 3 vectors, too few for 4 "
                                           "tiles: use at most 3"):
        compile_decoder(MACHINE, model, 16)


def test_a_context_beyond_the_slices_is_refused():
    model = replace(_model(), max_position=1 << 20)
    with pytest.raises(CompileError, match="Context of 100000 positions needs 1,600,000 bytes of a "
                                           "slice for its prompt, a slice has 262,144: ask"):
        compile_decoder(MACHINE.restrict(1), model, 100_000)


def test_what_does_not_depend_on_the_context_stays_in_place():
    def constants(positions):
        program = compile_decoder(MACHINE.restrict(2), _model(), positions, search=False)
        return {name: (symbol.slices, symbol.address, symbol.words)
                for name, symbol in program.symbols.items()
                if not name.startswith(("context", "caches"))}

    short = constants(8)
    assert short == constants(40)
    assert {"shared.embedding@1", "layers 0.q.mxm0@0", "layers 1.down.mxm1@1"} <= short.keys()
