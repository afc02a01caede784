"""`bench configs`: random machines, each compiled for, built, run and compared, without a change.

Every configuration multiplies matrices of sizes around its lane count; verifier, plan, emulator,
RTL and an integer product in NumPy have to agree.
"""

import argparse
import sys
import time
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from compiler.errors import CompileError
from compiler.plan import expand
from sim.bench.batch import Task, run_batch
from sim.bench.builds import drop_older
from sim.bench.random_config import random_system
from sim.bench.report import OUTPUT, write_json
from sim.build.errors import SimError
from sim.commands.options import RUN_ROOT
from sim.conformance import check
from sim.emulate import run_emulator
from sim.events import Events
from sim.products import compile_product, result_of
from sim.rtl.build import build_rtl

#: What the figures must reach.
BARS = {"configurations": 30, "failed": 0}

#: Lane counts and vxm of the 30 configurations, in order: every fifth has a vxm slice.
_LANES = (4, 4, 4, 8, 16, 4, 4, 8, 4, 4, 4, 8, 4, 16, 4,
          8, 4, 4, 8, 4, 4, 16, 8, 4, 4, 8, 4, 16, 4, 8)
_VXM_EVERY = 5

#: A build is used for a few seconds: compiling it fast is worth more than a fast simulator.
_BUILD_ARGS = ("-CFLAGS", "-O0")
_GRACE = 500        #: cycles behind the planned end after which a run is stopped


@dataclass
class Result:
    """What came of one configuration; ``problems`` is empty where all is as it should be."""

    number: int
    system: object
    vxm: bool
    products: int = 0
    issues: int = 0
    arrivals: int = 0
    writes: int = 0
    build_seconds: float = 0.0
    run_seconds: float = 0.0
    problems: list = field(default_factory=list)


def configuration(seed, number):
    """System number ``number`` (0 ...) of a seed, and whether it has a vxm slice."""
    rng = np.random.default_rng([seed, number])
    vxm = number % _VXM_EVERY == _VXM_EVERY - 1
    return random_system(rng, lanes=_LANES[number % len(_LANES)], tiles=1 + number % 3,
                         vxm=vxm), vxm


def sizes(lanes):
    """All (K, N) of the matrices."""
    around = (1, lanes - 1, lanes, lanes + 1, 2 * lanes + 1)
    return list(product(around, around))


def run_configuration(seed, number, shapes=None, *, run_dir=None, report=None):
    """Compile, build, run and compare one configuration.

    Parameters
    ----------
    seed, number : int
    shapes : list of (int, int), optional
        Instead of all `sizes`.
    run_dir : path, optional
        Where the simulation runs.
    report : callable, optional
        As of `sim.build.build_model`.

    Returns
    -------
    Result
    """
    system, vxm = configuration(seed, number)
    result = Result(number, system, vxm)
    rng = np.random.default_rng([seed, number, 1])
    programs = []
    for k, n in shapes or sizes(system.tile.lanes):
        try:
            programs.append(((k, n), *compile_product(system, k, n, rng)))
        except CompileError as error:
            result.problems.append(f"{k} x {n}: {error}")
    if not programs:
        return result
    try:
        model = build_rtl(system, name=f"config-{seed}-{number}", args=_BUILD_ARGS, report=report)
        drop_older(model)
        result.build_seconds = model.seconds
        begin = time.monotonic()
        tasks = [Task(program.binary, program.plan.cycles(1) + _GRACE)
                 for _, program, _ in programs]
        observed = run_batch(model, system, tasks, seed=seed + number,
                             run_dir=run_dir or RUN_ROOT / "bench-configs")
    except SimError as error:
        result.problems.append(str(error))
        return result
    for (shape, program, exact), task, rtl in zip(programs, tasks, observed, strict=True):
        _compare(result, seed + number, shape, program, exact, task.limit, rtl.runs[0])
    result.run_seconds = time.monotonic() - begin
    return result


def _compare(result, garbage, shape, program, exact, limit, rtl):
    system, binary = program.system, program.binary
    emulator, = run_emulator(system, binary, garbage=garbage, limit=limit)
    report = check(system, binary, plan=Events(**expand(program.plan, 1)), emulator=emulator,
                   rtl=rtl)
    name = f"{shape[0]} x {shape[1]}"
    if not report.ok:
        result.problems += [f"{name}: {line}" for line in report.lines()]
    for side, seen in (("emulator", emulator), ("RTL", rtl)):
        if seen.sram is None or not np.array_equal(result_of(program, seen.sram, shape[1]), exact):
            result.problems.append(f"{name}: the {side}'s result is not the product")
    result.products += 1
    equal = [found.equal for found in report.comparisons.values()]
    for kind in ("issues", "arrivals", "writes"):
        setattr(result, kind, getattr(result, kind) + min(one[kind] for one in equal))


def line(result):
    """One line of the table."""
    cfg = result.system.tile
    alus = "/".join("".join(feature[0] for feature in alu.features) + str(alu.depth)
                    for alu in cfg.alus) if result.vxm else "-"
    latencies = ",".join(str(link.latency) for link in result.system.links) or "-"
    widths = ",".join(str(port.bytes) for port in cfg.ports) or "-"
    verdict = "ok" if not result.problems else "FAILED"
    return (f"{result.number:>3} {cfg.lanes:>5} {result.system.tiles:>5} {cfg.streams:>7} "
            f"{cfg.accumulators:>4} {widths:>5} {latencies:<18} {alus:<14} {result.products:>8} "
            f"{result.issues:>7,} {result.build_seconds:>6.1f} {result.run_seconds:>5.1f}  "
            f"{verdict:<6} {' '.join(cfg.floorplan)}")


HEADER = (f"{'#':>3} {'lanes':>5} {'tiles':>5} {'streams':>7} {'accs':>4} {'bytes':>5} "
          f"{'latencies':<18} {'ALUs':<14} {'products':>8} {'issues':>7} {'build':>6} {'run':>5}  "
          f"{'':<6} floorplan")


def summary(results):
    """One line."""
    failed = [result.number for result in results if result.problems]
    total = {kind: sum(getattr(result, kind) for result in results)
             for kind in ("products", "issues", "arrivals", "writes")}
    lanes = ", ".join(f"{count} of {width} lanes" for width in (4, 8, 16)
                      if (count := sum(r.system.tile.lanes == width for r in results)))
    verdict = "all conform and are exact" if not failed else \
        f"FAILED: configurations {', '.join(map(str, failed))}"
    return (f"configs: {len(results)} random configurations ({lanes}; "
            f"{sum(r.vxm for r in results)} with vxm), {total['products']} products, "
            f"{total['issues']:,} instructions, {total['arrivals']:,} link vectors, "
            f"{total['writes']:,} SRAM writes; {verdict}")


def main(argv=None):
    """Print the table and the summary line, write the JSON file.

    Returns
    -------
    int
        0; 1 where a configuration fails.
    """
    parser = argparse.ArgumentParser(prog="bench configs", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=BARS["configurations"],
                        help="configurations (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first (default: 0)")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    parser.add_argument("--output", default=OUTPUT / "configs.json", help="JSON file to write")
    options = parser.parse_args(argv)
    print(HEADER, flush=True)
    results = []
    for number in range(options.first, options.first + options.count):
        results.append(run_configuration(options.seed, number,
                                         report=lambda text: print(text, file=sys.stderr)))
        print(line(results[-1]), flush=True)
        for problem in results[-1].problems:
            print(f"    {problem}", flush=True)
    failed = sum(bool(result.problems) for result in results)
    write_json(options.output, {
        "seed": options.seed, "bars": BARS, "failed": failed, "configurations": [
            {"number": r.number, "digest": r.system.digest, "lanes": r.system.tile.lanes,
             "tiles": r.system.tiles, "vxm": r.vxm, "products": r.products, "issues": r.issues,
             "arrivals": r.arrivals, "writes": r.writes, "problems": r.problems,
             "build_seconds": round(r.build_seconds, 1)} for r in results]})
    print(summary(results))
    return 1 if failed else 0
