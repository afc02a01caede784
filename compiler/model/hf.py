"""Import of a Hugging Face model directory: config.json, safetensors, tokenizer.json.

A checkpoint is untrusted input: nothing is unpickled, every name, shape and size is checked
before it is used, and whatever is wrong ends in a :class:`ModelError` of one line. Only what
Gemma 4's dense text decoder needs is read (`Gemma4ForCausalLM`); neither torch nor transformers
is imported.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, deserialize

from compiler.model.config import ModelConfig, ModelError
from compiler.model.hf_config import get, parse_config
from compiler.model.tokenizer import Tokenizer
from compiler.model.weights import Weights, layer_shapes, layer_weights

#: Name in the checkpoint (after ``model.layers.N.``) of each field of LayerWeights.
LAYER_TENSORS = {
    "q": "self_attn.q_proj.weight",
    "k": "self_attn.k_proj.weight",
    "v": "self_attn.v_proj.weight",
    "o": "self_attn.o_proj.weight",
    "q_norm": "self_attn.q_norm.weight",
    "k_norm": "self_attn.k_norm.weight",
    "gate": "mlp.gate_proj.weight",
    "up": "mlp.up_proj.weight",
    "down": "mlp.down_proj.weight",
    "input_norm": "input_layernorm.weight",
    "post_attention_norm": "post_attention_layernorm.weight",
    "pre_ffn_norm": "pre_feedforward_layernorm.weight",
    "post_ffn_norm": "post_feedforward_layernorm.weight",
    "scalar": "layer_scalar",
}
EMBEDDING, NORM = "model.embed_tokens.weight", "model.norm.weight"

#: Bytes that a file may have beyond its tensors (header), and that config.json may have.
HEADER_LIMIT = 1 << 24
#: Bytes that tokenizer.json may have.
TOKENIZER_LIMIT = 1 << 28


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A model directory.

    Parameters
    ----------
    config : ModelConfig
    weights : Weights
    tokenizer : Tokenizer
    """

    config: ModelConfig
    weights: Weights
    tokenizer: Tokenizer


def load(directory):
    """Read a model directory.

    Parameters
    ----------
    directory : path

    Returns
    -------
    Checkpoint

    Raises
    ------
    ModelError
        The directory, one of its files, or a tensor is missing, damaged, or not of an
        architecture that can be compiled.
    """
    directory = Path(directory)
    config = load_config(directory)
    weights = load_weights(directory, config)
    return Checkpoint(config=config, weights=weights, tokenizer=load_tokenizer(directory, config))


def load_config(directory):
    """Read and check config.json alone.

    Parameters
    ----------
    directory : path

    Returns
    -------
    ModelConfig

    Raises
    ------
    ModelError
    """
    path = Path(directory) / "config.json"
    data = _read_json(path)
    try:
        return parse_config(data)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def load_weights(directory, config):
    """Read the tensors of a model as float32.

    Parameters
    ----------
    directory : path
    config : ModelConfig

    Returns
    -------
    Weights

    Raises
    ------
    ModelError
        A file is missing or damaged; a tensor is missing, unknown, of the wrong shape or type,
        or holds a value that is not finite.
    """
    expected = {EMBEDDING: (config.vocab, config.hidden), NORM: (config.hidden,)}
    for index, layer in enumerate(config.layers):
        for field, shape in layer_shapes(config, layer).items():
            expected[f"model.layers.{index}.{LAYER_TENSORS[field]}"] = shape
    tensors = {}
    limit = 4 * sum(int(np.prod(shape, dtype=object)) for shape in expected.values())
    for path in _tensor_files(Path(directory)):
        _read_tensors(path, expected, limit + HEADER_LIMIT, tensors)
    for name in expected:
        if name not in tensors:
            raise ModelError(f"{directory}: tensor {name} is missing")
    layers = tuple(
        layer_weights({field: tensors[f"model.layers.{index}.{LAYER_TENSORS[field]}"]
                       for field in layer_shapes(config, layer)})
        for index, layer in enumerate(config.layers)
    )
    return Weights(
        config=config, embedding=tensors[EMBEDDING], layers=layers, norm=tensors[NORM]
    )


def model_files(directory):
    """Paths of all files that `load` reads."""
    directory = Path(directory)
    return [directory / "config.json", *_tensor_files(directory), directory / "tokenizer.json"]


def _tensor_files(directory):
    """The safetensors files of a directory: one, or the shards that its index names."""
    single, index = directory / "model.safetensors", directory / "model.safetensors.index.json"
    if single.exists() or not index.exists():
        return [single]
    try:
        names = get(_read_json(index), "weight_map", dict).values()
    except ModelError as error:
        raise error if str(index) in str(error) else ModelError(f"{index}: {error}") from None
    if not all(isinstance(name, str) and name == Path(name).name for name in names):
        raise ModelError(f"{index}: weight_map must name files of the same directory")
    return [directory / name for name in sorted(set(names))]


def _read_tensors(path, expected, limit, tensors):
    """Add the tensors of one file to `tensors`, checked against `expected` (name to shape)."""
    size = _size(path)
    if size > limit:
        raise ModelError(f"{path}: {size} bytes, but a model of this config.json has {limit}")
    try:
        entries = deserialize(path.read_bytes())
    except SafetensorError as error:
        raise ModelError(f"{path}: truncated or not a safetensors file ({error})") from None
    for name, entry in entries:
        if name == "lm_head.weight":
            raise ModelError(f"{path}: lm_head.weight is present; the head must be tied")
        if name not in expected:
            raise ModelError(f"{path}: unknown tensor {name}")
        if tuple(entry["shape"]) != expected[name]:
            raise ModelError(
                f"{path}: tensor {name} has shape {entry['shape']}, must be {list(expected[name])}"
            )
        values = _to_float32(entry, f"{path}: tensor {name}")
        if not np.isfinite(values).all():
            raise ModelError(f"{path}: tensor {name} holds values that are not finite")
        tensors[name] = values


def _to_float32(entry, where):
    """Decode the bytes of one tensor."""
    data, shape = entry["data"], entry["shape"]
    match entry["dtype"]:
        case "F32":
            values = np.frombuffer(data, "<f4")
        case "F16":
            values = np.frombuffer(data, "<f2")
        case "BF16":
            values = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
        case other:
            raise ModelError(f"{where} must be F32, F16 or BF16, not {other}")
    return values.astype(np.float32).reshape(shape)


def load_tokenizer(directory, config):
    """Read tokenizer.json.

    Parameters
    ----------
    directory : path
    config : ModelConfig
        Its vocabulary must hold every token of the tokenizer.

    Returns
    -------
    Tokenizer

    Raises
    ------
    ModelError
    """
    path = Path(directory) / "tokenizer.json"
    if _size(path) > TOKENIZER_LIMIT:
        raise ModelError(f"{path}: larger than {TOKENIZER_LIMIT} bytes")
    try:
        tokenizer = Tokenizer.from_json(path.read_text(encoding="utf-8"), bos=config.bos)
    except (ModelError, UnicodeDecodeError) as error:
        raise ModelError(f"{path}: {error}") from None
    if tokenizer.size > config.vocab:
        raise ModelError(
            f"{path}: {tokenizer.size} tokens do not fit the model's vocabulary of {config.vocab}"
        )
    return tokenizer


def _size(path):
    """Bytes of a file that must be there."""
    if not path.parent.is_dir():
        raise ModelError(f"{path.parent}: no such directory")
    if not path.is_file():
        raise ModelError(f"{path}: no such file")
    return path.stat().st_size


def _read_json(path):
    """The object in a JSON file."""
    if _size(path) > HEADER_LIMIT:
        raise ModelError(f"{path}: larger than {HEADER_LIMIT} bytes")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(data, dict):
        raise ModelError(f"{path}: must hold a JSON object")
    return data
