"""Checkpoints of every format that `run`, `compile` and `check` must refuse in one line."""

import json
import struct

import numpy as np
import pytest

from compiler.model.hf_config import parse_config
from compiler.model.weights import random_weights
from tests.compiler.model.checkpoints import write_tensors
from tests.compiler.model.llama_files import (
    LLAMA,
    gguf_tensors,
    hf_tensors,
    tokenizer_bytes,
    write_gguf,
    write_hf,
    write_llama2c,
)

COMMANDS = {
    "run": ("--engine", "emulator", "--tiles", 1, "--prompt", "the"),
    "compile": ("--tiles", 1),
    "check": ("--engine", "emulator", "--tiles", 1, "--prompt", "the"),
}
#: Positions that the model has, but no machine.
LONG = LLAMA | {"max_position_embeddings": 1 << 20}


def weights_of(data=LLAMA):
    return random_weights(parse_config(data), seed=1)


@pytest.fixture(params=COMMANDS)
def refused(request, refusal, tmp_path):
    """The line with which a command refuses the model of a name in the test's directory."""
    (tmp_path / "calibration.txt").write_text("the cat had that hat " * 3)

    def go(name, *options):
        line = refusal(request.param, "--model", tmp_path / name, "--calibration",
                       tmp_path / "calibration.txt", *COMMANDS[request.param], *options)
        return line.rstrip().replace(f"{tmp_path}/", "")

    return go


def directory(tmp_path, change=None, data=None, **options):
    """A Hugging Face directory whose tensors a function has changed."""
    data = LLAMA | (data or {})
    write_hf(tmp_path / "hf", weights_of(data), data)
    tensors = hf_tensors(weights_of(data))
    if change is not None:
        change(tensors)
    write_tensors(tmp_path / "hf" / "model.safetensors", tensors, **options)


def test_another_architecture(refused, tmp_path):
    directory(tmp_path)
    (tmp_path / "hf" / "config.json").write_text(
        json.dumps(LLAMA | {"architectures": ["MistralForCausalLM"]}))
    assert "hf/config.json: " in refused("hf") and "MistralForCausalLM" in refused("hf")
    write_gguf(tmp_path / "a.gguf", weights_of(), architecture="qwen2")
    assert "a.gguf: " in refused("a.gguf") and "qwen2" in refused("a.gguf")


def test_another_type_of_tensor(refused, tmp_path):
    directory(tmp_path)
    path = tmp_path / "hf" / "model.safetensors"
    size, = struct.unpack_from("<Q", path.read_bytes())
    head = path.read_bytes()[8:8 + size]
    path.write_bytes(path.read_bytes().replace(head, head.replace(b'"F32"', b'"I32"', 1)))
    assert "must be F32, F16 or BF16, not I32" in refused("hf")
    write_gguf(tmp_path / "a.gguf", weights_of(), {"blk.1.ffn_up.weight": "Q5_0"})
    line = refused("a.gguf")
    assert line.startswith("a.gguf: tensor blk.1.ffn_up.weight") and "Q5_0" in line


def test_a_missing_tensor(refused, tmp_path):
    directory(tmp_path, lambda tensors: tensors.pop("model.layers.1.mlp.up_proj.weight"))
    assert "model.layers.1.mlp.up_proj.weight" in refused("hf")
    tensors = gguf_tensors(weights_of())
    del tensors["blk.1.ffn_up.weight"]
    write_gguf(tmp_path / "a.gguf", weights_of(), tensors=tensors)
    line = refused("a.gguf")
    assert line.startswith("a.gguf: ") and "blk.1.ffn_up.weight" in line
    write_llama2c(tmp_path / "a.bin", weights_of())     # has no names: its length tells
    (tmp_path / "a.bin").write_bytes((tmp_path / "a.bin").read_bytes()[:-4 * 96 * 64])
    assert "a llama2.c file with this header has" in refused("a.bin")


def test_a_head_that_is_missing(refused, tmp_path):
    directory(tmp_path, lambda tensors: tensors.pop("lm_head.weight"))
    assert "lm_head.weight" in refused("hf")


def test_a_head_that_should_be_the_embedding(refused, tmp_path):
    def change(tensors):
        tensors["lm_head.weight"] = -tensors["model.embed_tokens.weight"]

    directory(tmp_path, change, {"tie_word_embeddings": True})
    assert "lm_head.weight" in refused("hf")


def test_a_tokenizer_of_another_model(refused, tmp_path):
    directory(tmp_path, data={"vocab_size": 270})
    assert refused("hf").endswith("tokenizer.json: 279 tokens do not fit the model's vocabulary "
                                  "of 270")
    write_llama2c(tmp_path / "a.bin", weights_of())
    (tmp_path / "tokenizer.bin").write_bytes(tokenizer_bytes([b"a", b"b"], [0.0, 0.0]))
    assert refused("a.bin") == ("tokenizer.bin: 2 tokens, but the model has 288: truncated, or of "
                                "another model")
    write_gguf(tmp_path / "a.gguf", weights_of(LLAMA | {"vocab_size": 270}))
    assert "279 tokens do not fit the model's vocabulary of 270" in refused("a.gguf")


@pytest.mark.parametrize(("context", "message"), [
    (1_000_000, "Context of 1000000 positions needs 16,000,000 bytes of a slice for its prompt, a "
                "slice has 262,144: ask for fewer"),
    (1 << 21, "Context must be 1 to 1048576 positions, as the model has, not 2097152")])
def test_a_context_beyond_the_machine_or_the_model(refused, tmp_path, context, message):
    write_llama2c(tmp_path / "a.bin", weights_of(LONG))
    assert message in refused("a.bin", "--context", context)


def test_weights_beyond_the_machine(refused, tmp_path):
    data = LLAMA | {"intermediate_size": 1 << 14}
    write_llama2c(tmp_path / "a.bin", weights_of(data))
    count = parse_config(data).parameters
    assert refused("a.bin") == (f"Model a.bin needs {count:,} bytes of SRAM for its parameters, "
                                "there are 2,097,152 (tiles: 1)")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt"])
def test_a_pickle(refused, tmp_path, name):
    (tmp_path / name).write_bytes(b"\x80\x02cos\nsystem\n(S'touch run'\ntR.")
    assert refused(name).startswith(f"{name}: a pickle file or archive, which could run anything")


def test_values_that_are_not_finite(refused, tmp_path):
    def change(tensors):
        tensors["model.norm.weight"] = np.full(64, np.nan, np.float32)

    directory(tmp_path, change)
    assert "tensor model.norm.weight holds values that are not finite" in refused("hf")
