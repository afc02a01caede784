"""A Hugging Face model directory: config.json, safetensors, tokenizer.json.

Nothing is unpickled, every name, shape and size is checked before it is used. Neither torch nor
transformers is imported.
"""

from pathlib import Path

import numpy as np
from safetensors import SafetensorError, deserialize

from compiler.model.config import ModelError
from compiler.model.fields import get
from compiler.model.files import HEADER_LIMIT, TOKENIZER_LIMIT, read_json, size_of
from compiler.model.hf_config import parse_config
from compiler.model.tokenizer import check_vocabulary
from compiler.model.tokenizer_library import LibraryTokenizer
from compiler.model.weights import model_shapes, model_weights

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
#: What is named otherwise where there is no norm behind the blocks: the norm behind the attention
#: is then the one in front of the gated network.
WITHOUT_POST_NORMS = {"pre_ffn_norm": LAYER_TENSORS["post_attention_norm"]}
MODEL_TENSORS = {"embedding": "model.embed_tokens.weight", "norm": "model.norm.weight",
                 "untied": "lm_head.weight"}


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
    data = read_json(path)
    try:
        return parse_config(data)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def tensor_names(config):
    """dict of str to str: name in the checkpoint by key of `model_shapes`."""
    fields = LAYER_TENSORS if config.post_norms else LAYER_TENSORS | WITHOUT_POST_NORMS
    names = {}
    for key in model_shapes(config):
        index, _, field = key.partition(".")
        names[key] = f"model.layers.{index}.{fields[field]}" if field else MODEL_TENSORS[key]
    return names


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
    names, shapes, head = tensor_names(config), model_shapes(config), MODEL_TENSORS["untied"]
    expected = {names[key]: shape for key, shape in shapes.items()}
    # Some writers keep the head of a tied model; it must then be the embedding.
    allowed = expected | {head: shapes["embedding"]}
    limit = 4 * sum(int(np.prod(shape, dtype=object)) for shape in allowed.values())
    tensors = {}
    for path in _tensor_files(Path(directory)):
        _read_tensors(path, allowed, limit + HEADER_LIMIT, tensors)
    for name in expected:
        if name not in tensors:
            untied = ": tie_word_embeddings is false, so there must be one" if name == head else ""
            raise ModelError(f"{directory}: tensor {name} is missing{untied}")
    if config.tied and head in tensors and \
            not np.array_equal(tensors[head], tensors[MODEL_TENSORS["embedding"]]):
        raise ModelError(f"{directory}: tensor {head} differs from the embedding, but "
                         "tie_word_embeddings is true")
    return model_weights(config, {key: tensors[name] for key, name in names.items()})


def files(directory):
    """Paths of all files that are read."""
    directory = Path(directory)
    return [directory / "config.json", *_tensor_files(directory), directory / "tokenizer.json"]


def _tensor_files(directory):
    """The safetensors files of a directory: one, or the shards that its index names."""
    single, index = directory / "model.safetensors", directory / "model.safetensors.index.json"
    if single.exists() or not index.exists():
        return [single]
    try:
        names = get(read_json(index), "weight_map", dict).values()
    except ModelError as error:
        raise error if str(index) in str(error) else ModelError(f"{index}: {error}") from None
    if not all(isinstance(name, str) and name == Path(name).name for name in names):
        raise ModelError(f"{index}: weight_map must name files of the same directory")
    return [directory / name for name in sorted(set(names))]


def _read_tensors(path, allowed, limit, tensors):
    """Add the tensors of one file to `tensors`, checked against `allowed` (name to shape)."""
    size = size_of(path)
    if size > limit:
        raise ModelError(f"{path}: {size} bytes, but a model of this config.json has {limit}")
    try:
        entries = deserialize(path.read_bytes())
    except SafetensorError as error:
        raise ModelError(f"{path}: truncated or not a safetensors file ({error})") from None
    for name, entry in entries:
        if name not in allowed:
            raise ModelError(f"{path}: unknown tensor {name}")
        if tuple(entry["shape"]) != allowed[name]:
            raise ModelError(
                f"{path}: tensor {name} has shape {entry['shape']}, must be {list(allowed[name])}"
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
    LibraryTokenizer

    Raises
    ------
    ModelError
    """
    path = Path(directory) / "tokenizer.json"
    size_of(path, TOKENIZER_LIMIT)
    try:
        tokenizer = LibraryTokenizer.from_json(path.read_text(encoding="utf-8"), bos=config.bos)
        check_vocabulary(tokenizer, config.vocab)
    except (ModelError, UnicodeDecodeError) as error:
        raise ModelError(f"{path}: {error}") from None
    return tokenizer
