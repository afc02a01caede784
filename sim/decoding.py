"""Decoding text: from a model directory and a prompt to a loaded program, and back to tokens."""

import copy
import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compiler.decoder.program import compile_decoder
from compiler.decoder.tokens import FORCED_NONE
from compiler.model import hf
from compiler.program import Program, load, save
from compiler.quantise import calibration_sequences, quantise
from hdl.arch.config import all_to_all
from hdl.arch.presets import DEMO
from sim.build.model import BUILD_ROOT
from sim.errors import UsageError

__all__ = ["DEFAULT_MODEL", "MACHINE_TILES", "Text", "host_tokens", "machine", "prepare",
           "prompt_words", "quantised", "with_prompt", "written_vectors"]

ROOT = Path(__file__).parents[1]
DEFAULT_MODEL = ROOT / "models" / "gemma4-mini"
PROGRAMS = BUILD_ROOT / "programs"
#: Tiles of the machine that one build simulates; programs use the first 1, 2 or 4 of them.
MACHINE_TILES = 4


@dataclass(frozen=True)
class Text:
    """A prompt and what is needed to continue it.

    Parameters
    ----------
    program : Program
        Its forced tokens are the prompt's.
    checkpoint : compiler.model.hf.Checkpoint
    prompt : list of int
    steps : int
        Steps to run: the prompt's tokens and the new ones, but for the last.
    """

    program: Program
    checkpoint: hf.Checkpoint
    prompt: list
    steps: int


def machine():
    """The `SystemConfig` that ``make sim`` simulates."""
    return all_to_all(DEMO, MACHINE_TILES)


def prepare(*, prompt, tokens, tiles=MACHINE_TILES, directory=DEFAULT_MODEL, context=128,
            system=None, report=None):
    """Compile a model (or find its program from an earlier call) and set a prompt.

    Parameters
    ----------
    prompt : str
    tokens : int
        New tokens wanted.
    tiles : int
    directory : path
        A Hugging Face model directory.
    context : int
        Positions that the program has room for.
    system : SystemConfig, optional
        Machine whose first ``tiles`` tiles are used; `machine` if not given.
    report : callable, optional
        Called with one line before anything that takes seconds.

    Returns
    -------
    Text

    Raises
    ------
    UsageError
        When the text is longer than the context, or nothing is asked for.
    ModelError, CompileError
        When the model cannot be used.
    """
    system = system or machine()
    if not 1 <= tiles <= system.tiles:
        raise UsageError(f"Tiles must be 1 to {system.tiles}, not {tiles}")
    if tokens < 1:
        raise UsageError(f"Tokens must be at least 1, not {tokens}")
    checkpoint = hf.load(directory)
    numbers = checkpoint.tokenizer.encode(prompt)
    if not numbers:
        raise UsageError("Prompt must have at least one token: the model has no begin token")
    steps = len(numbers) + tokens - 1
    if steps > context:
        raise UsageError(f"{len(numbers)} prompt tokens and {tokens} new ones need {steps} steps, "
                         f"the context has {context}: ask for fewer or raise --context")
    program = _program(checkpoint, directory, system.restrict(tiles), context, report)
    return Text(with_prompt(program, numbers, steps), checkpoint, numbers, steps)


def quantised(checkpoint, directory, lanes):
    """`QuantisedModel` of a checkpoint of ``directory``, as programs compute it."""
    return quantise(checkpoint.weights, calibration_sequences(directory, checkpoint), lanes,
                    late_norms=True)


def _program(checkpoint, directory, system, context, report):
    """The program of a model, from the cache if nothing that made it has changed."""
    path = PROGRAMS / f"{_key(directory, system, context)}.npz"
    if path.exists():
        return load(path)
    if report:
        report(f"compiling {Path(directory).name} for {system.tiles} tiles, "
               f"context {context} ...")
    program = compile_decoder(system, quantised(checkpoint, directory, system.tile.lanes), context)
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    save(program, path)
    return program


def _key(directory, system, context):
    """Digest of everything a program is made from."""
    digest = hashlib.sha256(f"{system.digest} {context}".encode())
    files = [path for path in Path(directory).iterdir() if path.is_file()]
    for folder in ("compiler", "hdl/arch"):
        files += (ROOT / folder).rglob("*.py")
    for path in sorted(files):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def with_prompt(program, prompt, steps):
    """A copy of ``program`` that runs ``steps`` steps, the first of them with the tokens of
    ``prompt``."""
    binary = copy.copy(program.binary)
    binary.tiles = [copy.copy(tile) for tile in program.binary.tiles]
    binary.steps = steps
    for tile in binary.tiles:
        tile.sram = {name: dict(runs) for name, runs in tile.sram.items()}
    for number, name, address, content in prompt_words(program, prompt, len(prompt)):
        _overwrite(binary.tiles[number].sram[name], address, content, program.system.tile.lanes)
    return Program(program.system, program.plan, binary, program.symbols)


def prompt_words(program, prompt, steps):
    """What the host writes for a prompt: its tokens, and none from there to step ``steps - 1``.

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
        symbol = program.symbols[f"shared.forced tokens@{number}"]
        found += [(number, name, symbol.address, plane.tobytes())
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
