"""Record logits of models from transformers: ``python -m tests.models.record``.

Needs the developer extra. The files let every test run compare our float32 reference with the
published implementation without installing it: the committed model, and a Llama of random weights
(`llama_of`), which has a tied or an untied head.
"""

import tempfile
from pathlib import Path

import numpy as np

from compiler.model.hf_config import parse_config
from compiler.model.weights import random_weights
from models.gemma4_mini import DIRECTORY
from tests.compiler.model.llama_files import LLAMA, write_hf

#: Positions of one sequence whose logits are kept: the first, around the sliding window, the last.
PLACES = (0, 1, 30, 31, 32, 33, 63, 64, 100, 127, 128, 200, 254, 255)
#: Of the random Llama.
LLAMA_PLACES = (0, 1, 12, 23)
LLAMA_TOKENS = [number * 97 % 288 for number in range(24)]
HEADS = {"tied": True, "untied": False}


def llama_of(directory, tied):
    """Write a Llama of random weights, with a rotation of another base than the default."""
    data = LLAMA | {"tie_word_embeddings": tied, "rope_theta": 500.0}
    write_hf(directory, random_weights(parse_config(data), seed=1), data)


def save(name, **arrays):
    """Write a file beside this one."""
    path = Path(__file__).with_name(name)
    np.savez_compressed(path, **arrays)
    print(f"{path}: {path.stat().st_size} bytes")


def main():
    """Write transformers.npz and llama.npz beside this file."""
    import torch
    from transformers import AutoTokenizer, Gemma4ForCausalLM, LlamaForCausalLM

    def logits_of(kind, directory, tokens):
        model = kind.from_pretrained(directory, dtype=torch.float32).eval()
        with torch.no_grad():
            return model(input_ids=torch.tensor([tokens])).logits[0].numpy()

    text = (DIRECTORY / "heldout.txt").read_text()
    tokens = AutoTokenizer.from_pretrained(DIRECTORY)(text[:2000]).input_ids[:256]
    save("transformers.npz", tokens=np.array(tokens, np.int32), places=np.array(PLACES),
         logits=logits_of(Gemma4ForCausalLM, DIRECTORY, tokens)[list(PLACES)])
    found = {}
    for name, tied in HEADS.items():
        with tempfile.TemporaryDirectory() as directory:
            llama_of(Path(directory), tied)
            found[name] = logits_of(LlamaForCausalLM, directory, LLAMA_TOKENS)[list(LLAMA_PLACES)]
    save("llama.npz", **found)


if __name__ == "__main__":
    main()
