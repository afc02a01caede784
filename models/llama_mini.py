"""llama-mini: a small Llama in llama2.c's format.

Its FFN, vocabulary and heads are no multiples of 16 lanes.
"""

import json
from pathlib import Path

from compiler.model import llama2c as importer
from compiler.model.config import LayerConfig, ModelConfig
from models import bpe, llama2c
from models.recipe import Recipe

DIRECTORY = Path(__file__).parent / "llama-mini"
#: In it; the name of the tokenizer's file is the format's.
FILE = "model.bin"

VOCAB = 500
HEAD = 8

CONFIG = ModelConfig(
    vocab=VOCAB,
    hidden=64,
    ffn=172,
    layers=5 * (LayerConfig(
        heads=8, kv_heads=4, head_dim=HEAD, window=None, k_eq_v=False, rope_theta=10000.0,
        rope_pairs=HEAD // 2, qk_norm=False, v_norm=False, scale=HEAD**-0.5,
    ),),
    eps=1e-5,
    softcap=None,
    max_position=256,
    bos=llama2c.BOS,
    eos=llama2c.EOS,
    activation="silu",
    post_norms=False,
    layer_scalars=False,
    scaled_embedding=False,
)


def learn_tokenizer(texts, directory):
    """Write tokenizer.bin; the line feed is left to its byte token, as Llama's tokenizer does."""
    pieces = VOCAB - len(llama2c.SPECIAL) - len(llama2c.BYTE_TOKENS)
    learned = json.loads(bpe.learn(texts, pieces + 1).to_str())["model"]
    merges = ["".join(pair) for pair in learned["merges"]]
    characters = sorted(set(learned["vocab"]) - set(merges) - {"\n"})
    (directory / "tokenizer.bin").write_bytes(llama2c.tokenizer_bytes(merges + characters))
    return importer.load_tokenizer(directory / FILE, CONFIG)


def export(tensors, directory):
    """Write model.bin."""
    part = directory / f"{FILE}.part"
    part.write_bytes(llama2c.model_bytes(tensors, CONFIG))
    part.replace(directory / FILE)


RECIPE = Recipe(
    name="llama-mini",
    directory=DIRECTORY,
    config=CONFIG,
    learn_tokenizer=learn_tokenizer,
    export=export,
    file=FILE,
    steps=3200,
    muon_rate=0.01,
    adam_rate=0.005,
)
