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
from .bounds import Bounds, RegionBound
from .errors import ProgramError
from .lower.layout import Symbol
from .plan import Issue, Plan, Region, Term

__all__ = ["Program", "from_plan", "load", "save"]

_FORMAT = 1
_TERM = [("issue", "<u4"), ("index", "i1"), ("level", "i1"), ("shift", "u1"), ("mask", "<u4"),
         ("step", "<i4")]        #: index -1: the predicate
_REGION = [("parent", "<i4"), ("start", "<i8"), ("period", "<i8"), ("count", "<i8")]   # -1: steps
_ISSUE = [("region", "<u4"), ("tile", "<u2"), ("queue", "<u2"), ("start", "<i8"),
          ("word", "u1", (24,)), ("index", "<u4", (2,))]


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
    """

    system: object
    plan: Plan
    binary: SystemBinary
    symbols: dict = field(default_factory=dict)
    bounds: Bounds | None = None


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
                        -1 if region.count is None else region.count))
        for issue in region.issues:
            number = len(issues)
            word = np.frombuffer(issue.word.to_bytes(24, "little"), np.uint8)
            index = (*issue.index, 0, 0)[:2]
            issues.append((where[id(region)], issue.tile, numbers[issue.queue], issue.start, word,
                           index))
            terms += [(number, i, *term) for i, some in enumerate(issue.terms) for term in some]
            if issue.predicate:
                terms.append((number, -1, *issue.predicate))
    return {"plan/regions": np.array(regions, _REGION), "plan/issues": np.array(issues, _ISSUE),
            "plan/terms": np.array(terms, _TERM)}


def load(path):
    """Read a program file.

    Raises
    ------
    ProgramError
        When the file is missing, damaged, or not a program file of this version.
    """
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return _program(arrays)
    except FileNotFoundError:
        raise ProgramError(f"Program file {path} does not exist") from None
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, KeyError, IndexError, TypeError,
            ValueError, OverflowError, NotImplementedError, AttributeError) as error:
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
    symbols = {name: Symbol(**{**values, "slices": tuple(values["slices"])}) for name, values in
               json.loads(arrays["symbols"].tobytes()).items()}
    binary = SystemBinary([TileBinary() for _ in range(system.tiles)])
    for name, array in arrays.items():
        part, *rest = name.split("/")
        if part not in ("words", "table", "sram"):
            continue
        tile = binary.tiles[int(rest[0])]
        if part == "words":
            tile.words[rest[1]] = [int.from_bytes(row.tobytes(), "little") for row in array]
        elif part == "table":
            tile.tables[rest[1]] = [tuple(int(value) for value in row) for row in array]
        else:
            tile.sram.setdefault(rest[1], {})[int(rest[2])] = array.tobytes()
    binary.check(system)
    bounds = None
    if "bounds" in arrays:
        regions, *rest = json.loads(arrays["bounds"].tobytes())
        bounds = Bounds([RegionBound(*region) for region in regions], *rest)
    return Program(system, _load_plan(arrays, system), binary, symbols, bounds)


def _load_plan(arrays, system):
    cfg = system.tile
    all_queues = queues(cfg)
    terms = {}
    for number, index, *term in arrays["plan/terms"].tolist():
        terms.setdefault(number, []).append((index, Term(*term)))
    regions = []
    for parent, start, period, count in arrays["plan/regions"].tolist():
        region = Region(start, period, None if count < 0 else count)
        if regions:
            regions[parent].children.append(region)
        regions.append(region)
    for number, row in enumerate(arrays["plan/issues"]):
        queue = all_queues[int(row["queue"])]
        word = int.from_bytes(row["word"].tobytes(), "little")
        insn = decode(cfg, queue.kind, word)
        count = len(isa.KINDS[queue.kind].indices)
        mine = terms.get(number, [])
        regions[int(row["region"])].issues.append(Issue(
            tile=int(row["tile"]), queue=queue.name, op=insn.op, start=int(row["start"]),
            fields=tuple(insn.fields.items()), index=tuple(int(i) for i in row["index"][:count]),
            terms=tuple(tuple(term for at, term in mine if at == i) for i in range(count)),
            predicate=next((term for at, term in mine if at == -1), None), word=word))
    return Plan(regions[0], system)
