"""A llama2.c model (https://github.com/karpathy/llama2.c): a .bin file and its tokenizer.bin.

The format of `export.py --version 0`: seven int32 (width, width of the gated network, layers,
query heads, KV heads, vocabulary, positions; a negative vocabulary: the head is not the embedding),
then float32 tensors without names. Nothing but its length tells whether such a file is whole.
"""

import struct
from pathlib import Path

import numpy as np

from compiler.model.config import ModelError
from compiler.model.files import TOKENIZER_LIMIT, size_of
from compiler.model.llama import ROPE_THETA, half_split, llama_config
from compiler.model.tokenizer import check_vocabulary
from compiler.model.tokenizer_pieces import PieceTokenizer, byte_piece
from compiler.model.weights import model_shapes, model_weights

HEADER = struct.Struct("<7i")
#: First four bytes of the later versions of the format.
LATER = struct.pack("<I", 0x616B3432)
#: What the file does not say.
EPS, UNKNOWN, BOS, EOS = 1e-5, 0, 1, 2
#: Number of the token of byte 0.
FIRST_BYTE = 3
TOKENIZER = "tokenizer.bin"

#: Tensors that the file has for all layers, one kind after the other, behind the embedding.
LAYER_FIELDS = ("input_norm", "q", "k", "v", "o", "pre_ffn_norm", "gate", "down", "up")


def load_config(path):
    """Read the header of a model file.

    Parameters
    ----------
    path : path

    Returns
    -------
    ModelConfig

    Raises
    ------
    ModelError
        It is not such a header, or not one of a file of that size.
    """
    path = Path(path)
    size = size_of(path)
    with path.open("rb") as file:
        head = file.read(HEADER.size)
    if head[:len(LATER)] == LATER:
        raise ModelError(f"{path}: llama2.c file of a later version: export it with --version 0")
    if len(head) < HEADER.size:
        raise ModelError(f"{path}: truncated: {size} bytes, the header of a llama2.c file has "
                         f"{HEADER.size}")
    hidden, ffn, layers, heads, kv_heads, vocab, positions = HEADER.unpack(head)
    try:
        config = llama_config(
            vocab=abs(vocab), hidden=hidden, ffn=ffn, layers=layers, heads=heads,
            kv_heads=kv_heads, head_dim=None, rope_theta=ROPE_THETA, eps=EPS,
            max_position=positions, tied=vocab > 0, bos=BOS, eos=EOS)
    except ModelError as error:
        raise ModelError(f"{path}: not a llama2.c file: {error}") from None
    expected = HEADER.size + 4 * (config.parameters + _rope_values(config))
    if size != expected:
        raise ModelError(f"{path}: {size} bytes, but a llama2.c file with this header has "
                         f"{expected}: truncated, or not such a file")
    return config


def _rope_values(config):
    """Values of the two rotary tables that the file holds; they are not read."""
    return config.max_position * config.layers[0].head_dim


def load_weights(path, config):
    """Read the tensors of a model file.

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
        A value is not finite.
    """
    shapes, tensors = model_shapes(config), {}
    with open(path, "rb") as file:
        file.seek(HEADER.size)

        def read(key):
            count = int(np.prod(shapes[key]))
            values = np.fromfile(file, "<f4", count).astype(np.float32, copy=False)
            if not np.isfinite(values).all():
                raise ModelError(f"{path}: tensor {key} holds values that are not finite")
            tensors[key] = values.reshape(shapes[key])

        read("embedding")
        for field in LAYER_FIELDS:
            for index in range(len(config.layers)):
                read(f"{index}.{field}")
        read("norm")
        file.seek(4 * _rope_values(config), 1)
        if not config.tied:
            read("untied")
    for index, layer in enumerate(config.layers):
        for field, heads in (("q", layer.heads), ("k", layer.kv_heads)):
            tensors[f"{index}.{field}"] = half_split(tensors[f"{index}.{field}"], heads)
    return model_weights(config, tensors)


def load_tokenizer(path, config):
    """Read the tokenizer.bin beside a model file.

    Parameters
    ----------
    path : path
        Of the model.
    config : ModelConfig
        The file has as many tokens as its vocabulary, but does not say so.

    Returns
    -------
    PieceTokenizer

    Raises
    ------
    ModelError
    """
    path = Path(path).parent / TOKENIZER
    size_of(path, TOKENIZER_LIMIT)
    try:
        return _parse_tokenizer(path.read_bytes(), config.vocab)
    except struct.error:
        raise ModelError(f"{path}: truncated, or not the tokenizer of a model with {config.vocab} "
                         "tokens") from None
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def _parse_tokenizer(data, vocab):
    """PieceTokenizer of the bytes of a file; struct.error where they end too early."""
    longest, = struct.unpack_from("<i", data)
    at, pieces, scores = 4, [], []
    while at < len(data) and len(pieces) <= vocab:
        score, length = struct.unpack_from("<fi", data, at)
        if not 0 <= length <= longest:
            raise ModelError(f"token {len(pieces)} has {length} bytes, the longest has {longest}")
        piece, = struct.unpack_from(f"{length}s", data, at + 8)
        at += 8 + length
        pieces.append(piece)
        scores.append(score)
    if len(pieces) < vocab:
        raise ModelError(f"{len(pieces)} tokens, but the model has {vocab}: truncated, or of "
                         "another model")
    tokenizer = PieceTokenizer(
        pieces, scores, special={UNKNOWN, BOS, EOS}, unknown=UNKNOWN, bos=BOS,
        byte_tokens={byte: byte + FIRST_BYTE for byte in range(256)
                     if pieces[byte + FIRST_BYTE:byte + FIRST_BYTE + 1] == [byte_piece(byte)]})
    check_vocabulary(tokenizer, vocab)
    return tokenizer


def files(path):
    """Paths of all files that are read."""
    return [Path(path), Path(path).parent / TOKENIZER]
