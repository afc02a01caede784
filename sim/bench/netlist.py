"""Mutations of the netlist of a tile: all in one build, chosen by an input.

The tile is flattened into cells of Yosys' internal library; a mutation changes one bit of one input
of one cell, where the input ``mutant`` has its number: inverts it, or holds it at 0 or 1.  Number 0
changes nothing.
"""

import re
from dataclasses import dataclass

from amaranth.back.verilog import find_yosys

from hdl.emit import Emitter
from hdl.system import TOP as SYSTEM
from hdl.tile import Tile
from sim.bench.builds import drop_older
from sim.bench.registers import recorded
from sim.build import build_model
from sim.rtl.build import MAX_LATENCY
from sim.rtl.emitted import emitted
from sim.rtl.top import TOP, top_verilog

__all__ = ["MODES", "Mutation", "build_mutated", "flat_tile", "mutate"]

#: What becomes of the bit.
MODES = ("inverted", "held at 0", "held at 1")
#: Name of the tile's module.
_TILE = "tile"
#: Inputs that may be changed, and the parameter with their width.
_INPUTS = {"A": "A_WIDTH", "B": "B_WIDTH", "S": "S_WIDTH", "D": "WIDTH"}
#: What a cell drives.
_OUTPUTS = ("Y", "Q", "RD_DATA")
#: Cells that are no logic, or have inputs in a form of their own.
_SKIPPED = ("$mem_v2", "$scopeinfo", "$meminit_v2")

_CELL = re.compile(r"^  cell (\S+) (\S+)\n((?:    .*\n)*)  end\n", re.M)
_CONNECT = re.compile(r"^  connect (\{[^}]*\}|\S+(?: \[[\d:]+\])?) (.*)$", re.M)
_CONSTANT = re.compile(r"\d+'[01]+")
_NAME = re.compile(r"[\\$][^\s\[\]{}]+")
_INIT = re.compile(r"^ *attribute \\init .*\n", re.M)


@dataclass(frozen=True)
class Mutation:
    """One bit of a netlist: ``cell`` and ``port``, and what becomes of ``bit``; ``unit`` is the
    part of the tile that the cell belongs to."""

    number: int
    unit: str
    cell: str
    port: str
    bit: int
    mode: str

    def __str__(self):
        return f"{self.cell}.{self.port}[{self.bit}] {self.mode}"


def flat_tile(system):
    """RTLIL of the flattened tile of ``system``: one module, without initial values."""
    emitter = Emitter()
    emitter.convert(_TILE, Tile(system.tile, trace=True))
    units = [_INIT.sub("", unit) for unit in emitter.rtlil.values()]
    return _yosys("read_rtlil <<end_of_rtlil", *units, "end_of_rtlil", "proc", "memory_collect",
                  f"flatten {_TILE}", f"select {_TILE}", "write_rtlil -selected")


def _yosys(*script):
    tool = find_yosys(lambda version: version >= (0, 40))
    return tool.run(["-q", "-"], "\n".join(script), ignore_warnings=True)


def _places(rtlil):
    """By unit: every (start of the connection, its end, cell, port, width)."""
    units, used = {}, _used(rtlil)
    for found in _CELL.finditer(rtlil):
        kind, name, body = found.groups()
        if kind in _SKIPPED or name not in used:
            continue
        parameters = {key: value for key, value
                      in re.findall(r"parameter (?:signed )?\\(\S+) (\d+)$", body, re.M)}
        unit = _unit(name)
        for port, parameter in _INPUTS.items():
            connection = re.search(rf"^    connect \\{port} (.*)$", body, re.M)
            if connection is None:
                continue
            width = int(parameters.get(parameter, parameters.get("WIDTH", 1)))
            if kind == "$mux" and port == "S":
                width = 1
            elif kind == "$pmux" and port == "B":       # one value for each select bit
                width *= int(parameters["S_WIDTH"])
            if not width:
                continue
            begin = found.start(3) + connection.start(1)
            units.setdefault(unit, []).append(
                (begin, begin + len(connection[1]), f"{kind} {name}", port, width))
    return units


def _used(rtlil):
    """Names of the cells that something depends on which leaves the module."""
    drivers = {}        # wire -> (cell, wires it depends on)
    for _, name, body in _CELL.findall(rtlil):
        outputs, inputs = [], []
        for port, signal in re.findall(r"^    connect \\(\S+) (.*)$", body, re.M):
            (outputs if port in _OUTPUTS else inputs).extend(_NAME.findall(signal))
        for wire in outputs:
            drivers.setdefault(wire, []).append((name, inputs))
    for target, source in _CONNECT.findall(rtlil):
        for wire in _NAME.findall(target):
            drivers.setdefault(wire, []).append((None, _NAME.findall(source)))
    waiting = re.findall(r"^  wire .*output \d+ ([\\$]\S+)$", rtlil, re.M)
    seen, cells = set(waiting), set()
    while waiting:
        for name, inputs in drivers.get(waiting.pop(), ()):
            cells.add(name)
            new = set(inputs) - seen
            seen |= new
            waiting += new
    return cells


def _unit(cell):
    """The part of the tile in the name of a flattened cell: ``mem0`` of ``$flatten\\mem0.$5``."""
    found = re.match(r"(?:\$flatten)?\\([^.$]+)\.", cell)
    return found[1] if found else _TILE


def mutate(rtlil, rng, count):
    """Add the input ``mutant`` and ``count`` mutations to the module `flat_tile` gave.

    Units of the tile are equally likely, whatever their size: most cells are arithmetic.

    Parameters
    ----------
    rtlil : str
    rng : numpy.random.Generator
    count : int

    Returns
    -------
    (str, list of Mutation)
        RTLIL, and the mutations in order of their numbers, 1 ...
    """
    units = _places(rtlil)
    names = sorted(units)
    chosen = {}
    while len(chosen) < count:
        unit = names[rng.integers(len(names))]
        place = units[unit][rng.integers(len(units[unit]))]
        bit, mode = int(rng.integers(place[4])), str(rng.choice(MODES))
        if rtlil[place[0]:place[1]][::-1][bit:bit + 1] == mode[-1] and _CONSTANT.fullmatch(
                rtlil, place[0], place[1]):
            continue        # it is so already
        if place[0] not in {begin for begin, *_ in chosen}:
            chosen[place[0], bit, mode] = (unit, place)
    select_bits = count.bit_length()
    mutations, wires, cells, edits = [], [], [], []
    for number, ((begin, bit, mode), (unit, place)) in enumerate(chosen.items(), 1):
        _, end, cell, port, width = place
        mutations.append(Mutation(number, unit, cell, port, bit, mode))
        signal, declared, made = _mutation_cells(number, select_bits, rtlil[begin:end], width, bit,
                                                 mode)
        edits.append((begin, end, signal))
        wires.append(declared)
        cells.append(made)
    for begin, end, signal in sorted(edits, reverse=True):
        rtlil = rtlil[:begin] + signal + rtlil[end:]
    ports = max(int(number) for number in re.findall(r"^  wire .*(?:input|output) (\d+)", rtlil,
                                                     re.M))
    head = f"module \\{_TILE}\n"
    before, found, behind = rtlil.partition(head)
    body, end, rest = behind.rpartition("\nend\n")
    if not found or not end or rest.strip() or len(re.findall("^module ", rtlil, re.M)) != 1:
        raise ValueError("RTLIL must hold the tile and nothing else")
    return "".join([before, head, f"  wire width {select_bits} input {ports + 1} \\mutant\n",
                    *wires, body, "\n", *cells, end.lstrip(), rest]), mutations


def _mutation_cells(number, select_bits, signal, width, bit, mode):
    """What the cell is connected to instead of ``signal``; wires and cells that make it."""
    whole, on, changed, mixed = (f"$mutation_{number}_{part}" for part in
                                 ("in", "on", "changed", "bit"))
    wires = f"  wire width {width} {whole}\n" + "".join(
        f"  wire {name}\n" for name in (on, changed, mixed))
    lines = [f"  connect {whole} {signal}",
             _cell("$eq", f"{on}_cell", {"A_SIGNED": 0, "A_WIDTH": select_bits, "B_SIGNED": 0,
                                         "B_WIDTH": select_bits, "Y_WIDTH": 1},
                   {"A": "\\mutant", "B": f"{select_bits}'{number:0{select_bits}b}", "Y": on})]
    if mode == "inverted":
        lines.append(_cell("$not", f"{changed}_cell",
                           {"A_SIGNED": 0, "A_WIDTH": 1, "Y_WIDTH": 1},
                           {"A": f"{whole} [{bit}]", "Y": changed}))
    else:
        lines.append(f"  connect {changed} 1'{mode[-1]}")
    lines.append(_cell("$mux", f"{mixed}_cell", {"WIDTH": 1},
                       {"A": f"{whole} [{bit}]", "B": changed, "S": on, "Y": mixed}))
    parts = [f"{whole} [{width - 1}:{bit + 1}]"] * (bit < width - 1) + [mixed] + \
        [f"{whole} [{bit - 1}:0]"] * (bit > 0)
    return f"{{ {' '.join(parts)} }}", wires, "\n".join(lines) + "\n"


def _cell(kind, name, parameters, connections):
    return "\n".join([f"  cell {kind} {name}",
                      *(f"    parameter \\{key} {value}" for key, value in parameters.items()),
                      *(f"    connect \\{key} {value}" for key, value in connections.items()),
                      "  end"])


def build_mutated(system, rtlil, *, root=None, report=None):
    """Simulator of a system whose tiles have mutations (of `mutate`), with the port ``mutant``.

    Returns
    -------
    sim.build.Model
        The mutation is in every tile; what all registers hold is recorded (`sim.bench.registers`).
        Older ones are removed.
    """
    text = _yosys("read_rtlil <<end_of_rtlil", rtlil, "end_of_rtlil",
                  "write_verilog -sv -norename -noattr").replace(" // synopsys parallel_case", "")
    units = emitted(system, trace=True, max_latency=MAX_LATENCY)
    names = list(units)     # those of the tile come before it
    sources = {f"{name}.v": units[name] for name in names[names.index(_TILE) + 1:]}
    wires = int(re.search(r"^  wire width (\d+) input \d+ \\mutant$", rtlil, re.M)[1])
    sources[f"{SYSTEM}.v"], count = re.subn(
        rf"^  {_TILE} (\S+) \(", rf"  {_TILE} \1 (.mutant({TOP}.mutant),", sources[f"{SYSTEM}.v"],
        flags=re.M)
    top, ports = re.subn(rf"^module {TOP} \(\n",
                         f"module {TOP} (\n  input [{wires - 1}:0] mutant,\n",
                         top_verilog(system, MAX_LATENCY), flags=re.M)
    if (count, ports) != (system.tiles, 1):
        raise ValueError("The system's Verilog has no plain instance of each tile")
    sources[f"{_TILE}.v"], sources[f"{TOP}.sv"] = recorded(system.tile, rtlil, text), top
    # Where the select input of a multiplexer is mutated, several cases hold: the first counts.
    model = build_model(f"mutated-{system.tiles}x{system.tile.lanes}", sources, top=TOP,
                        args=["-Wno-CASEOVERLAP", "-CFLAGS", "-O1"], root=root, report=report)
    drop_older(model)
    return model
