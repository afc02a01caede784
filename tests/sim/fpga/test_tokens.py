"""The model that the tile on the board has room for."""

import pytest

from compiler.errors import CompileError
from hdl.arch.presets import FPGA, NANO
from sim.fpga.tokens import MODEL, run_tokens


def test_tokens_are_those_of_the_plain_model_in_the_planned_cycles():
    tokens = run_tokens(FPGA, steps=4)
    assert tokens.agrees
    assert tokens.parameters == MODEL.parameters <= 150_000
    assert tokens.milliseconds(50) == pytest.approx(tokens.cycles * 20e-6)


def test_a_tile_without_room_is_refused():
    with pytest.raises(CompileError):
        run_tokens(NANO)
