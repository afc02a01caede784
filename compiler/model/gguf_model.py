"""A Llama model in a GGUF file."""

from dataclasses import replace
from pathlib import Path

from compiler.model.config import ModelError
from compiler.model.fields import demand, get
from compiler.model.gguf_file import GgufFile
from compiler.model.gguf_tokenizer import begins_texts, parse_tokenizer
from compiler.model.llama import ROPE_THETA, half_split, llama_config
from compiler.model.tokenizer import check_vocabulary
from compiler.model.weights import model_shapes, model_weights

ARCHITECTURE = "llama"
#: Metadata of the architecture (behind "llama.") that is read.
READ = {"block_count", "context_length", "embedding_length", "feed_forward_length", "vocab_size",
        "attention.head_count", "attention.head_count_kv", "attention.key_length",
        "attention.value_length", "attention.layer_norm_rms_epsilon", "rope.freq_base",
        "rope.dimension_count"}
#: Metadata that may be there, but with no other value.
DEMANDED = {"expert_count": 0, "expert_used_count": 0, "rope.scaling.type": "none",
            "attention.causal": True}

#: Name in the file (behind ``blk.N.``) of each field of LayerWeights.
LAYER_TENSORS = {
    "q": "attn_q.weight",
    "k": "attn_k.weight",
    "v": "attn_v.weight",
    "o": "attn_output.weight",
    "gate": "ffn_gate.weight",
    "up": "ffn_up.weight",
    "down": "ffn_down.weight",
    "input_norm": "attn_norm.weight",
    "pre_ffn_norm": "ffn_norm.weight",
}
MODEL_TENSORS = {"embedding": "token_embd.weight", "norm": "output_norm.weight",
                 "untied": "output.weight"}


def load_config(path):
    """Read the metadata of a file.

    Parameters
    ----------
    path : path

    Returns
    -------
    ModelConfig

    Raises
    ------
    ModelError
        It is damaged, of another architecture, or asks for what we do not run.
    """
    file = GgufFile(Path(path))
    try:
        return _parse_config(file)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def _parse_config(file):
    """ModelConfig of an open file."""
    data = file.metadata
    architecture = get(data, "general.architecture", str)
    if architecture != ARCHITECTURE:
        raise ModelError(f"architecture must be {ARCHITECTURE}, not {architecture}")
    prefix = f"{ARCHITECTURE}."
    for key in data:
        if key.startswith(prefix) and key.removeprefix(prefix) not in READ | set(DEMANDED):
            raise ModelError(f"{key} is set: it is not supported")
    demand(data, {prefix + key: value for key, value in DEMANDED.items()})

    def number(key, kind=int, default=None):
        value = get(data, prefix + key, kind, optional=default is not None)
        return default if value is None else value

    heads = number("attention.head_count")
    config = llama_config(
        vocab=_vocabulary(file),
        hidden=number("embedding_length"),
        ffn=number("feed_forward_length"),
        layers=number("block_count"),
        heads=heads,
        kv_heads=number("attention.head_count_kv", default=heads),
        head_dim=get(data, prefix + "attention.key_length", int, optional=True),
        rope_theta=number("rope.freq_base", float, ROPE_THETA),
        eps=number("attention.layer_norm_rms_epsilon", float),
        max_position=number("context_length"),
        tied=MODEL_TENSORS["untied"] not in file.entries,
        bos=get(data, "tokenizer.ggml.bos_token_id", int, optional=True),
        eos=get(data, "tokenizer.ggml.eos_token_id", int, optional=True),
        pad=get(data, "tokenizer.ggml.padding_token_id", int, optional=True),
    )
    head_dim = config.layers[0].head_dim
    demand(data, {prefix + key: head_dim for key in ("attention.value_length",
                                                     "rope.dimension_count")})
    return config if begins_texts(data) else replace(config, bos=None)


def _vocabulary(file):
    """Rows of the embedding; the metadata must not contradict."""
    name = MODEL_TENSORS["embedding"]
    if name not in file.entries:
        raise ModelError(f"tensor {name} is missing")
    shape = file.entries[name].shape
    if len(shape) != 2:
        raise ModelError(f"tensor {name} has shape {list(shape)}, must have two dimensions")
    demand(file.metadata, {f"{ARCHITECTURE}.vocab_size": shape[0]})
    return shape[0]


def load_weights(path, config):
    """Read the tensors of a file, dequantised.

    Parameters
    ----------
    path : path
    config : ModelConfig
        That of `load_config`.

    Returns
    -------
    Weights

    Raises
    ------
    ModelError
        A tensor is missing, unknown, of the wrong shape or type, not wholly in the file, or holds
        a value that is not finite.
    """
    path = Path(path)
    file = GgufFile(path)
    shapes = model_shapes(config)
    names = {key: _tensor_name(key) for key in shapes}
    for name in file.entries:
        if name not in names.values():
            raise ModelError(f"{path}: unknown tensor {name}")
    for key, shape in shapes.items():
        if names[key] not in file.entries:
            raise ModelError(f"{path}: tensor {names[key]} is missing")
        found = file.entries[names[key]].shape
        if found != shape:
            raise ModelError(f"{path}: tensor {names[key]} has shape {list(found)}, must be "
                             f"{list(shape)}")
    tensors = {key: file.values(name) for key, name in names.items()}
    for index, layer in enumerate(config.layers):
        for field, heads in (("q", layer.heads), ("k", layer.kv_heads)):
            tensors[f"{index}.{field}"] = half_split(tensors[f"{index}.{field}"], heads)
    return model_weights(config, tensors)


def _tensor_name(key):
    """Name in the file of a key of `model_shapes`."""
    index, _, field = key.partition(".")
    return f"blk.{index}.{LAYER_TENSORS[field]}" if field else MODEL_TENSORS[key]


def load_tokenizer(path, config):
    """The tokenizer in the metadata of a file.

    Parameters
    ----------
    path : path
    config : ModelConfig
        Its vocabulary must hold every token of the tokenizer.

    Returns
    -------
    Tokenizer

    Raises
    ------
    ModelError
    """
    file = GgufFile(Path(path))
    try:
        tokenizer = parse_tokenizer(file.metadata, config.bos)
        check_vocabulary(tokenizer, config.vocab)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    return tokenizer


def files(path):
    """Paths of all files that are read."""
    return [Path(path)]
