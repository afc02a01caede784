"""Checkpoints of every format: the one door through which models come in.

A checkpoint is untrusted input: nothing is unpickled, every name, shape and size is checked
before it is used, and whatever is wrong ends in a :class:`ModelError` of one line.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from compiler.model import gguf_model, hf, llama2c
from compiler.model.config import ModelConfig, ModelError
from compiler.model.gguf_file import MAGIC
from compiler.model.tokenizer import Tokenizer
from compiler.model.weights import Weights

#: Beginnings and endings of files that hold pickled objects, or a zip archive of them.
PICKLE_MAGICS = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
PICKLE_SUFFIXES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt")


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A model with its tokenizer.

    Parameters
    ----------
    config : ModelConfig
        Its begin token is None where texts begin without one.
    weights : Weights
    tokenizer : Tokenizer
    """

    config: ModelConfig
    weights: Weights
    tokenizer: Tokenizer


def load(path):
    """Read a checkpoint.

    Parameters
    ----------
    path : path
        A Hugging Face directory, a .bin file of llama2.c, or a .gguf file.

    Returns
    -------
    Checkpoint

    Raises
    ------
    ModelError
        It, one of its files, or a tensor is missing, damaged, or not of an architecture that can
        be compiled.
    """
    reader = _reader(path)
    config = reader.load_config(path)
    tokenizer = reader.load_tokenizer(path, config)
    config = replace(config, bos=tokenizer.bos)
    return Checkpoint(config=config, weights=reader.load_weights(path, config),
                      tokenizer=tokenizer)


def load_config(path):
    """Read the architecture alone: no weights, so however large it is.

    Parameters, errors as of `load`; returns a ModelConfig.
    """
    return _reader(path).load_config(path)


def files(path):
    """Paths of all files that `load` reads."""
    return _reader(path).files(path)


def folder(path):
    """Where the texts of a checkpoint are: its directory, or that of its file."""
    path = Path(path)
    return path if path.is_dir() else path.parent


def _reader(path):
    """The module that reads a checkpoint, chosen by what it is."""
    path = Path(path)
    if path.is_dir():
        return hf
    if not path.exists():
        kind = "file" if path.suffix else "directory"
        raise ModelError(f"{path}: no such {kind}")
    if not path.is_file():
        raise ModelError(f"{path}: neither a directory nor a file")
    with path.open("rb") as file:
        head = file.read(8)
    if path.suffix in PICKLE_SUFFIXES or head.startswith(PICKLE_MAGICS):
        raise ModelError(f"{path}: a pickle file or archive, which could run anything: load it "
                         "where it was made, save it as safetensors, and name the directory")
    if path.suffix == ".safetensors":
        raise ModelError(f"{path}: name the directory, with config.json and tokenizer.json")
    if path.suffix == ".gguf" or head.startswith(MAGIC):
        return gguf_model
    if path.suffix == ".bin":
        return llama2c
    raise ModelError(f"{path}: must be a Hugging Face directory, a .bin file of llama2.c or a "
                     ".gguf file")
