"""Options that several subcommands share."""

import argparse
from pathlib import Path

from hdl.arch.presets import PRESETS
from sim.build.model import BUILD_ROOT
from sim.build.run import MAX_SEED
from sim.compiling import DEFAULT_MODEL, MAX_BATCH

__all__ = ["RUN_ROOT", "add_batch", "add_model", "add_preset", "add_program", "add_seed",
           "add_steps", "add_text", "positive", "prompts_of", "steps_of"]

#: What sequences begin with where no prompt is given.
_PROMPTS = ("Then said David", "And the king", "In the beginning God created", "Now it came",
            "Hear", "And Moses said unto the people", "Blessed is he", "The word of the LORD came")
#: Where simulations leave their files.
RUN_ROOT = BUILD_ROOT / "run"


def positive(text):
    """An integer of at least 1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return value


def _seed(text):
    """What both NumPy and Verilator take as a seed."""
    value = positive(text)
    if value > MAX_SEED:
        raise argparse.ArgumentTypeError(f"must be in 1..{MAX_SEED}, not {text!r}")
    return value


def _natural(text):
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, not {text!r}")
    return value


def add_program(parser):
    """A program file, as ``options.program``."""
    parser.add_argument("program", type=Path, help="program file (.npz)")


def add_seed(parser, what):
    """A seed of ``what``, as ``options.seed``."""
    parser.add_argument("--seed", type=_seed, default=1, help=f"of {what} (default: %(default)s)")


def add_preset(parser):
    """A tile configuration, as ``options.preset``."""
    parser.add_argument("--preset", choices=PRESETS, default="nano",
                        help="tile configuration (default: %(default)s)")


def add_text(parser):
    """Prompts (see `prompts_of`), how many tokens to add, sequences, and the model, as
    ``options.prompt`` and so on."""
    parser.add_argument("--prompt", action="append", metavar="TEXT",
                        help=f"text to continue (default: {_PROMPTS[0]!r}); with a batch one for "
                        "all sequences, or one for each")
    parser.add_argument("--tokens", type=int, default=24,
                        help="new tokens of each sequence (default: %(default)s)")
    add_batch(parser, "that of the program, or as many as there are prompts")
    add_model(parser)


def prompts_of(options):
    """The prompts of the options, by default one of our own for each sequence."""
    return options.prompt or list(_PROMPTS[:options.batch or 1])


def _batch(text):
    value = positive(text)
    if value > MAX_BATCH:
        raise argparse.ArgumentTypeError(f"must be 1 to {MAX_BATCH} sequences, not {text!r}")
    return value


def add_batch(parser, default):
    """Sequences that go through every step side by side, as ``options.batch``."""
    parser.add_argument("--batch", type=_batch, metavar="N",
                        help=f"independent sequences, 1 to {MAX_BATCH}, which go through every "
                        f"step side by side on a machine with larger memories (default: {default})")


def add_model(parser):
    """A model and the positions that its program has, as ``options.model``, ``.calibration`` and
    ``.context``."""
    parser.add_argument("--model", type=Path, default=DEFAULT_MODEL,
                        help="Hugging Face directory, .bin file of llama2.c or .gguf file "
                        "(default: models/gemma4-mini)")
    parser.add_argument("--calibration", type=Path, metavar="FILE",
                        help="text that activation ranges are taken from (default: "
                        "calibration.txt in the directory, or beside the file)")
    parser.add_argument("--context", type=positive, default=128,
                        help="positions that the program has room for (default: %(default)s)")


def add_steps(parser):
    """First step and steps of a run; see `steps_of`."""
    parser.add_argument("--steps", type=positive, help="steps to run (default: the program's)")
    parser.add_argument("--first-step", type=_natural, help="index of the first one")


def steps_of(options, binary):
    """(first step, steps) of the options, by default the binary's."""
    first = binary.first_step if options.first_step is None else options.first_step
    return first, binary.steps if options.steps is None else options.steps
