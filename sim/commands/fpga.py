"""``oncycle fpga``: a tile on an FPGA board, from Verilog to a bitstream, and its figures."""

import sys
from dataclasses import asdict

from compiler.errors import CompileError
from hdl.arch.bridge import BAUD
from hdl.arch.presets import preset
from hdl.board import BoardTop
from hdl.board.pll import settings
from hdl.board.top import OSCILLATOR_MHZ, TOP
from hdl.emit import emit
from hdl.tile import Tile
from sim.bench.report import OUTPUT, write_json
from sim.build.model import BUILD_ROOT
from sim.commands.options import add_preset, positive
from sim.errors import UsageError
from sim.fpga.netlist import cells_by_unit, not_inferred, overflow
from sim.fpga.parts import BOARD, PACKAGE, PARTS, SPEED, constraints
from sim.fpga.report import figures, lines, misses
from sim.fpga.route import pack, place_and_route
from sim.fpga.synthesis import count_cells, synthesise
from sim.fpga.tokens import run_tokens
from sim.fpga.tools import NEXTPNR, YOSYS, version

__all__ = ["HELP", "add_arguments", "run"]

HELP = "synthesise, place and route a tile for an FPGA board"


def add_arguments(parser):
    """See `sim.cli`."""
    add_preset(parser)
    parser.set_defaults(preset="fpga")
    parser.add_argument("--part", choices=PARTS, default="85k",
                        help="size of the ECP5 (default: %(default)s)")
    parser.add_argument("--mhz", type=positive, default=50,
                        help="clock of the tile (default: %(default)s)")
    parser.add_argument("--baud", type=positive, default=BAUD,
                        help="bits a second of the serial line (default: %(default)s)")
    parser.add_argument("--seed", type=positive, default=1,
                        help="of placement (default: %(default)s)")
    parser.add_argument("--xilinx", action="store_true",
                        help="only count the cells that the tile has on a Xilinx 7-series")


def run(options):
    """See `sim.cli`."""
    cfg = preset(options.preset)
    directory = BUILD_ROOT / "fpga" / options.preset
    tools = {tool: version(tool) for tool in (YOSYS, NEXTPNR)}
    if options.xilinx:
        return _xilinx(options, cfg, directory, tools)
    try:
        settings(OSCILLATOR_MHZ, options.mhz)
    except ValueError as error:
        raise UsageError(str(error)) from None
    part = PARTS[options.part]
    text = "\n".join(emit(BoardTop(cfg, mhz=options.mhz, baud=options.baud),
                          TOP).values())
    _say(f"synthesis with {YOSYS} {tools[YOSYS]}: {directory / 'yosys.log'} ...")
    synthesis = synthesise(text, TOP, directory)
    counts = cells_by_unit(synthesis.module())
    if too_much := overflow(counts, part):
        raise UsageError(f"Preset {options.preset} needs {too_much} of {part.name}: take a larger "
                         "part or a smaller preset")
    _say(f"place and route with {NEXTPNR} {tools[NEXTPNR]}: {directory / 'nextpnr.log'} ...")
    routed = place_and_route(synthesis, part, package=PACKAGE, speed=SPEED, lpf=constraints(),
                             seed=options.seed)
    bitstream = pack(directory)
    inferred = not_inferred(cfg, counts)
    print("\n".join(lines(counts, routed)))
    found = misses(routed, inferred, options.mhz)
    tokens = _tokens(cfg, options.mhz, found)
    write_json(OUTPUT / "fpga.json", {
        "preset": options.preset, "digest": cfg.digest, "board": BOARD, "part": part.name,
        "speed": SPEED, "seed": options.seed, "clock_mhz": options.mhz, "tools": tools,
        "tokens": tokens, **figures(counts, routed, inferred=inferred)})
    used = ", ".join(f"{number:,} {name}s" for name, (number, _) in routed.used.items())
    print(f"fpga: {options.preset} on {part.name} (speed {SPEED}, seed {options.seed}): {used}, "
          f"{routed.mhz:.1f} MHz; {bitstream.relative_to(BUILD_ROOT.parent)}"
          + "".join(f"; MISSED: {line}" for line in found))
    return 1 if found else 0


def _tokens(cfg, mhz, found):
    """Cycles and time of a token at ``mhz``, for the file; None where the tile has no room for the
    model.  What does not agree is added to ``found``."""
    try:
        tokens = run_tokens(cfg)
    except CompileError as error:
        print(f"\nno tokens: {error}")
        return None
    print(f"\nmodel of {tokens.parameters:,} random parameters: {tokens.cycles:,} cycles a token, "
          f"{1000 * tokens.milliseconds(mhz):.1f} us at {mhz} MHz")
    if not tokens.agrees:
        found.append("tokens or cycles differ from the plan on the emulator")
    return {**asdict(tokens), "milliseconds": tokens.milliseconds(mhz)}


def _xilinx(options, cfg, directory, tools):
    text = "\n".join(emit(Tile(cfg, trace=False), "tile").values())
    _say(f"synthesis with {YOSYS} {tools[YOSYS]} for Xilinx 7-series ...")
    cells = count_cells(text, "tile", directory / "xc7", "xc7")
    write_json(OUTPUT / "fpga-xc7.json", {"preset": options.preset, "digest": cfg.digest,
                                          "tools": tools, "cells": cells})
    luts = sum(number for name, number in cells.items() if name.startswith("LUT"))
    flip_flops = sum(number for name, number in cells.items() if name.startswith("FD"))
    blocks = cells.get("RAMB36E1", 0) + cells.get("RAMB18E1", 0) / 2
    for name, number in cells.items():
        print(f"{name:<16}{number:>8,}")
    print(f"fpga: tile of {options.preset} on Xilinx 7-series, synthesised only: {luts:,} LUTs, "
          f"{flip_flops:,} FFs, {blocks:g} block RAMs of 36 kbit, {cells.get('DSP48E1', 0)} DSPs")
    return 0


def _say(line):
    print(line, file=sys.stderr)
