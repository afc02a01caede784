"""Compiling models for the machine that `make sim` simulates, and keeping what came of it."""

import hashlib
from dataclasses import replace
from pathlib import Path

from compiler.decoder.program import compile_decoder
from compiler.errors import ProgramError
from compiler.model import checkpoint as checkpoints
from compiler.model.config import ModelError
from compiler.program import load, save
from compiler.quantise import calibration_sequences, quantise
from compiler.quantise.calibrate import calibration_text
from hdl.arch.config import all_to_all
from hdl.arch.presets import DEMO
from sim.build.model import BUILD_ROOT
from sim.errors import UsageError, one_line
from sim.progress import Stages

__all__ = ["DEFAULT_MODEL", "MACHINE_TILES", "MAX_BATCH", "load_checkpoint", "machine",
           "model_program", "quantised"]

ROOT = Path(__file__).parents[1]
DEFAULT_MODEL = ROOT / "models" / "gemma4-mini"
PROGRAMS = BUILD_ROOT / "programs"
#: Tiles of the machine that one build simulates; programs use the first 1, 2 or 4 of them.
MACHINE_TILES = 4
#: Sequences that the larger machine has room for.
MAX_BATCH = 8


def machine(batch=1):
    """The `SystemConfig` that ``make sim`` simulates with so many sequences: one for a single
    sequence, and one whose memories, accumulators and activation buffers do for `MAX_BATCH`."""
    tile = DEMO if batch == 1 else replace(DEMO, accumulators=128, activations=256,
                                           icu_words=1 << 15, mem_words=1 << 15)
    return all_to_all(tile, MACHINE_TILES)


def load_checkpoint(path, tiles, system):
    """Read a checkpoint; a model that can never fit is refused before its weights are read.

    Parameters
    ----------
    path : path
        As of `compiler.model.checkpoint.load`.
    tiles : int
        How many of ``system`` are used.
    system : SystemConfig

    Returns
    -------
    compiler.model.checkpoint.Checkpoint

    Raises
    ------
    UsageError
        When the machine has no such number of tiles, or not the memory for the weights.
    ModelError
        When the model cannot be used.
    """
    if not 1 <= tiles <= system.tiles:
        raise UsageError(f"Tiles must be 1 to {system.tiles}, not {tiles}")
    cfg = system.tile
    capacity = tiles * len(cfg.slices("mem")) * cfg.mem_words * cfg.lanes
    parameters = checkpoints.load_config(path).parameters
    if parameters > capacity:
        raise UsageError(f"Model {path} needs {parameters:,} bytes of SRAM for its parameters, "
                         f"there are {capacity:,} (tiles: {tiles})")
    return checkpoints.load(path)


def model_program(directory, tiles, context, system=None, checkpoint=None, report=None,
                  calibration=None, shards=None, batch=1):
    """The program of a model, from the cache if nothing that made it has changed.

    Parameters
    ----------
    directory, tiles, context, system, report, calibration
        As of `sim.decoding.prepare`.
    checkpoint : compiler.model.checkpoint.Checkpoint, optional
        Of ``directory``, where it has been read.
    shards, batch
        As of `compiler.decoder.program.compile_decoder`.

    Returns
    -------
    Program

    Raises
    ------
    UsageError
        When the machine has no such number of tiles.
    ModelError, CompileError
        When the model cannot be used.
    """
    system = system or machine(batch)
    checkpoint = checkpoint or load_checkpoint(directory, tiles, system)
    system = system.restrict(tiles)
    calibration_sequences(directory, checkpoint, calibration)       # refuses a text that is none
    path = PROGRAMS / f"{_key(directory, system, context, calibration, shards, batch)}.npz"
    if path.exists():
        try:
            return load(path)
        except ProgramError:        # damaged: made anew below
            pass
    if report:
        sequences = "" if batch == 1 else f", {batch} sequences"
        report(f"compiling {Path(directory).name} for {system.tiles} tiles, "
               f"context {context}{sequences} ...")
    stages = Stages(report or (lambda line: None))
    model = quantised(checkpoint, directory, system.tile.lanes, calibration)
    program = compile_decoder(system, model, context, bounds=True, shards=shards, batch=batch,
                              report=stages)
    stages.done("compiled")
    try:
        PROGRAMS.mkdir(parents=True, exist_ok=True)
        save(program, path)
    except OSError as error:        # it only has to be compiled again next time
        if report:
            report(f"the program is not kept: {one_line(error)}")
    return program


def _key(directory, system, context, calibration, shards, batch):
    """Digest of everything a program is made from."""
    digest = hashlib.sha256(f"{system.digest} {context} {shards} {batch}".encode())
    files = [*checkpoints.files(directory), calibration_text(directory, calibration)]
    for folder in ("compiler", "hdl/arch"):
        files += (ROOT / folder).rglob("*.py")
    for path in sorted(files):
        digest.update(path.name.encode())
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def quantised(checkpoint, directory, lanes, calibration=None):
    """`QuantisedModel` of a checkpoint of ``directory``, as programs compute it."""
    sequences = calibration_sequences(directory, checkpoint, calibration)
    try:
        return quantise(checkpoint.weights, sequences, lanes, late_norms=None)
    except ModelError as error:
        raise ModelError(f"{directory}: {error}") from None
