"""A small Llama model in every format that is read; nothing here is taken from the importers."""

import json
import struct

import gguf
import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from tests.compiler.model.checkpoints import write_tensors

#: What config.json holds.  Rows are whole blocks of the quantised types of GGUF.
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 288,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "max_position_embeddings": 24,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
}

#: Pieces behind the three special ones and the 256 bytes, with their scores.
WORDS = {" ": -20, "a": -21, "c": -22, "d": -23, "e": -24, "h": -25, "n": -26, "t": -27,
         "th": -1, "the": -3, " t": -2, " th": -4, " the": -5, "at": -6, " c": -7, " cat": -8,
         "cat": -9, "ha": -10, "hat": -11, "\u00e9": -28}


def pieces():
    """The vocabulary: lists of bytes and of scores."""
    words = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *(b"<0x%02X>" % byte for byte in range(256))]
    scores = [0.0] * len(words) + [float(score) for score in WORDS.values()]
    return words + [word.encode() for word in WORDS], scores


def interleaved(rows, heads):
    """Rows of Q or K, ordered for pairs (i, i + half), in the order for pairs (2 i, 2 i + 1)."""
    size = len(rows) // heads
    order = [head * size + (place // 2 + (size // 2 if place % 2 else 0))
             for head in range(heads) for place in range(size)]
    return rows[order]


def named(weights, path):
    """A tensor of Weights by a path as "1.q", Q and K interleaved."""
    index, _, field = path.partition(".")
    if not field:
        return getattr(weights, path)
    values, layer = getattr(weights.layers[int(index)], field), weights.config.layers[int(index)]
    heads = {"q": layer.heads, "k": layer.kv_heads}.get(field)
    return interleaved(values, heads) if heads else values


#: Names that transformers gives the tensors of a layer.
HF_LAYER = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj",
            "o": "self_attn.o_proj", "gate": "mlp.gate_proj", "up": "mlp.up_proj",
            "down": "mlp.down_proj", "input_norm": "input_layernorm",
            "pre_ffn_norm": "post_attention_layernorm"}


def hf_tensors(weights):
    """dict of str to array: the tensors of a model under their names in a directory."""
    tensors = {"model.embed_tokens.weight": weights.embedding, "model.norm.weight": weights.norm}
    if weights.untied is not None:
        tensors["lm_head.weight"] = weights.untied
    for index, layer in enumerate(weights.layers):
        for field, name in HF_LAYER.items():
            tensors[f"model.layers.{index}.{name}.weight"] = getattr(layer, field)
    return tensors


def write_hf(directory, weights, data=LLAMA, dtype="F32"):
    """Write a Hugging Face directory; ``data`` is its config.json."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(data))
    (directory / "tokenizer.json").write_text(sentencepiece_json())
    write_tensors(directory / "model.safetensors", hf_tensors(weights), dtype)


def llama2c_bytes(weights):
    """The bytes of a llama2.c file."""
    config = weights.config
    layer, layers = config.layers[0], range(len(config.layers))
    head = struct.pack("<7i", config.hidden, config.ffn, len(layers), layer.heads, layer.kv_heads,
                       config.vocab if config.tied else -config.vocab, config.max_position)
    paths = ["embedding"]
    for field in ("input_norm", "q", "k", "v", "o", "pre_ffn_norm", "gate", "down", "up"):
        paths += [f"{index}.{field}" for index in layers]
    body = [named(weights, path) for path in (*paths, "norm")]
    body.append(np.full(config.max_position * layer.head_dim, np.nan))     # nobody reads it
    if not config.tied:
        body.append(weights.untied)
    return head + b"".join(np.asarray(values, "<f4").tobytes() for values in body)


def tokenizer_bytes(words=None, scores=None):
    """The bytes of a tokenizer.bin, filled up with pieces that no text has."""
    if words is None:
        words, scores = pieces()
        more = LLAMA["vocab_size"] - len(words)
        words, scores = words + [b"Q%d" % n for n in range(more)], scores + [-99.0] * more
    body = b"".join(struct.pack("<fi", score, len(word)) + word
                    for word, score in zip(words, scores, strict=True))
    return struct.pack("<i", max(map(len, words))) + body


def write_llama2c(path, weights):
    """Write a model file and its tokenizer.bin."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(llama2c_bytes(weights))
    path.with_name("tokenizer.bin").write_bytes(tokenizer_bytes())


GGUF_LAYER = {"input_norm": "attn_norm", "q": "attn_q", "k": "attn_k", "v": "attn_v",
              "o": "attn_output", "pre_ffn_norm": "ffn_norm", "gate": "ffn_gate",
              "up": "ffn_up", "down": "ffn_down"}


def gguf_tensors(weights):
    """dict of str to array: the tensors of a model under their names in a GGUF file."""
    tensors = {"token_embd.weight": weights.embedding, "output_norm.weight": weights.norm}
    if weights.untied is not None:
        tensors["output.weight"] = weights.untied
    for index in range(len(weights.layers)):
        for field, name in GGUF_LAYER.items():
            tensors[f"blk.{index}.{name}.weight"] = named(weights, f"{index}.{field}")
    return tensors


def gguf_metadata(config):
    """dict of str to (value, type): what a converter writes, with a tokenizer of pieces."""
    kinds = gguf.GGUFValueType
    layer = config.layers[0]
    words, scores = pieces()
    types = [2, 3, 3] + [6] * 256 + [1] * len(WORDS)
    return {
        "llama.context_length": (config.max_position, kinds.UINT32),
        "llama.embedding_length": (config.hidden, kinds.UINT32),
        "llama.block_count": (len(config.layers), kinds.UINT32),
        "llama.feed_forward_length": (config.ffn, kinds.UINT32),
        "llama.attention.head_count": (layer.heads, kinds.UINT32),
        "llama.attention.head_count_kv": (layer.kv_heads, kinds.UINT32),
        "llama.attention.layer_norm_rms_epsilon": (config.eps, kinds.FLOAT32),
        "llama.rope.freq_base": (layer.rope_theta, kinds.FLOAT32),
        "llama.rope.dimension_count": (layer.head_dim, kinds.UINT32),
        "llama.vocab_size": (config.vocab, kinds.UINT32),
        "tokenizer.ggml.model": ("llama", kinds.STRING),
        "tokenizer.ggml.tokens": ([word.decode().replace(" ", "\u2581") for word in words],
                                  kinds.ARRAY),
        "tokenizer.ggml.scores": (scores, kinds.ARRAY),
        "tokenizer.ggml.token_type": (types, kinds.ARRAY),
        "tokenizer.ggml.bos_token_id": (1, kinds.UINT32),
        "tokenizer.ggml.eos_token_id": (2, kinds.UINT32),
    }


def byte_level_metadata(pre="gpt-2"):
    """What stands in place of the pieces for a byte-level tokenizer; None: nothing."""
    kinds = gguf.GGUFValueType
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = ["t h", "th e", "\u0120 the", "1 2", "a t"]
    words = ["<|end|>", "<|start|>", *alphabet, *(merge.replace(" ", "") for merge in merges)]
    return {
        "tokenizer.ggml.model": ("gpt2", kinds.STRING),
        "tokenizer.ggml.pre": (pre, kinds.STRING),
        "tokenizer.ggml.tokens": (words, kinds.ARRAY),
        "tokenizer.ggml.token_type": ([3, 3] + [1] * (len(words) - 2), kinds.ARRAY),
        "tokenizer.ggml.merges": (merges, kinds.ARRAY),
        "tokenizer.ggml.scores": None,
        "tokenizer.ggml.bos_token_id": (1, kinds.UINT32),
        "tokenizer.ggml.eos_token_id": (0, kinds.UINT32),
    }


def write_gguf(path, weights, types=None, architecture="llama", tensors=None, **metadata):
    """Write a GGUF file with the package's writer.

    Parameters
    ----------
    path : pathlib.Path
    weights : Weights
    types : dict of str to str, optional
        Type by the end of a tensor's name; F32 is the rest.
    architecture : str
    tensors : dict, optional
        Instead of `gguf_tensors`.
    metadata
        Changes to `gguf_metadata`; None: without this key.
    """
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in (gguf_metadata(weights.config) | metadata).items():
        if value is not None:
            writer.add_key_value(key, *value)
    for name, values in (gguf_tensors(weights) if tensors is None else tensors).items():
        values = np.asarray(values, np.float32)
        kind = next((kind for end, kind in (types or {}).items() if name.endswith(end)), "F32")
        kind = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def sentencepiece_json(style="normalizer"):
    """A tokenizer.json in either style of Llama's, with the vocabulary of `pieces`.

    Its merges are those of WORDS, best score first; with "metaspace" the blank in front comes
    from the pre-tokenizer, else from the normalizer.
    """
    words = [word.decode().replace(" ", "\u2581") for word in pieces()[0]]
    words[1:3] = ["<s>", "</s>"]
    vocab = {word: number for number, word in enumerate(words)}
    merges = []
    for word in sorted(WORDS, key=WORDS.get, reverse=True):
        word = word.replace(" ", "\u2581")
        merges += [(word[:at], word[at:]) for at in range(1, len(word))
                   if word[:at] in vocab and word[at:] in vocab]
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True,
                                     byte_fallback=True))
    if style == "metaspace":
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    else:
        tokenizer.normalizer = normalizers.Sequence([
            normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
        decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer.to_str()
