"""Several positions of one sequence in a step: each has the plain model's bits."""

from dataclasses import replace

import numpy as np
import pytest

from compiler.decoder.positions import StepPosition, positions_of
from compiler.decoder.program import compile_decoder, compile_layers
from compiler.decoder.shared import of_sequence
from compiler.errors import CompileError
from compiler.reference import PlainModel
from compiler.verify import verify
from hdl.arch.config import PortConfig, all_to_all, ring
from sim.decoding import host_tokens, with_prompt, written_vectors
from sim.emulate import run_emulator
from tests.compiler.decoder.test_configurations import LLAMA, PLAIN, _model, _quantised, _tile

#: Tiles, shares of the positions, positions of a step, and the model (windows are of 8 positions).
CASES = {
    "no window": (1, 1, 4, _model(layer={"window": None}), True),
    "a window that positions replace": (2, None, 2, _model(count=2), True),
    "more positions than the window": (1, None, 16, _model(), False),
    "V made of K in a window": (2, None, 4, _model(layer={"k_eq_v": True}), True),
    "windows and none": (3, 1, 4, replace(LLAMA, layers=(PLAIN, replace(PLAIN, window=None))),
                         True),
    "shares of more than a step": (4, 4, 2, replace(
        LLAMA, vocab=45, layers=(replace(PLAIN, window=None),)), True),
    "shares of a part of a step": (4, 2, 8, _model(vocab=45, layer={"window": None}), False),
    "half of the positions": (2, 2, 16, _model(layer={"window": None}), True),
}


def _system(tiles):
    return all_to_all(_tile(accumulators=256, icu_words=1 << 14, ports=(PortConfig(),) * 3), tiles)


def _long(config, late=True):
    return _quantised(replace(config, max_position=33), late)


@pytest.mark.parametrize("name", CASES)
def test_every_position_is_as_the_plain_model_has_it(name):
    tiles, shards, batch, config, late = CASES[name]
    system, model = _system(tiles), _long(config, late)
    program = compile_decoder(system, model, 32, search=False, shards=shards, batch=batch,
                              consecutive=True)
    assert program.binary.steps == 32 // batch
    assert verify(system, replace(program.binary, steps=min(2, 32 // batch))) > 0
    tokens = [int(token) for token in np.random.default_rng(3).integers(0, model.vocab, 32)]
    program = with_prompt(program, tokens, 32 // batch)
    seen, = run_emulator(system, program.binary, garbage=5)
    assert not any(seen.faults)
    plain, chosen, logits = PlainModel(model, 32, program.shards), [], []
    for position, token in enumerate(tokens):
        logits.append(plain.step(token, position))
        chosen.append(plain.token)
    assert host_tokens(seen.host) == chosen
    for number in range(batch):
        written = written_vectors(program, seen.events.writes, of_sequence("logits", number))
        np.testing.assert_array_equal(written[:, :model.vocab], logits[number::batch])


@pytest.mark.parametrize(("window", "apart"), [(None, False), (None, True), (8, True)])
def test_layers_alone_take_their_inputs_by_position(window, apart, rng):
    system, model = _system(2), _long(_model(layer={"window": window}))
    inputs = rng.standard_normal((32, 20)).astype(np.float32)
    program = compile_layers(system, model, inputs, search=False, batch=4, consecutive=True,
                             apart=apart)
    seen, = run_emulator(system, program.binary, garbage=5)
    expected = PlainModel(model, 32, program.shards).layers(inputs)
    for number in range(4):
        name = of_sequence("x", number)
        streams = written_vectors(program, seen.events.writes, name)[2::3]
        streams = streams.reshape(8, 2, -1)[..., :20]
        for tile in range(2):
            np.testing.assert_array_equal(streams[:, tile], expected[number::4])


@pytest.mark.parametrize(("bits", "number"), [(0, 0), (1, 1), (3, 5), (5, 21)])
def test_fields_and_predicates_of_a_position(bits, number):
    mine = StepPosition(bits, number)
    for step in range(40):
        position = (step << bits) + number
        for shift in range(7):
            for mask in (0, 1, 3, 31):
                constant, terms = mine.field(shift, mask, 6)
                found = constant + sum((step >> term.shift & term.mask) * term.step
                                       for term in terms)
                assert found == (position >> shift & mask) * 6
        for mask, match in ((3, 1), (24, 8), (27, 17), (0, 0)):
            term = mine.predicate(mask, match)
            holds = term is None or \
                term is not False and (step >> term.shift & term.mask) == term.step
            assert holds == (position & mask == match)


@pytest.mark.parametrize(("batch", "positions", "shards", "message"), [
    (3, 33, None, "must be a power of two, not 3"),
    (4, 30, None, "must be a multiple of the 4 positions of a step, not 30"),
    (4, 32, 2, "cannot share positions that replace others within a step, a window of 8 does"),
])
def test_what_cannot_be_dealt_out_to_steps_is_refused(batch, positions, shards, message):
    with pytest.raises(CompileError, match=message):
        compile_decoder(ring(_tile(ports=(PortConfig(),) * 2), 4), _long(_model()), positions,
                        shards=shards, batch=batch, consecutive=True)


def test_positions_of_sequences_are_all_the_steps():
    assert positions_of(3, False, 7) == [StepPosition(0, 0)] * 3
