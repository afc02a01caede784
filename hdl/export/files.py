"""The files of an export, by name."""

from .lint import waivers
from .manifest import manifest
from .top import ExportTop
from .verilog import verilog_2005

__all__ = ["FILE_LIST", "MANIFEST", "WAIVER_FILE", "export_files"]

#: Names the Verilog files, in an order in which every module comes before those that use it.
FILE_LIST = "filelist.f"
#: Describes the export.
MANIFEST = "manifest.json"
#: Says to Verilator's linter what is meant to be so.
WAIVER_FILE = "lint.vlt"


def export_files(system, options):
    """What describes a tile or a system in Verilog, equal for equal arguments.

    Parameters
    ----------
    system : hdl.arch.config.SystemConfig
    options : ExportOptions

    Returns
    -------
    dict of str to str
        Text by file name: a file for each module, `FILE_LIST`, `MANIFEST`, `WAIVER_FILE`.
    """
    top = ExportTop(system, options)
    modules = verilog_2005(top, options.top, prefix=options.prefix, initial=options.initial)
    verilog = {f"{module}.v": text for module, text in modules.items()}
    return verilog | {FILE_LIST: "".join(f"{file}\n" for file in verilog),
                      MANIFEST: manifest(system, options, top, verilog),
                      WAIVER_FILE: waivers(options.prefix)}
