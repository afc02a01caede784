"""Decoding text: from a checkpoint and a prompt to a loaded program, and back to tokens."""

import copy
from dataclasses import dataclass, replace

import numpy as np

from compiler.decoder.shared import of_sequence
from compiler.decoder.tokens import FORCED_NONE
from compiler.model.checkpoint import Checkpoint
from compiler.program import Program
from sim.compiling import (
    DEFAULT_MODEL,
    MACHINE_TILES,
    MAX_BATCH,
    load_checkpoint,
    machine,
    model_program,
)
from sim.errors import UsageError
from sim.rtl.fit import link_latencies

__all__ = ["Texts", "batch_of", "first_tokens", "host_tokens", "open_model", "prepare",
           "prompt_words", "with_prompt", "with_prompts", "written_vectors"]


@dataclass(frozen=True)
class Texts:
    """Prompts, one for each sequence, and what is needed to continue them.

    Parameters
    ----------
    program : Program
        Its forced tokens are those of the prompts.
    checkpoint : Checkpoint
    prompts : list of list of int
    tokens : int
        New tokens of each that are wanted.
    """

    program: Program
    checkpoint: Checkpoint
    prompts: list
    tokens: int

    @property
    def steps(self):
        """Steps to run: the tokens of the longest prompt and the new ones, but for the last."""
        return max(map(len, self.prompts)) + self.tokens - 1

    def new(self, host):
        """The wanted tokens by sequence, from what the host received of the first steps."""
        chosen, batch = host_tokens(host), len(self.prompts)
        return [chosen[number::batch][len(prompt) - 1:][:self.tokens]
                for number, prompt in enumerate(self.prompts)]

    def decoded(self, host):
        """The texts by sequence, from the same."""
        return [self.checkpoint.tokenizer.decode(prompt + new)
                for prompt, new in zip(self.prompts, self.new(host), strict=True)]


def prepare(*, prompts, tokens, batch=None, tiles=MACHINE_TILES, directory=DEFAULT_MODEL,
            context=128, system=None, program=None, report=None, calibration=None):
    """Compile a model (or find its program from an earlier call) and set prompts.

    Parameters
    ----------
    prompts : list of str
        One for each sequence, or one for all.
    tokens : int
        New tokens of each that are wanted.
    batch : int, optional
        Sequences; as many as the program has, or as there are prompts, if not given.
    tiles : int
    directory : path
        Of a checkpoint: a directory or a file, see `compiler.model.checkpoint.load`.
    context : int
        Positions that the program has room for.
    system : SystemConfig, optional
        Machine whose first ``tiles`` tiles are used; `machine` if not given.
    program : Program, optional
        What compiling the model gave before; ``tiles`` and ``context`` are then its own, and so
        must ``batch`` be.
    report : callable, optional
        Called with one line before anything that takes seconds.
    calibration : path, optional
        Calibration text; the model's own if not given.

    Returns
    -------
    Texts

    Raises
    ------
    UsageError
        When prompts and sequences do not match, the text is longer than the context, nothing is
        asked for, or the program is not that of such a model.
    ModelError, CompileError, BinaryError
        When the model, or the program, cannot be used.
    """
    batch = _sequences(prompts, batch, program)
    system = system or machine(batch)
    checkpoint, tiles, context = open_model(tokens, tiles, directory, context, system, program)
    numbers = [first_tokens(checkpoint, prompt) for prompt in prompts]
    texts = Texts(program, checkpoint, numbers * batch if len(prompts) == 1 else numbers, tokens)
    if texts.steps > context:
        raise UsageError(f"{max(map(len, numbers))} prompt tokens and {tokens} new ones need "
                         f"{texts.steps} steps, the context has {context}: ask for fewer or raise "
                         "--context")
    if program is None:
        program = model_program(directory, tiles, context, system, checkpoint, report,
                                calibration, batch=batch)
    return replace(texts, program=with_prompts(program, texts.prompts, texts.steps))


def batch_of(program):
    """Sequences that go through every step of a decoder."""
    batch = 1
    while f"context.{of_sequence('forced tokens', batch)}@0" in program.symbols:
        batch += 1
    return batch


def _sequences(prompts, batch, program):
    """How many there are; refuses what does not match."""
    if program is not None:
        there = batch_of(program)
        if batch not in (None, there):
            raise UsageError(f"Program is for {there} sequences, not {batch}: leave --batch out, "
                             "or compile it for as many")
        batch = there
    batch = batch or len(prompts)
    if len(prompts) not in (1, batch):
        raise UsageError(f"There are {len(prompts)} prompts for {batch} sequences: give one for "
                         "all, or one for each")
    if not 1 <= batch <= MAX_BATCH:
        raise UsageError(f"Sequences must be 1 to {MAX_BATCH}, not {batch}")
    return batch


def open_model(tokens, tiles, directory, context, system, program):
    """A checkpoint, and the tiles and the context of its ``program`` or those that are asked for.

    Parameters and errors as of `prepare`, but that ``system`` must be given.
    """
    if tokens < 1:
        raise UsageError(f"Tokens must be at least 1, not {tokens}")
    if program is None:
        return load_checkpoint(directory, tiles, system), tiles, context
    link_latencies(system, program.system)      # refuses a program of another machine
    tiles = program.system.tiles
    checkpoint = load_checkpoint(directory, tiles, system)
    return checkpoint, tiles, _context(program, checkpoint, directory)


def first_tokens(checkpoint, prompt):
    """Tokens of a text's beginning; raises UsageError where there is none."""
    numbers = checkpoint.tokenizer.encode(prompt)
    if not numbers:
        raise UsageError("Prompt must have at least one token: the model has no begin token")
    return numbers


def _context(program, checkpoint, directory):
    """Positions that ``program`` has room for; it must be a decoder of such a model."""
    lanes, symbols = program.system.tile.lanes, program.symbols
    for sequence in range(batch_of(program)):
        table = of_sequence("forced tokens", sequence)
        for number, tile in enumerate(program.binary.tiles):
            forced = symbols.get(f"context.{table}@{number}")
            if forced is None or not all(_covers(tile.sram.get(name, {}), forced, lanes)
                                         for name in forced.slices):
                raise UsageError(f"Program has no table for a prompt on tile {number}: run takes "
                                 "programs that `oncycle compile` made of a model")
    scales = symbols.get("shared.embedding scales@0")
    if scales is None or scales.words != checkpoint.config.vocab:
        words = "no" if scales is None else scales.words
        raise UsageError(f"Program is of a model with {words} tokens, {directory} has "
                         f"{checkpoint.config.vocab}: name its own model with --model")
    return symbols["context.forced tokens@0"].words


def _covers(runs, symbol, lanes):
    """Whether one of the ``runs`` of a slice holds all words of ``symbol``."""
    return any(at <= symbol.address and
               symbol.address + symbol.words <= at + len(content) // lanes
               for at, content in runs.items())


def with_prompt(program, prompt, steps):
    """A copy of ``program`` that runs ``steps`` steps, the first of them with the tokens of
    ``prompt``."""
    return with_prompts(program, [prompt], steps)


def with_prompts(program, prompts, steps):
    """The same for a program with a batch: a prompt for each sequence."""
    binary = copy.copy(program.binary)
    binary.tiles = [copy.copy(tile) for tile in program.binary.tiles]
    binary.steps = steps
    for tile in binary.tiles:
        tile.sram = {name: dict(runs) for name, runs in tile.sram.items()}
    for sequence, prompt in enumerate(prompts):
        for number, name, address, content in prompt_words(program, prompt, len(prompt),
                                                           sequence=sequence):
            _overwrite(binary.tiles[number].sram[name], address, content,
                       program.system.tile.lanes)
    return replace(program, binary=binary)


def prompt_words(program, prompt, steps, first=0, sequence=0):
    """What the host writes for a prompt: its tokens from step ``first`` on, and none from there to
    step ``first + steps - 1``.

    Returns
    -------
    list of (int, str, int, bytes)
        Tile, slice, address and whole words, by byte plane.
    """
    tokens = np.full((steps, program.system.tile.lanes), FORCED_NONE, "<f4")
    tokens[:len(prompt)] = np.asarray(prompt)[:, None]
    planes = tokens.view(np.uint8).reshape(*tokens.shape, 4).transpose(2, 0, 1)
    found = []
    for number in range(len(program.binary.tiles)):
        symbol = program.symbols[f"context.{of_sequence('forced tokens', sequence)}@{number}"]
        found += [(number, name, symbol.address + first, plane.tobytes())
                  for name, plane in zip(symbol.slices, planes, strict=True)]
    return found


def _overwrite(runs, address, content, lanes):
    """Replace words inside one of the ``runs`` of a slice."""
    start = max(at for at in runs if at <= address)
    offset = (address - start) * lanes
    run = runs[start]
    runs[start] = run[:offset] + content + run[offset + len(content):]


def host_tokens(table):
    """Tokens that tile 0 sent to the host, from its table of vectors (four planes a token)."""
    lane = np.ascontiguousarray(table["data"][table["tile"] == 0][:, 0])
    planes = lane[:len(lane) // 4 * 4].reshape(-1, 4)
    return [int(value) for value in planes.copy().view("<f4").reshape(-1)]


def written_vectors(program, writes, name):
    """Every value that an fp32 vector took in a run, put together from the tiles' parts.

    Parameters
    ----------
    program : Program
    writes : array of `hdl.arch.trace.write_record`
        Of the whole run, in order.
    name : str
        For example ``logits`` or ``scores``.

    Returns
    -------
    array of float32 (times, elements)
        Filled up with the lanes behind the last element.

    Raises
    ------
    ValueError
        When the tiles' words were not all written equally often.
    """
    slices = program.system.tile.slices("mem")
    parts = []
    for tile in range(program.system.tiles):
        symbol = program.symbols[f"shared.{name}@{tile}"]
        for word in range(symbol.address, symbol.address + symbol.words):
            planes = []
            for slice_ in symbol.slices:
                mine = (writes["tile"] == tile) & (writes["unit"] == slices.index(slice_)) & \
                    (writes["address"] == word)
                planes.append(writes["data"][mine])
            if len({len(plane) for plane in planes}) > 1:
                raise ValueError(f"Planes of {name} were written {[len(p) for p in planes]} times")
            parts.append(np.stack(planes, axis=-1).copy().view("<f4")[..., 0])
    if len({len(part) for part in parts}) > 1:
        raise ValueError(f"Words of {name} were written {[len(p) for p in parts]} times")
    return np.concatenate(parts, axis=1)
