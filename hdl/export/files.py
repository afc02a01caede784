"""The files of an export, by name."""

from .top import ExportTop
from .verilog import verilog_2005

__all__ = ["FILE_LIST", "export_files"]

#: Names the Verilog files, in an order in which every module comes before those that use it.
FILE_LIST = "filelist.f"


def export_files(system, options):
    """What describes a tile or a system in Verilog, equal for equal arguments.

    Parameters
    ----------
    system : hdl.arch.config.SystemConfig
    options : ExportOptions

    Returns
    -------
    dict of str to str
        Text by file name: a file for each module, `FILE_LIST`.
    """
    modules = verilog_2005(ExportTop(system, options), options.top, prefix=options.prefix,
                           initial=options.initial)
    files = {f"{module}.v": text for module, text in modules.items()}
    return files | {FILE_LIST: "".join(f"{file}\n" for file in files)}
