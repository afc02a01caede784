"""Options that several subcommands share."""

import argparse
from pathlib import Path

from hdl.arch.presets import PRESETS
from sim.build.model import BUILD_ROOT
from sim.build.run import MAX_SEED
from sim.compiling import DEFAULT_MODEL

__all__ = ["DEFAULT_PROMPT", "RUN_ROOT", "add_model", "add_preset", "add_program", "add_seed",
           "add_steps", "add_text", "positive", "steps_of"]

DEFAULT_PROMPT = "Then said David"
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
    """A prompt, how many tokens to add, and the model, as ``options.prompt`` and so on."""
    parser.add_argument("--prompt", default=DEFAULT_PROMPT,
                        help=f"text to continue (default: {DEFAULT_PROMPT!r})")
    parser.add_argument("--tokens", type=int, default=24, help="new tokens (default: %(default)s)")
    add_model(parser)


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
