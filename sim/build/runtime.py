"""Verilator's own runtime, compiled once instead of in every build.

``verilated*.cpp`` are the same for all designs and are most of the work of a small build.  Their
objects are kept beside the builds, by everything that can change them.
"""

import os
import shutil
from pathlib import Path

__all__ = ["fetch_runtime", "keep_runtime"]

_OBJECTS = "verilated*.o"


def fetch_runtime(store: Path, directory: Path):
    """Copy the kept objects into a build directory; returns their names."""
    names = sorted(file.name for file in store.glob(_OBJECTS))
    for name in names:
        shutil.copyfile(store / name, directory / name)
    return names


def keep_runtime(store: Path, directory: Path):
    """Keep the objects of a finished build, each put in place whole."""
    store.mkdir(parents=True, exist_ok=True)
    for file in directory.glob(_OBJECTS):
        if not (store / file.name).exists():
            temporary = store / f"{file.name}.{os.getpid()}.tmp"
            shutil.copyfile(file, temporary)
            os.replace(temporary, store / file.name)
