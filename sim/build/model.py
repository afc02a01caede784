"""From Verilog text to a simulator, built once for each content.

A build lives in ``build/verilator/<name>-<hash>``.  The hash covers everything that goes in:
Verilog, control file, options, versions and paths of the tools.  A build is good when its file
``done`` is there, which is put in place last; a directory without it is built anew.
"""

import fcntl
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cocotb_tools.config

from sim.build.control import control_file, module_ports
from sim.build.errors import BuildFailed
from sim.build.runner import VerilatorRunner
from sim.build.runtime import fetch_runtime, keep_runtime
from sim.build.verilator import find_verilator

__all__ = ["BUILD_ROOT", "Model", "build_model"]

#: The checkout's build directory; not under version control.
BUILD_ROOT = Path(__file__).resolve().parents[2] / "build"

#: Options of every build.  Undefined values are drawn at run time, from the run's seed.
_OPTIONS = ("--x-initial", "unique", "--x-assign", "unique")

#: Time unit and precision: a finer precision slows Verilator.
_TIMESCALE = ("1ns", "1ns")

#: Main of builds with ``dump``.
_DUMPING_MAIN = Path(__file__).with_name("dumping.cpp")

#: Bytes of free space below which a failed build is put down to that.
_LEAST_FREE = 1 << 22

#: What the compiler leaves behind and a run does not need.
_INTERMEDIATE = ("*.o", "*.a", "*.d", "*.gch", "*__ALL.cpp")


@dataclass(frozen=True)
class Model:
    """A finished simulator.

    Attributes
    ----------
    name, top : str
        Name of the build, top-level module.
    directory : Path
        Holds the executable, ``build.log``, the Verilog and the generated C++.
    trace : bool
        Whether it can write a VCD file.
    dump : str or None
        The output that says when it does; see `build_model`.
    seconds : float
        What the build took when it was made.
    cached : bool
        Whether it was there already.
    """

    name: str
    top: str
    directory: Path
    trace: bool
    seconds: float
    cached: bool
    dump: str | None = None

    @property
    def executable(self):
        return self.directory / self.top


def build_model(
    name: str,
    sources: Mapping[str, str],
    *,
    top: str,
    hier_blocks: Sequence[str] = (),
    expose: Sequence[tuple[str, str]] = (),
    trace: bool = False,
    dump: str | None = None,
    args: Sequence[str] = (),
    root: Path | None = None,
    report: Callable[[str], None] | None = None,
) -> Model:
    """Build a cocotb simulator with Verilator, or find the one built before.

    Parameters
    ----------
    name : str
        Prefix of the build directory: letters, digits, ``_``, ``-``.
    sources : mapping of str to str
        File name (ending in ``.v`` or ``.sv``) to Verilog text.
    top : str
        Top-level module, in one of the sources.  Its ports are visible to cocotb.
    hier_blocks : sequence of str
        Modules that are compiled once each, whatever the number of instances.
    expose : sequence of (str, str)
        Further (module, variable) pairs that cocotb may read.
    trace : bool
        Whether runs can write a VCD file, from start to end.  Slows the model.
    dump : str, optional
        Output of the top level, of one bit: runs with the plusarg ``+waves=FILE`` write a VCD of
        the time steps in which it is 1.  Instead of ``trace``.
    args : sequence of str
        Further options for Verilator.
    root : Path, optional
        Instead of :data:`BUILD_ROOT`.
    report : callable, optional
        Called with one line when a build starts and one when it ends.

    Returns
    -------
    Model

    Raises
    ------
    VerilatorNotFound
        If there is no Verilator, compiler, make or perl.
    BuildFailed
        If the design is refused; the message has the first error and the log's path.
    """
    if not re.fullmatch(r"[\w-]+", name):
        raise ValueError(f"Build name must consist of letters, digits, _ and -, not {name!r}")
    for file in sources:
        if not re.fullmatch(r"[\w.-]+\.s?v", file):
            raise ValueError(f"Source must be a plain file name ending in .v or .sv, not {file!r}")
    tool = find_verilator()
    control = control_file(
        top=top,
        ports=module_ports("\n".join(sources.values()), top),
        hier_blocks=hier_blocks,
        expose=expose,
        version=tool.version,
    )
    options = [*_OPTIONS, *(["--hierarchical"] if hier_blocks else []), *args]
    main = None
    if dump is not None:
        main = _DUMPING_MAIN
        options += ["-CFLAGS", f"-DONCYCLE_DUMP={dump}"]
        trace = True
    tools = _toolchain(tool)
    cocotb = [importlib.metadata.version("cocotb"), str(cocotb_tools.config.libs_dir)]
    texts = sorted(sources.items())
    content = [tools, cocotb, texts, control, top, trace, options, _TIMESCALE]
    key = _digest(content if main is None else [*content, main.read_text()])
    runtime = f"runtime-{_digest([tools, trace, list(args)])}"
    directory = (BUILD_ROOT if root is None else Path(root)) / "verilator" / f"{name}-{key}"
    if " " in str(directory):
        raise BuildFailed(f"make cannot build in {str(directory)!r}: use a path without blanks")
    directory.parent.mkdir(parents=True, exist_ok=True)
    with open(directory.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second process waits and then finds it done
        done = directory / "done"
        cached = done.is_file()
        if not cached:
            if report is not None:
                report(f"building {name} with {tool} ...")
            start = time.monotonic()
            _start(directory, sources, control)
            prebuilt = fetch_runtime(directory.parent / runtime, directory)
            _compile(tool, directory, sources, top, trace, options, prebuilt, main)
            keep_runtime(directory.parent / runtime, directory)
            _remove_intermediate(directory)
            seconds = time.monotonic() - start
            _write_done(done, {"seconds": round(seconds, 2), "verilator": str(tool)})
            if report is not None:
                report(f"built {name} in {seconds:.1f} s")
        seconds = json.loads(done.read_text())["seconds"]
    return Model(name, top, directory, trace, seconds, cached, dump)


def _digest(content):
    """16 hex digits of nested tuples, lists and dicts of strings and numbers."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _toolchain(tool):
    """What the tools add to every build."""
    compiler = subprocess.run(["c++", "--version"], capture_output=True, text=True, check=False)
    return [
        str(tool),
        str(tool.executable),
        tool.environment({})["MAKEFLAGS"],
        compiler.stdout.partition("\n")[0],
    ]


def _start(directory, sources, control):
    """A new build directory with nothing but the inputs."""
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir()
    (directory / "control.vlt").write_text(control)
    for file, text in sources.items():
        (directory / file).write_text(text)


def _compile(tool, directory, sources, top, trace, options, prebuilt, main):
    log = directory / "build.log"
    runner = VerilatorRunner(tool)
    runner.prebuilt = prebuilt
    runner.main = main
    runner.build(
        sources=[directory / "control.vlt", *(directory / file for file in sources)],
        hdl_toplevel=top,
        build_args=options,
        build_dir=directory,
        timescale=_TIMESCALE,
        waves=trace,
        log_file=log,
    )
    if runner.returncode != 0 or not (directory / top).is_file():
        if shutil.disk_usage(directory).free < _LEAST_FREE:
            raise BuildFailed(f"no space is left for {directory}: free some and try again")
        raise BuildFailed(f"{_first_error(log)} (all of it: {log})")


def _remove_intermediate(directory):
    for pattern in _INTERMEDIATE:
        for file in directory.rglob(pattern):
            file.unlink()


def _first_error(log):
    """The first line of a build log that names a fault."""
    lines = log.read_text(errors="replace").splitlines()
    for pattern in (r"%(Error|Warning)", r"\berror:", r"\*\*\*"):
        for line in lines:
            if re.search(pattern, line):
                return line.strip()
    return lines[-1].strip() if lines else "Verilator did not start"


def _write_done(done, content):
    temporary = done.with_suffix(".tmp")
    temporary.write_text(json.dumps(content))
    os.replace(temporary, done)
