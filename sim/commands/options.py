"""Options that several subcommands share."""

import argparse
from pathlib import Path

from hdl.arch.presets import PRESETS
from sim.build.model import BUILD_ROOT

__all__ = ["RUN_ROOT", "add_preset", "add_program", "add_steps", "positive", "steps_of"]

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


def add_preset(parser):
    """A tile configuration, as ``options.preset``."""
    parser.add_argument("--preset", choices=PRESETS, default="nano",
                        help="tile configuration (default: %(default)s)")


def add_steps(parser):
    """First step and steps of a run; see `steps_of`."""
    parser.add_argument("--steps", type=positive, help="steps to run (default: the program's)")
    parser.add_argument("--first-step", type=_natural, help="index of the first one")


def steps_of(options, binary):
    """(first step, steps) of the options, by default the binary's."""
    first = binary.first_step if options.first_step is None else options.first_step
    return first, binary.steps if options.steps is None else options.steps
