"""A program run on RTL and emulator against its plan, for benches that count planned cycles."""

from compiler.plan import expand
from compiler.reference import PlainModel
from sim.commands.options import RUN_ROOT
from sim.conformance import check
from sim.emulate import run_emulator
from sim.events import Events
from sim.rtl.run import GRACE, run_rtl

__all__ = ["plain_tokens", "run_planned"]


def plain_tokens(model, positions, shards, prompt, steps):
    """Tokens that the plain model chooses in the first ``steps`` steps; ``positions``, ``shards``:
    of the program."""
    plain, chosen = PlainModel(model, positions, shards), []
    for position in range(steps):
        plain.step(prompt[position] if position < len(prompt) else chosen[-1], position)
        chosen.append(plain.token)
    return chosen


def run_planned(build, whole, program, binary, steps, agrees, name, report):
    """Run the first steps of a program; every SRAM write is compared, contents are not read back.

    Parameters
    ----------
    build : sim.build.Model
        Of ``whole``.
    whole : SystemConfig
    program : Program
    binary : SystemBinary
        Its binary, with the data of the run.
    steps : int
    agrees : callable
        Whether a `sim.events.Observation` has the right results.
    name : str
        Of the run's directory.
    report : callable

    Returns
    -------
    (str, bool)
        What came of it, and whether all is as it should be.
    """
    limit, runs = program.plan.cycles(steps) + GRACE, [(0, steps)]
    emulated = run_emulator(program.system, binary, garbage=1, runs=runs, limit=limit)
    rtl = run_rtl(build, program.system, binary, run_dir=RUN_ROOT / name, machine=whole, runs=runs,
                  limit=limit, report=report, read_sram=False)
    if not len(emulated) == len(rtl.runs) == 1:
        return "the run did not end", False
    found = check(program.system, binary, emulator=emulated[0], rtl=rtl.runs[0],
                  plan=Events(**expand(program.plan, steps)))
    equal = agrees(rtl.runs[0])
    return f"{'equal' if equal else 'DIFFERENT'} bits; {found.lines()[0]}", found.ok and equal
