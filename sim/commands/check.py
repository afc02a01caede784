"""``oncycle check``: the conformance of plan, emulator and RTL."""

import argparse
import sys
from pathlib import Path

from compiler import program as program_file
from compiler.plan import expand
from sim.build import find_verilator
from sim.commands.options import RUN_ROOT, add_steps, add_text, positive, prompts_of, steps_of
from sim.commands.waves import add_waves, build_options, check_waves, show_waves
from sim.compiling import MACHINE_TILES
from sim.conformance import check
from sim.emulate import run_emulator
from sim.errors import UsageError
from sim.events import Events
from sim.model_check import check_model
from sim.progress import say
from sim.rtl.build import build_rtl
from sim.rtl.run import GRACE, run_rtl

__all__ = ["HELP", "add_arguments", "check_program", "run"]

HELP = "run a program on emulator and RTL and compare both with its plan, event by event"


def check_program(program, runs, *, seed=1, engines=("emulator", "RTL"), model=None, name="check",
                  report=None, waves=None):
    """Run a program and compare.

    Parameters
    ----------
    program : compiler.program.Program
    runs : list of (int, int)
        First step and steps of each run, without reset in between.
    seed : int
        Of initial state and garbage.
    engines : tuple of str
        ``emulator``, ``RTL`` or both.
    model : sim.build.Model, optional
        A build that has the program's tiles and links; built if not given.
    name : str
        Of the run's directory.
    report : callable, optional
        Called with one line where a build starts or ends.
    waves : (int, int), optional
        As of `sim.rtl.run.run_rtl`; ``model`` must be given.

    Returns
    -------
    list of sim.conformance.Report
        One for each run that was made.
    list of float
        Cycles per second of the RTL, empty without it.
    """
    system, binary = program.system, program.binary
    limit = max(program.plan.cycles(steps) for _, steps in runs) + GRACE
    observed, speed = {}, []
    if "emulator" in engines:
        observed["emulator"] = run_emulator(system, binary, garbage=seed, runs=runs, limit=limit)
    if "RTL" in engines:
        model = build_rtl(system, report=report) if model is None else model
        result = run_rtl(model, system, binary, run_dir=RUN_ROOT / name, seed=seed, runs=runs,
                         limit=limit, report=report, waves=waves)
        observed["rtl"] = result.runs
        speed.append(result.cycles_per_second)
    reports = []
    for number, (first_step, steps) in enumerate(runs):
        if any(number >= len(seen) for seen in observed.values()):
            break       # an earlier run has not halted, which its report says
        plan = Events(**expand(program.plan, steps, first_step))
        reports.append(check(system, binary, plan=plan,
                             **{side: seen[number] for side, seen in observed.items()}))
    return reports, speed


def add_arguments(parser):
    """See `sim.cli`."""
    parser.add_argument("program", type=Path, nargs="?",
                        help="program file (.npz); without one, a model on several tile counts")
    add_steps(parser)
    add_text(parser)
    parser.add_argument("--tiles", type=_tile_counts, default=(1, 2, 4), metavar="N,N,...",
                        help="tile counts of a model (default: 1,2,4)")
    parser.add_argument("--seeds", type=positive, default=1,
                        help="how many seeds of initial state and garbage (default: %(default)s)")
    parser.add_argument("--engine", choices=["both", "emulator", "rtl"], default="both",
                        help="what to compare with the plan (default: %(default)s)")
    add_waves(parser)


def run(options):
    """See `sim.cli`."""
    if options.engine != "emulator":
        find_verilator()        # a tool that is missing shows now, not behind the emulator
    if options.program is None:
        return _run_model(options)
    program = program_file.load(options.program)
    first_step, steps = steps_of(options, program.binary)
    engines = {"both": ("emulator", "RTL"), "emulator": ("emulator",), "rtl": ("RTL",)}
    check_waves(options, program.plan.cycles(steps), program.system.tiles)
    ok, model, name = True, None, f"check-{options.program.stem}"
    if options.waves:
        model = build_rtl(program.system, report=say, **build_options(options))
    for seed in range(1, options.seeds + 1):
        reports, speed = check_program(
            program, [(first_step, steps)], seed=seed, engines=engines[options.engine], name=name,
            report=say, model=model, waves=options.waves)
        for line in reports[0].lines():
            print(line)
        ok &= reports[0].ok
        for figure in speed:
            print(f"seed {seed}: RTL at {figure:,.0f} cycles/s", file=sys.stderr)
    if options.waves:
        print("\n".join(show_waves(RUN_ROOT / name, program, options.waves_tile)))
    return 0 if ok else 1


def _run_model(options):
    """Two texts on every tile count, against the plan, the emulator and the plain model."""
    if options.engine == "rtl" or options.waves:
        raise UsageError("Without a program file, check runs the emulator, with or without RTL, "
                         "and writes no waves")
    ok = check_model(
        options.engine != "emulator", prompts=prompts_of(options), tokens=options.tokens,
        batch=options.batch, tiles=options.tiles, seeds=options.seeds, directory=options.model,
        context=options.context, calibration=options.calibration, run_root=RUN_ROOT,
        say=lambda line: print(line, flush=True))
    print("check: all equal" if ok else "check: NOT as planned")
    return 0 if ok else 1


def _tile_counts(text):
    counts = text.split(",")
    if not all(count.isdecimal() and 1 <= int(count) <= MACHINE_TILES for count in counts):
        raise argparse.ArgumentTypeError(f"must be tile counts of 1 to {MACHINE_TILES}, for "
                                         f"example 1,2,4, not {text!r}")
    return tuple(map(int, counts))
