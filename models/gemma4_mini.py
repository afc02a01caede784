"""gemma4-mini: Gemma 4 31B in miniature, a Hugging Face directory with float16 weights."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import decoders, processors

from compiler.model import hf
from compiler.model.hf_config import parse_config
from models import bpe
from models.recipe import Recipe

DIRECTORY = Path(__file__).parent / "gemma4-mini"

CONTEXT = 256
VOCAB = 512

#: Special tokens, in the order and with the numbers of Gemma's tokenizer.
SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>"]
PAD, EOS, BOS, UNK = range(4)

#: The tokenizer spells printable ASCII and the line feed; other characters become `<unk>`.
ALPHABET = ["\n", *map(chr, range(32, 127))]

#: config.json of the model: Gemma 4 31B's, with smaller numbers. The last two rows say the same
#: as per_layer_config in the words of other releases of transformers.
CONFIG = {
    "architectures": ["Gemma4ForCausalLM"],
    "model_type": "gemma4_text",
    "dtype": "float16",
    "vocab_size": VOCAB,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 6,
    "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 16,
    "sliding_window": 32,
    "attention_k_eq_v": True,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "hidden_activation": "gelu_pytorch_tanh",
    "rms_norm_eps": 1e-06,
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        "full_attention": {
            "rope_type": "proportional", "rope_theta": 1000000.0, "partial_rotary_factor": 0.25,
        },
    },
    "final_logit_softcapping": 30.0,
    "max_position_embeddings": CONTEXT,
    "hidden_size_per_layer_input": 0,
    "vocab_size_per_layer_input": VOCAB,
    "num_kv_shared_layers": 0,
    "enable_moe_block": False,
    "use_double_wide_mlp": False,
    "tie_word_embeddings": True,
    "use_bidirectional_attention": None,
    "use_cache": True,
    "initializer_range": 0.02,
    "pad_token_id": PAD,
    "eos_token_id": EOS,
    "bos_token_id": BOS,
    "per_layer_config": {"5": {"head_dim": 32, "num_key_value_heads": 2}},
    "global_head_dim": 32,
    "num_global_key_value_heads": 2,
}


def learn_tokenizer(texts, directory):
    """Write tokenizer.json and the tokenizer_config.json that transformers wants."""
    tokenizer = bpe.learn(texts, VOCAB, special=SPECIAL, unknown="<unk>", alphabet=ALPHABET)
    tokenizer.decoder = decoders.Fuse()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", BOS)]
    )
    compact = json.loads(tokenizer.to_str())
    (directory / "tokenizer.json").write_text(json.dumps(compact, ensure_ascii=True) + "\n")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "eos_token": "<eos>",
        "bos_token": "<bos>",
        "unk_token": "<unk>",
        "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    return hf.load_tokenizer(directory, parse_config(CONFIG))


def export(tensors, directory):
    """Write config.json and the weights, rounded to float16."""
    (directory / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    part = directory / "model.safetensors.part"
    save_file({name: value.astype(np.float16) for name, value in tensors.items()}, part,
              metadata={"format": "pt"})
    part.chmod(0o644)
    part.replace(directory / "model.safetensors")


RECIPE = Recipe(
    name="gemma4-mini",
    directory=DIRECTORY,
    config=parse_config(CONFIG),
    learn_tokenizer=learn_tokenizer,
    export=export,
    file=".",
    steps=3200,
    muon_rate=0.005,
    adam_rate=0.003,
)
