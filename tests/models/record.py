"""Record logits of the committed model from transformers: ``python -m tests.models.record``.

Needs the developer extra. The file lets every test run compare our float32 reference with the
published implementation without installing it.
"""

from pathlib import Path

import numpy as np
import torch
from transformers import AutoTokenizer, Gemma4ForCausalLM

from models.gemma4_mini import DIRECTORY

#: Positions of one sequence whose logits are kept: the first, around the sliding window, the last.
PLACES = (0, 1, 30, 31, 32, 33, 63, 64, 100, 127, 128, 200, 254, 255)


def main():
    """Write transformers.npz beside this file."""
    text = (DIRECTORY / "heldout.txt").read_text()
    tokens = AutoTokenizer.from_pretrained(DIRECTORY)(text[:2000]).input_ids[:256]
    model = Gemma4ForCausalLM.from_pretrained(DIRECTORY, dtype=torch.float32).eval()
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([tokens])).logits[0].numpy()
    path = Path(__file__).with_name("transformers.npz")
    np.savez_compressed(path, tokens=np.array(tokens, np.int32), places=np.array(PLACES),
                        logits=logits[list(PLACES)])
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
