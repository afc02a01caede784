"""``oncycle compile``: a model to a program file."""

import os
from pathlib import Path

from compiler.program import save
from sim.build.model import BUILD_ROOT
from sim.commands.options import add_batch, add_model, positive
from sim.compiling import MACHINE_TILES, model_program
from sim.errors import UsageError
from sim.progress import say
from sim.report.figures import instruction_memory, sram_words, step_cycles

__all__ = ["HELP", "add_arguments", "run"]

HELP = "compile a model and write its program"


def add_arguments(parser):
    """See `sim.cli`."""
    add_model(parser)
    add_batch(parser, "1")
    parser.add_argument("--tiles", type=positive, default=MACHINE_TILES,
                        help="tiles, tensor-parallel: 1, 2 or 4 (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE",
                        help="program file (default: build/MODEL-TILES.npz, with a batch "
                        "build/MODEL-TILES-batchN.npz)")


def run(options):
    """See `sim.cli`."""
    model = options.model.resolve()
    name = model.stem if model.is_file() else model.name
    batch = options.batch or 1
    several = "" if batch == 1 else f"-batch{batch}"
    output = options.output or BUILD_ROOT / f"{name}-{options.tiles}{several}.npz"
    if options.output is None:
        output.parent.mkdir(parents=True, exist_ok=True)
    _check_output(output)
    program = model_program(options.model, options.tiles, options.context, report=say,
                            calibration=options.calibration, batch=batch)
    try:
        save(program, output)
    except OSError as error:
        raise UsageError(f"{output} cannot be written ({error.strerror}): name another file "
                         "with -o") from None
    cycles = step_cycles(program.plan)
    memory, capacity = instruction_memory(program), program.system.tile.mem_words
    each = "a token" if batch == 1 else f"a step of {batch} tokens"
    print(f"{output}: {cycles:,} cycles {each} on {program.system.tiles} tiles, context "
          f"{options.context}; {sum(kind.words for kind in memory):,} instruction words, "
          f"{sum(kind.bytes for kind in memory):,} bytes; {int(sram_words(program).max()):,} of "
          f"{capacity:,} SRAM words in the fullest slice")
    if program.bounds:
        print(program.bounds.line(cycles))
    return 0


def _check_output(path):
    """Refuse a file that could not be written, before anything is compiled."""
    if path.is_dir():
        raise UsageError(f"{path} is a directory: name a file, for example -o {path}/program.npz")
    if path.exists() and not path.is_file():        # a device would be replaced
        raise UsageError(f"{path} is not a regular file: name another file with -o")
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent} is not a directory: make it, or name another file "
                         "with -o")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"{path.parent} cannot be written to: name another file with -o")
