"""From Verilog to the cells of an FPGA, with Yosys."""

import json
from dataclasses import dataclass
from pathlib import Path

from sim.fpga.tools import YOSYS, run_tool

__all__ = ["FAMILIES", "Synthesis", "count_cells", "synthesise"]

#: By family of FPGAs: the pass of Yosys.
FAMILIES = {"ecp5": "synth_ecp5", "xc7": "synth_xilinx -family xc7"}


@dataclass(frozen=True)
class Synthesis:
    """A synthesised design: files of one directory.

    ``json``: the netlist for nextpnr; ``verilog``: the same for simulators.
    """

    directory: Path
    top: str
    json: Path
    verilog: Path

    def module(self):
        """The top module of the netlist, as Yosys writes it."""
        return json.loads(self.json.read_text())["modules"][self.top]


def synthesise(text, top, directory):
    """Synthesise a design for ECP5, flattened.

    Parameters
    ----------
    text : str
        Verilog of all its modules.
    top : str
        Name of the top module.
    directory : Path
        Where all files go; made if it is not there.

    Returns
    -------
    Synthesis

    Raises
    ------
    sim.fpga.tools.ToolFailed
        If Yosys is missing or refuses the design.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "design.v").write_text(text)
    found = Synthesis(directory, top, directory / "netlist.json", directory / "netlist.v")
    run_tool(YOSYS, ["-q", "-p", f"read_verilog -sv design.v; {FAMILIES['ecp5']} -top {top} "
                                 f"-json {found.json.name}; write_verilog -noattr "
                                 f"{found.verilog.name}"], directory, log="yosys.log")
    return found


def count_cells(text, top, directory, family):
    """Number of cells of each type that a design has in a family of FPGAs: dict by type."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "design.v").write_text(text)
    run_tool(YOSYS, ["-q", "-p", f"read_verilog -sv design.v; {FAMILIES[family]} -top {top}; "
                                 "tee -q -o cells.json stat -json"], directory,
             log=f"yosys-{family}.log")
    counts = json.loads((directory / "cells.json").read_text())["design"]["num_cells_by_type"]
    return dict(sorted(counts.items()))
