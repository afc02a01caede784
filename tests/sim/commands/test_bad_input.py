"""What a user can get wrong, at the command line: one line, exit code 2, nothing left behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sim.build.verilator import find_verilator
from tests.sim.commands.models import SMALL, save_model

ROOT = Path(__file__).parents[3]
#: A text of few steps.
SHORT = ("--prompt", "the", "--tokens", "2", "--context", "16")
FILES = ("config.json", "model.safetensors", "tokenizer.json", "calibration.txt")


@pytest.fixture
def model(tmp_path):
    return save_model(tmp_path / "model")


@pytest.fixture
def refused_model(refusal, model, tmp_path):
    """The line that refuses the model; no program of it is kept."""

    def go():
        line = refusal("run", "--model", model, "--engine", "emulator", "--tiles", 1, "--context",
                       16, "--tokens", 2, "--prompt", "the")
        assert not (tmp_path / "kept").exists()
        return line.replace(f"{model}/", "").replace(f"{model}", "MODEL")

    return go


@pytest.mark.parametrize("command", [
    ("run", "--engine", "emulator", *SHORT), ("check", *SHORT), ("report",), ("compile",),
    ("bench", "bound"), ("bench", "quality")])
def test_every_command_takes_the_calibration_text_it_is_told(oncycle, model, tmp_path, command):
    (model / "heldout.txt").write_text("the hat")
    text = tmp_path / "none.txt"
    code, _, errors = oncycle(*command, "--model", model, "--calibration", text)
    assert code == 2
    assert f"{text}: no such file; put a text like the model's training text there" in errors


def change_json(path, change):
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


@pytest.mark.parametrize("file", FILES)
def test_a_missing_file_is_named(refused_model, model, file):
    (model / file).unlink()
    assert refused_model().startswith(f"{file}: no such file")


@pytest.mark.parametrize("file", FILES[:3])
@pytest.mark.parametrize("cut", [0, 1, 8, 0.1, 0.5, -1])
def test_a_truncated_file_is_named(refused_model, model, file, cut):
    path = model / file
    data = path.read_bytes()
    path.write_bytes(data[:int(cut * len(data)) if isinstance(cut, float) else cut])
    assert refused_model().startswith(f"{file}: ")


@pytest.mark.parametrize("file", FILES)
def test_garbage_is_named(refused_model, model, file, rng):
    (model / file).write_bytes(b"\xff" + rng.bytes(3000))
    assert refused_model().startswith(f"{file}: ")


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_a_terabyte_is_not_read(refused_model, model, file):
    with (model / file).open("r+b") as opened:
        opened.truncate(1 << 40)
    assert refused_model().startswith(f"{file}: ")


@pytest.mark.parametrize(("change", "message"), [
    ({"num_hidden_layers": 10**9}, "layer_types has 2 entries, num_hidden_layers is 1000000000"),
    ({"num_hidden_layers": -1}, "num_hidden_layers is -1"),
    ({"num_hidden_layers": 2.5}, "num_hidden_layers must be of type int, not 2.5"),
    ({"num_hidden_layers": 2000, "layer_types": ["full_attention"] * 2000},
     "at most 1024 layers, not 2000"),
    ({"hidden_size": "32"}, "hidden_size must be of type int, not '32'"),
    ({"hidden_size": -32}, "hidden must be a positive whole number, not -32"),
    ({"max_position_embeddings": 10**18}, "at most 1048576 positions, not 1000000000000000000"),
    ({"rms_norm_eps": 1e-300}, "eps must be positive, at least 1.2e-38, not 1e-300"),
    ({"final_logit_softcapping": 1e-300}, "softcap must be positive, at least 1.2e-38"),
    ({"bos_token_id": 10**30}, "is outside the vocabulary of 64"),
    ({"num_key_value_heads": 0}, "kv_heads must be a positive whole number, not 0"),
])
def test_absurd_numbers_in_the_configuration(refused_model, model, change, message):
    (model / "config.json").write_text(json.dumps(SMALL | change))
    line = refused_model()
    assert line.startswith("config.json: ")
    assert message in line


@pytest.mark.parametrize("change", [{"hidden_size": 10**9}, {"intermediate_size": 10**12},
                                    {"vocab_size": 10**9}])
def test_a_model_that_cannot_fit_is_refused_unread(refused_model, model, change):
    (model / "config.json").write_text(json.dumps(SMALL | change))
    (model / "model.safetensors").unlink()
    line = refused_model()
    assert line.startswith("Model MODEL needs ")
    assert line.endswith(" bytes of SRAM for its parameters, there are 2,097,152 (tiles: 1)")


def change_header(path, change):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size:])


@pytest.mark.parametrize(("change", "message"), [
    ({"data_offsets": [0, 10**15]}, "truncated or not a safetensors file"),
    ({"shape": [10**12, 10**12]}, "truncated or not a safetensors file"),
    ({"data_offsets": [-5, 3]}, "truncated or not a safetensors file"),
    ({"dtype": "OBJECT"}, "truncated or not a safetensors file"),
    ({"dtype": "I32"}, "tensor model.norm.weight must be F32, F16 or BF16, not I32"),
    ({"shape": [4, 8]}, "tensor model.norm.weight has shape [4, 8], must be [32]"),
])
def test_tensors_that_the_file_does_not_hold(refused_model, model, change, message):
    change_header(model / "model.safetensors",
                  lambda header: header["model.norm.weight"].update(change))
    line = refused_model()
    assert line.startswith("model.safetensors: ")
    assert message in line


def test_a_header_longer_than_the_file(refused_model, model):
    path = model / "model.safetensors"
    path.write_bytes((1 << 63).to_bytes(8, "little") + path.read_bytes()[8:])
    assert "truncated or not a safetensors file" in refused_model()


def test_a_pickle_is_not_loaded(refused_model, model, tmp_path):
    (model / "model.safetensors").write_bytes(
        f"cos\nsystem\n(S'touch {tmp_path}/run'\ntR.".encode())
    assert "truncated or not a safetensors file" in refused_model()
    assert not (tmp_path / "run").exists()


def test_an_index_that_names_no_files(refused_model, model):
    (model / "model.safetensors").unlink()
    index = model / "model.safetensors.index.json"
    for content, message in (({"weight_map": {"a": [1]}}, "must name files of the same directory"),
                             ({"weight_map": {"a": "/etc/passwd"}}, "of the same directory"),
                             ({}, "weight_map is missing"), ([], "must hold a JSON object")):
        index.write_text(json.dumps(content))
        line = refused_model()
        assert line.startswith("model.safetensors.index.json: ")
        assert message in line


@pytest.mark.parametrize(("change", "message"), [
    (lambda data: data["model"]["vocab"].update(zz=7),
     "tokenizer.json: tokens 'd' and 'zz' both have the number 7"),
    (lambda data: data["model"]["vocab"].update(zz=-1), "tokenizer.json: not a tokenizer"),
    (lambda data: data["model"]["vocab"].update(zz=1 << 31), "tokens do not fit"),
    (lambda data: data["model"].update(vocab={}, merges=[]), "the tokenizer fails on 'the'"),
    (lambda data: data["model"].update(merges=[["q", "q"]]), "tokenizer.json: not a tokenizer"),
    (lambda data: data.update(decoder=None), "do not give the same text back"),
    (lambda data: data.update(normalizer={"type": "Prepend", "prepend": "a"}),
     "outside the model's vocabulary"),
])
def test_a_tokenizer_that_cannot_be(refused_model, model, change, message):
    change_json(model / "tokenizer.json", change)
    assert message in refused_model()


def test_padding_and_truncation_of_a_tokenizer_do_not_count(oncycle, model):
    def change(data):
        data["padding"] = {"strategy": {"Fixed": 1 << 40}, "direction": "Right", "pad_id": 0,
                           "pad_to_multiple_of": None, "pad_type_id": 0, "pad_token": "<pad>"}
        data["truncation"] = {"direction": "Right", "max_length": 1, "stride": 0,
                              "strategy": "LongestFirst"}

    change_json(model / "tokenizer.json", change)
    code, output, _ = oncycle("run", "--model", model, "--engine", "emulator", "--tiles", 1,
                              "--context", 16, "--tokens", 1, "--prompt", "the bath")
    assert code == 0
    assert output.startswith("the bath")


@pytest.mark.parametrize(("arguments", "message"), [
    (("--tokens", "0"), "Tokens must be at least 1, not 0"),
    (("--tokens", "abc"), "argument --tokens: invalid int value: 'abc'"),
    (("--tokens", "100"), "the context has 16: ask for fewer or raise --context"),
    (("--context", "17"), "Context must be 1 to 16 positions, as the model has, not 17"),
    (("--context", "0"), "argument --context: must be a whole number of at least 1, not '0'"),
    (("--prompt", "the Cat"), "character 'C' at offset 4 is outside the model's vocabulary"),
    (("--tiles", "0"), "argument --tiles: must be a whole number of at least 1, not '0'"),
    (("--tiles", "5"), "Tiles must be 1 to 4, not 5"),
    (("--seed", str(1 << 31)), "argument --seed: must be in 1..2147483647"),
    (("--waves", "9"), "argument --waves: must be first:last cycle"),
    (("--waves", "9:3"), "argument --waves: must be first:last cycle"),
    (("--waves", "3:9"), "The emulator has no waves"),
    (("--turn", "the hat", "--tokens", "6"), "Turn 2 needs "),
    (("--turn", ""), "Turn 2 must have at least one token"),
    (("--turn", "the Cat"), "character 'C' at offset 4 is outside the model's vocabulary"),
    (("--turn", "the", "--waves", "3:9"), "Waves are of one run"),
    (("--prefill", "gpu"), "argument --prefill: invalid choice: 'gpu' (choose from"),
    (("--prefill", "host", "--tokens", "100"), "Turn 1 needs 10"),
    (("--context-limit", "0"), "argument --context-limit: must be a whole number of at least 1"),
    (("--nonsense",), "unrecognized arguments: --nonsense"),
])
def test_options_that_cannot_be(refusal, model, arguments, message):
    assert message in refusal("run", "--model", model, "--context", 16, "--engine", "emulator",
                              "--tokens", 2, "--prompt", "the", *arguments)


def test_an_empty_prompt_begins_a_text(oncycle, model):
    code, output, _ = oncycle("run", "--model", model, "--engine", "emulator", "--tiles", 1,
                              "--context", 16, "--tokens", 2, "--prompt", "")
    assert code == 0
    assert "2 new tokens" in output


def test_an_empty_prompt_without_a_begin_token(refusal, model):
    change_json(model / "config.json", lambda data: data.pop("bos_token_id"))
    assert "Prompt must have at least one token" in refusal(
        "run", "--model", model, "--engine", "emulator", "--prompt", "")


@pytest.mark.parametrize(("arguments", "message"), [
    (("check", "--tiles", "0"), "must be tile counts of 1 to 4"),
    (("check", "--tiles", "5"), "must be tile counts of 1 to 4"),
    (("check", "--tokens", "0"), "Tokens must be at least 1"),
    (("check", "--engine", "rtl"), "check runs the emulator, with or without RTL"),
    (("check", "--waves", "0:9"), "and writes no waves"),
    (("verilog", "--preset", "huge"), "invalid choice: 'huge' (choose from"),
    (("verilog", "--output", "/dev/null"), "/dev/null cannot be written (File exists): name"),
    (("hello", "--seed", "-1"), "must be a whole number of at least 1, not '-1'"),
    (("report", "none.npz"), "Program file none.npz does not exist"),
    (("report", "."), "Program . is not a file"),
    ((), "the following arguments are required: COMMAND"),
])
def test_other_commands(refusal, arguments, message):
    assert message in refusal(*arguments)


@pytest.mark.parametrize("missing", ["c++", "perl", "make"])
@pytest.mark.parametrize("command", [("hello",), ("run",), ("check",)])
def test_a_missing_tool_is_named_before_anything_else(oncycle, tmp_path, monkeypatch, missing,
                                                      command):
    for tool in {"c++", "perl", "make"} - {missing}:
        (tmp_path / tool).write_text("#!/bin/sh\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    find_verilator.cache_clear()
    try:
        code, _, errors = oncycle(*command)
    finally:
        find_verilator.cache_clear()
    package = {"c++": "g++"}.get(missing, missing)
    assert code == 2
    assert errors == f"oncycle {command[0]}: {missing} is missing and Verilator needs it: " \
                     f"install {package}\n"


def test_as_a_process(tmp_path):
    done = subprocess.run([sys.executable, "-m", "sim", "run", "--model", tmp_path / "none"],
                          cwd=ROOT, capture_output=True, text=True, check=False,
                          env=os.environ | {"ONCYCLE_VERILATOR": ""})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"oncycle run: {tmp_path}/none: no such directory\n"
