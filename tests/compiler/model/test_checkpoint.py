"""The one door: which reader a path goes to, and what is turned away."""

import zipfile

import numpy as np
import pytest

from compiler.model import checkpoint, fp32
from compiler.model.hf_config import parse_config
from compiler.model.weights import random_weights
from tests.compiler.model import checkpoints
from tests.compiler.model.llama_files import LLAMA, write_gguf, write_hf, write_llama2c


@pytest.fixture
def weights(seed):
    return random_weights(parse_config(LLAMA), seed)


def test_all_formats_give_the_same_model(tmp_path, weights, rng):
    write_hf(tmp_path / "directory", weights)
    write_llama2c(tmp_path / "a.bin", weights)
    write_gguf(tmp_path / "a.gguf", weights)
    tokens = rng.integers(0, 288, 24)
    expected = fp32.forward(weights, tokens)
    text = "the cat that\n hath \u20ac 9"
    spelled = None
    for name in ("directory", "a.bin", "a.gguf"):
        found = checkpoint.load(tmp_path / name)
        np.testing.assert_array_equal(fp32.forward(found.weights, tokens), expected)
        assert checkpoint.load_config(tmp_path / name).parameters == weights.config.parameters
        spelled = spelled or found.tokenizer.encode(text)
        assert found.tokenizer.encode(text) == spelled
        assert found.tokenizer.decode(spelled) == text
        assert all(path.is_file() for path in checkpoint.files(tmp_path / name))


def test_texts_are_in_the_directory_or_beside_the_file(tmp_path):
    assert checkpoint.folder(tmp_path) == tmp_path
    assert checkpoint.folder(tmp_path / "a.gguf") == tmp_path


def test_a_path_may_be_a_string(tmp_path, weights):
    write_gguf(tmp_path / "a.gguf", weights)
    assert checkpoint.load(str(tmp_path / "a.gguf")).config.vocab == 288


def pickled(protocol):
    return b"\x80" + bytes([protocol]) + b"cos\nsystem\n(S'true'\ntR."


@pytest.mark.parametrize(("name", "content"), [
    ("pytorch_model.bin", pickled(2)), ("model.bin", pickled(4)), ("model", pickled(5)),
    ("consolidated.00.pth", b"anything"), ("model.pt", b""), ("a.pkl", b"cos\n"), ("a.ckpt", b"x"),
])
def test_pickles_are_refused(tmp_path, name, content, failure):
    path = tmp_path / name
    path.write_bytes(content)
    for function in (checkpoint.load, checkpoint.load_config, checkpoint.files):
        message = failure(function, path)
        assert message.startswith(f"{path}: a pickle file or archive, which could run anything: ")
        assert "save it as safetensors" in message


def test_a_zip_of_pickles_is_refused(tmp_path, failure):
    path = tmp_path / "pytorch_model.bin"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled(2))
    assert "a pickle file or archive, which could run anything" in failure(checkpoint.load, path)


@pytest.mark.parametrize(("name", "message"), [
    ("model.safetensors", "name the directory, with config.json and tokenizer.json"),
    ("model.onnx", "must be a Hugging Face directory, a .bin file of llama2.c or a .gguf file"),
    ("model.gguf", "truncated or not a GGUF file"),
    ("model.bin", "truncated"),
])
def test_other_files_are_refused(tmp_path, name, message, failure):
    path = tmp_path / name
    path.write_bytes(b"")
    assert failure(checkpoint.load, path).startswith(f"{path}: {message}")


@pytest.mark.parametrize(("name", "message"), [
    ("none", "no such directory"), ("none.gguf", "no such file"), ("none.bin", "no such file")])
def test_what_is_not_there_is_named(tmp_path, name, message, failure):
    assert failure(checkpoint.load, tmp_path / name) == f"{tmp_path / name}: {message}"


def test_a_gemma_directory_goes_in_by_the_same_door(tmp_path, seed):
    weights = random_weights(parse_config(checkpoints.CONFIG), seed)
    checkpoints.write(tmp_path, weights)
    assert checkpoint.load(tmp_path).config == weights.config
