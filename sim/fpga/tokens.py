"""Tokens of a small model on a tile that an FPGA has room for: cycles each, checked."""

from dataclasses import dataclass

import numpy as np

from compiler.decoder.program import compile_decoder
from compiler.model.config import LayerConfig, ModelConfig
from compiler.model.weights import random_weights
from compiler.quantise import quantise
from compiler.reference import PlainModel
from hdl.arch.config import single
from sim.decoding import host_tokens, with_prompt
from sim.emulator.machine import Machine

__all__ = ["MODEL", "Tokens", "run_tokens"]

_LAYER = LayerConfig(heads=2, kv_heads=1, head_dim=16, window=None, k_eq_v=False, rope_theta=1e4,
                     rope_pairs=8, qk_norm=False, v_norm=False, scale=16**-0.5)
#: Of the shape of llama2.c's models; its weights are random.  What limits it are the instruction
#: words of an MXM (they grow with the matrices of a layer) and the SRAM.
MODEL = ModelConfig(vocab=64, hidden=32, ffn=64, eps=1e-5, softcap=None, max_position=32,
                    layers=(_LAYER, _LAYER), bos=1, activation="silu", post_norms=False,
                    layer_scalars=False, tied=True, scaled_embedding=False)
_PROMPT = (1, 7, 40)
_PLANES = 4             # vectors of a token on the host link


@dataclass(frozen=True)
class Tokens:
    """``cycles``: of a token, as planned; ``agrees``: on the emulator each of ``steps`` tokens
    comes so many behind the one before, none is another than that of the plain model, and there is
    no fault."""

    parameters: int
    cycles: int
    steps: int
    agrees: bool

    def milliseconds(self, mhz):
        """Of a token, at a clock."""
        return self.cycles / mhz / 1000


def run_tokens(cfg, steps=8, seed=1):
    """`Tokens` of `MODEL` on one tile.

    Raises
    ------
    compiler.errors.CompileError
        If the tile has no room for it.
    """
    rng = np.random.default_rng(seed)
    texts = [rng.integers(0, MODEL.vocab, MODEL.max_position) for _ in range(2)]
    # One ALU adds on the smallest tiles: factors that come late would need two.
    model = quantise(random_weights(MODEL, seed), texts, lanes=cfg.lanes, late_norms=False)
    program = compile_decoder(single(cfg), model, MODEL.max_position)
    binary = with_prompt(program, _PROMPT, steps).binary
    machine = Machine(program.system, garbage=seed)
    machine.load(binary)
    result = machine.start()
    plain, expected = PlainModel(model, MODEL.max_position, program.shards), []
    for position in range(steps):
        plain.step(_PROMPT[position] if position < len(_PROMPT) else expected[-1], position)
        expected.append(plain.token)
    cycles = program.plan.cycles(2) - program.plan.cycles(1)
    agrees = not any(result.faults) and host_tokens(result.host) == expected and set(
        np.diff(result.host["cycle"][::_PLANES]).tolist()) == {cycles}
    return Tokens(MODEL.parameters, cycles, steps, agrees)
