from dataclasses import replace

import pytest

from compiler.decoder.program import compile_decoder
from sim.bench.sequences import STEPS, agrees, misses, prompts
from sim.compiling import machine
from sim.decoding import with_prompts
from sim.emulate import run_emulator
from tests.compiler.decoder.test_decoder import _model


def row(batch, cycles, tiles=1, ok=True):
    return {"tiles": tiles, "batch": batch, "cycles": cycles, "ok": ok, "verdict": "DIFFERENT bits"}


@pytest.mark.parametrize(("rows", "count"), [
    ([row(1, 100), row(2, 150), row(1, 90, tiles=4)], 0),
    ([row(1, 100), row(2, 200)], 1),
    ([row(1, 100, ok=False)], 1),
])
def test_bars(rows, count):
    assert len(misses(rows)) == count


def test_prompts_differ():
    found = prompts(8, 512)
    assert len({tuple(prompt) for prompt in found}) == 8
    assert {len(prompt) for prompt in found} == {1, 2}


def test_sequences_are_compared_with_the_plain_model():
    system, model = machine(2).restrict(1), _model()
    program = compile_decoder(system, model, 40, search=False, batch=2)
    asked = prompts(2, model.vocab)
    observed, = run_emulator(system, with_prompts(program, asked, STEPS).binary, garbage=1,
                             runs=[(0, STEPS)])
    assert agrees(model, program, asked, observed, 40)
    assert not agrees(model, program, asked[::-1], observed, 40)
    few = observed.host[:-4]
    assert not agrees(model, program, asked, replace(observed, host=few), 40)
