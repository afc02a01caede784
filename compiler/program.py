"""The program file: one ``.npz`` with binaries, SRAM images, plan, symbols, bounds; no pickle."""

import json
import zipfile
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from hdl.arch import isa
from hdl.arch.binary import BinaryError, SystemBinary, TileBinary
from hdl.arch.encoding import EncodingError, decode
from hdl.arch.manifest import system_from_json, system_to_json
from hdl.arch.queues import queue_index, queues

from .assemble import assemble
from .bounds import Bounds
from .errors import ProgramError
from .plan import Issue, Plan, Region, Term
from .program_check import (
    ISSUE,
    REGION,
    STEPS,
    TERM,
    bounds_from,
    check_plan_arrays,
    rows_of,
    symbols_from,
)

__all__ = ["Program", "from_plan", "load", "save"]

_FORMAT = 1
#: Bytes that the arrays of a file may have when unpacked.
_MOST_BYTES = 1 << 30


@dataclass
class Program:
    """What the compiler makes.

    Parameters
    ----------
    system : SystemConfig
        Tiles and links it needs.
    plan : Plan
        With the words filled in.
    binary : SystemBinary
        Words, tables, SRAM images.
    symbols : dict of str to Symbol
        Where named data lies.
    bounds : Bounds or None
        What its cycles are measured against, where that was asked for.
    shards : tuple of int
        Of a decoder: in how many shares tiles have the positions of each layer, which orders sums.
    """

    system: object
    plan: Plan
    binary: SystemBinary
    symbols: dict = field(default_factory=dict)
    bounds: Bounds | None = None
    shards: tuple = ()


def from_plan(plan, memory):
    """Assemble ``plan`` and add the contents and names of ``memory`` (`lower.layout.Memory`).

    Raises
    ------
    AssemblyError
        When a queue cannot hold its words.
    """
    binary, plan = assemble(plan)
    memory.fill(binary)
    return Program(plan.system, plan, binary, memory.symbols)


def _text(value):
    return np.frombuffer(value.encode(), np.uint8)


def save(program, path):
    """Write ``program`` to ``path``; nothing is left behind when it fails."""
    path = Path(path)
    arrays = {"system": _text(system_to_json(program.system)),
              "header": _text(json.dumps({"format": _FORMAT, "system": program.system.digest})),
              "symbols": _text(json.dumps({name: asdict(symbol) for name, symbol
                                           in program.symbols.items()}))}
    if program.bounds:
        arrays["bounds"] = _text(json.dumps(program.bounds))
    if program.shards:
        arrays["shards"] = np.array(program.shards, np.uint32)
    cfg = program.system.tile
    kinds = {queue.name: queue.kind for queue in queues(cfg)}
    for number, tile in enumerate(program.binary.tiles):
        for name, words in tile.words.items():
            size = isa.word_bytes(cfg, kinds[name])
            raw = b"".join(word.to_bytes(size, "little") for word in words)
            arrays[f"words/{number}/{name}"] = np.frombuffer(raw, np.uint8).reshape(-1, size)
            arrays[f"table/{number}/{name}"] = np.array(tile.tables[name], np.int64)
        for name, runs in tile.sram.items():
            for address, content in runs.items():
                arrays[f"sram/{number}/{name}/{address}"] = \
                    np.frombuffer(content, np.uint8).reshape(-1, cfg.lanes)
    arrays |= _plan_arrays(program.plan)
    partial = path.with_name(path.name + ".partial")
    try:
        with open(partial, "wb") as file:
            np.savez_compressed(file, **arrays)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _plan_arrays(plan):
    numbers = queue_index(plan.system.tile)
    regions, issues, terms = [], [], []
    where = {}
    for region, _, chain in plan.root.walk():
        where[id(region)] = len(regions)
        parent = where[id(chain[-2])] if len(chain) > 1 else -1
        regions.append((parent, region.start, region.period,
                        STEPS if region.count is None else region.count))
        for issue in region.issues:
            number = len(issues)
            word = np.frombuffer(issue.word.to_bytes(24, "little"), np.uint8)
            index = (*issue.index, 0, 0)[:2]
            issues.append((where[id(region)], issue.tile, numbers[issue.queue], issue.start, word,
                           index))
            terms += [(number, i, *term) for i, some in enumerate(issue.terms) for term in some]
            if issue.predicate:
                terms.append((number, -1, *issue.predicate))
    return {"plan/regions": np.array(regions, REGION), "plan/issues": np.array(issues, ISSUE),
            "plan/terms": np.array(terms, TERM)}


def load(path):
    """Read a program file.

    Raises
    ------
    ProgramError
        When the file is missing, damaged, or not a program file of this version.
    """
    path = Path(path)
    if not path.exists():
        raise ProgramError(f"Program file {path} does not exist")
    if not path.is_file():
        raise ProgramError(f"Program {path} is not a file")
    try:
        with zipfile.ZipFile(path) as file:
            size = sum(member.file_size for member in file.infolist())
            if size > _MOST_BYTES:
                raise ProgramError(f"it would unpack to {size} bytes")
        with np.load(path, allow_pickle=False) as file:
            return _program({name: file[name] for name in file.files})
    except PermissionError as error:
        raise ProgramError(f"Cannot read program {path}: {error.strerror}") from None
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, KeyError, IndexError, TypeError,
            ValueError, OverflowError, NotImplementedError, AttributeError, MemoryError,
            RecursionError) as error:
        reason = str(error) if isinstance(error, BinaryError | ProgramError | EncodingError) else \
            "it is damaged or not a program file"
        raise ProgramError(f"Cannot read program {path}: {reason}; compile it again") from None


def _program(arrays):
    header = json.loads(arrays["header"].tobytes())
    if header["format"] != _FORMAT:
        raise ProgramError(f"format {header['format']} is not {_FORMAT}")
    system = system_from_json(arrays["system"].tobytes())
    if system.digest != header["system"]:
        raise ProgramError("its machine description does not match its digest")
    symbols = symbols_from(json.loads(arrays["symbols"].tobytes()), system)
    binary = SystemBinary([TileBinary() for _ in range(system.tiles)])
    for name in arrays:
        part, *rest = name.split("/")
        if part in ("words", "table", "sram"):
            if not (rest[0].isdecimal() and int(rest[0]) < system.tiles):
                raise ProgramError(f"its array {name} is of a tile it lacks")
            _load_part(arrays, name, binary.tiles[int(rest[0])], system.tile.lanes)
    binary.check(system)
    bounds = bounds_from(json.loads(arrays["bounds"].tobytes())) if "bounds" in arrays else None
    shards = rows_of(arrays, "shards", np.uint32).tolist() if "shards" in arrays else ()
    return Program(system, _load_plan(arrays, system), binary, symbols, bounds, tuple(shards))


def _load_part(arrays, name, tile, lanes):
    """Put an array of words, of table entries or of SRAM contents into ``tile``."""
    part, _, place, *address = name.split("/")
    if part == "words":
        words = rows_of(arrays, name, np.uint8, arrays[name].shape[-1])
        tile.words[place] = [int.from_bytes(row.tobytes(), "little") for row in words]
    elif part == "table":
        tile.tables[place] = [tuple(row) for row in rows_of(arrays, name, np.int64, 3).tolist()]
    else:
        contents = rows_of(arrays, name, np.uint8, lanes).tobytes()
        tile.sram.setdefault(place, {})[int(*address)] = contents


def _load_plan(arrays, system):
    cfg = system.tile
    all_queues = queues(cfg)
    tables = [rows_of(arrays, f"plan/{name}", dtype) for name, dtype in
              (("regions", REGION), ("issues", ISSUE), ("terms", TERM))]
    check_plan_arrays(*tables, system)
    terms = {}
    for number, index, *term in tables[2].tolist():
        terms.setdefault(number, []).append((index, Term(*term)))
    regions = []
    for parent, start, period, count in tables[0].tolist():
        region = Region(start, period, None if count == STEPS else count)
        if regions:
            regions[parent].children.append(region)
        regions.append(region)
    decoded = {}
    for number, (at, tile, queue, start, raw, index) in enumerate(tables[1].tolist()):
        queue, word = all_queues[queue], int.from_bytes(raw, "little")
        if (queue.kind, word) not in decoded:
            decoded[queue.kind, word] = _unit_insn(cfg, queue.kind, word)
        insn, fields = decoded[queue.kind, word]
        count = len(isa.KINDS[queue.kind].indices)
        mine = terms.get(number, [])
        regions[at].issues.append(Issue(
            tile=tile, queue=queue.name, op=insn.op, start=start, fields=fields,
            index=tuple(index[:count]),
            terms=tuple(tuple(term for i, term in mine if i == which) for which in range(count)),
            predicate=next((term for i, term in mine if i == -1), None), word=word))
    return Plan(regions[0], system)


def _unit_insn(cfg, kind, word):
    """A planned word as `Insn` and its fields as a tuple."""
    insn = decode(cfg, kind, word)
    if not any(op.name == insn.op for op in isa.KINDS[kind].formats):
        raise ProgramError(f"its plan issues a {insn.op}")
    return insn, tuple(insn.fields.items())
