"""Small model directories, written without transformers, for tests to load and to damage."""

import json

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors

from compiler.model.hf import tensor_names

#: What a config.json of two layers, one of each kind, holds.
CONFIG = {
    "architectures": ["Gemma4ForCausalLM"],
    "model_type": "gemma4_text",
    "vocab_size": 40,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "layer_types": ["sliding_attention", "full_attention"],
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "per_layer_config": {"1": {"head_dim": 16, "num_key_value_heads": 1}},
    "sliding_window": 5,
    "attention_k_eq_v": True,
    "hidden_activation": "gelu_pytorch_tanh",
    "rms_norm_eps": 1e-6,
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        "full_attention": {
            "rope_type": "proportional", "rope_theta": 1000000.0, "partial_rotary_factor": 0.25,
        },
    },
    "final_logit_softcapping": 30.0,
    "max_position_embeddings": 16,
    "hidden_size_per_layer_input": 0,
    "num_kv_shared_layers": 0,
    "tie_word_embeddings": True,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
}


def tensors_of(weights):
    """dict of str to array: the tensors of a model under their names in a checkpoint."""
    tensors = {}
    for key, name in tensor_names(weights.config).items():
        index, _, field = key.partition(".")
        tensors[name] = getattr(weights.layers[int(index)] if field else weights, field or key)
    return tensors


def write_tensors(path, tensors, dtype="F32"):
    """Write a safetensors file of float32 arrays as F32, F16 or (lower halves cut off) BF16."""
    header, body = {}, b""
    for name, values in tensors.items():
        values = np.asarray(values, "<f4")
        if dtype == "BF16":
            data = (values.view("<u4") >> 16).astype("<u2").tobytes()
        else:
            data = values.astype({"F32": "<f4", "F16": "<f2"}[dtype]).tobytes()
        header[name] = {"dtype": dtype, "shape": values.shape,
                        "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def letters():
    """A tokenizer of 4 special tokens, the lower-case letters, the blank and two merges."""
    words = ["<pad>", "<eos>", "<bos>", "<unk>", *"abcdefghijklmnopqrstuvwxyz ", "th", "the"]
    model = models.BPE({word: i for i, word in enumerate(words)}, [("t", "h"), ("th", "e")],
                       unk_token="<unk>")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(" ?[a-z]+"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(words[:4])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", 2)])
    return tokenizer


def write(directory, weights, config=CONFIG, dtype="F32"):
    """Write a whole model directory."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config))
    write_tensors(directory / "model.safetensors", tensors_of(weights), dtype)
    (directory / "tokenizer.json").write_text(letters().to_str())
