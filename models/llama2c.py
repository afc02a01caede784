"""Writes models in the format of llama2.c: version 0 of its ``.bin``, and its ``tokenizer.bin``.

All numbers are little-endian, tensors row by row in float32. A matrix is [outputs, inputs]. The
rotary pairs of that format are neighbours, (2 i, 2 i + 1) of each head; those of
:mod:`models.network` are (i, i + half), so the rows of the Q and K projections change places.
Format: https://github.com/karpathy/llama2.c, export.py, tokenizer.py and run.c.
"""

import struct

import numpy as np

#: Tokens 0, 1 and 2, then those of the 256 bytes, and what these are called in the file.
SPECIAL = ["<unk>", "\n<s>\n", "\n</s>\n"]
UNK, BOS, EOS = range(3)
BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]

#: Tensors of each layer in the order of the file, by their names in :mod:`models.network`.
LAYER_TENSORS = (
    "input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
    "self_attn.o_proj", "pre_feedforward_layernorm", "mlp.gate_proj", "mlp.down_proj",
    "mlp.up_proj",
)


def pair_neighbours(matrix, head_dim):
    """Reorder the rows of each head from pairs (i, i + half) to pairs (2 i, 2 i + 1)."""
    heads = matrix.reshape(-1, 2, head_dim // 2, matrix.shape[-1])
    return heads.swapaxes(1, 2).reshape(matrix.shape)


def rotary_tables(seq_len, head_dim, theta):
    """Cosine and sine of the angle of every pair at every position, each [seq_len, head_dim/2]."""
    frequency = theta ** (-np.arange(0, head_dim, 2) / head_dim)
    angle = np.arange(seq_len)[:, None] * frequency
    return np.cos(angle), np.sin(angle)


def model_bytes(tensors, config):
    """The content of a model file.

    Parameters
    ----------
    tensors : dict of str to np.ndarray
        By the names of :mod:`models.network`.
    config : ModelConfig
        A Llama with a tied head and layers of one shape.

    Returns
    -------
    bytes
    """
    layer = config.layers[0]
    header = struct.pack("<7i", config.hidden, config.ffn, len(config.layers), layer.heads,
                         layer.kv_heads, config.vocab, config.max_position)
    parts = [tensors["model.embed_tokens.weight"]]
    for name in LAYER_TENSORS:
        for index in range(len(config.layers)):
            tensor = tensors[f"model.layers.{index}.{name}.weight"]
            if name in ("self_attn.q_proj", "self_attn.k_proj"):
                tensor = pair_neighbours(tensor, layer.head_dim)
            parts.append(tensor)
    parts.append(tensors["model.norm.weight"])
    parts += rotary_tables(config.max_position, layer.head_dim, layer.rope_theta)
    return header + b"".join(part.astype("<f4").tobytes() for part in parts)


def tokenizer_bytes(pieces):
    """The content of a tokenizer file.

    Parameters
    ----------
    pieces : list of str
        Tokens from 259 on, best merge first; single characters last.

    Returns
    -------
    bytes
    """
    unscored = [(text, 0.0) for text in SPECIAL + BYTE_TOKENS]
    scored = [(text, -float(rank)) for rank, text in enumerate(pieces)]
    tokens = [(text.encode(), score) for text, score in unscored + scored]
    longest = max(len(text) for text, _ in tokens)
    return struct.pack("<i", longest) + b"".join(
        struct.pack("<fi", score, len(text)) + text for text, score in tokens
    )
