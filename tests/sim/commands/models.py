"""A small model directory that compiles for `demo` tiles in about a second."""

from compiler.model.hf_config import parse_config
from compiler.model.weights import random_weights
from tests.compiler.model.checkpoints import CONFIG, write

#: Two layers of heads of one and of two vectors.
SMALL = CONFIG | {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "head_dim": 16,
    "sliding_window": 8,
    "per_layer_config": {"1": {"head_dim": 32, "num_key_value_heads": 1}},
}


def save_model(directory, **changes):
    """Write `SMALL`, with ``changes`` to its config.json, and a calibration text."""
    config = SMALL | changes
    write(directory, random_weights(parse_config(config), 1), config)
    (directory / "calibration.txt").write_text("the bath that the cat had then the hat " * 3)
    return directory
