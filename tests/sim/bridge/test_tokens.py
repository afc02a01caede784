"""A prompt is continued over a serial line, in Verilator, with the tokens of the emulator."""

from dataclasses import replace

import pytest

from compiler.program import save
from hdl.arch.config import single
from hdl.arch.presets import FPGA
from hdl.bridge import SerialTile
from hdl.emit import emit
from sim.build import build_model, run_cocotb
from sim.decoding import host_tokens, prepare
from sim.emulate import run_emulator
from tests.sim.bridge.programs import DIVISOR
from tests.sim.commands.models import save_model

CFG = replace(FPGA, accumulators=32, mem_words=2048)
#: What is changed in a small model for tiles of 4 lanes.
TINY = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 16, "head_dim": 8,
        "per_layer_config": {"1": {"head_dim": 8, "num_key_value_heads": 1}}}


@pytest.mark.slow
def test_tokens(tmp_path, seed):
    directory = save_model(tmp_path / "model", **TINY)
    texts = prepare(prompts=["the"], tokens=3, tiles=1, directory=directory, context=16,
                    system=single(CFG))
    program = texts.program
    save(program, tmp_path / "program.npz")
    expected, = run_emulator(program.system, program.binary, garbage=seed, limit=100_000)
    units = emit(SerialTile(CFG, DIVISOR), "serial_tile", simulation=True)
    model = build_model("test-tokens", {f"{name}.v": text for name, text in units.items()},
                        top="serial_tile")
    run_cocotb(model, "tests.sim.bridge.tb_tokens", 1, run_dir=tmp_path / "run", seed=seed,
               env={"ONCYCLE_SEED": str(seed), "ONCYCLE_PROGRAM": str(tmp_path / "program.npz"),
                    "ONCYCLE_STEPS": str(texts.steps),
                    "ONCYCLE_TOKENS": " ".join(map(str, host_tokens(expected.host)))})
