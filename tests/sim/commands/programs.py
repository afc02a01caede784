"""Program files for the tests of the command line."""

import numpy as np

from compiler.lower.copy import copy_program
from compiler.lower.matvec import matvec_program
from compiler.program import from_plan, save
from hdl.arch.config import pair
from hdl.arch.presets import NANO

SYSTEM = pair(NANO, latency=5)


def save_matvec(rng, path):
    """A matrix-vector product on two nano tiles."""
    plan, memory = matvec_program(SYSTEM, rng.integers(-127, 128, (8, 8), dtype=np.int8),
                                  rng.integers(-32639, 32640, 8))
    return _save(plan, memory, path)


def save_copy(rng, path):
    """Copies between slices, in nested loops."""
    contents = rng.integers(0, 256, (2, len(NANO.slices("mem")), 6, NANO.lanes), dtype=np.uint8)
    plan, memory = copy_program(SYSTEM, contents, 3, 2)
    return _save(plan, memory, path)


def _save(plan, memory, path):
    program = from_plan(plan, memory)
    save(program, path)
    return program
