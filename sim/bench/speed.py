"""`bench speed`: cycles per second of the simulator, against a build as cocotb comes with it.

Everything is built and run in this one run: one ``demo`` tile as the ``fast`` build, the same
Verilog by the stock cocotb runner (which makes every signal of the design writable), and the same
tile without trace port.  Rates are by processor time of the simulator, the best of several runs
that take turns, because other processes disturb real time.
"""

import argparse
import os
import shutil
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from cocotb_tools.runner import get_runner

from compiler.plan import expand
from compiler.verify import verify
from hdl.arch.config import all_to_all, single
from hdl.arch.presets import DEMO
from hdl.system import system_verilog
from sim.bench.report import OUTPUT, write_json
from sim.build import BuildFailed, Model, find_verilator
from sim.commands.options import RUN_ROOT, positive
from sim.conformance import check
from sim.emulate import run_emulator
from sim.events import Events
from sim.products import compile_product
from sim.rtl.build import MAX_LATENCY, build_rtl
from sim.rtl.run import run_rtl
from sim.rtl.top import TOP, top_verilog

#: What the figures must reach.
BARS = {
    "over_stock": 3.0,              # at least: cycles/s of the fast build over the stock build's
    "conformance_cost": 1.5,        # at most: processor time with recorder and check, over without
}

_SIZE = 128         #: rows and columns of the matrix
_TILES = 4
#: What the stock build needs to accept the design, and what makes undefined values alike.
_STOCK_ARGS = ("--x-initial", "unique", "--x-assign", "unique", "-Wno-fatal", "-Wno-WIDTH",
               "-Wno-CMPCONST", "-Wno-CASEINCOMPLETE")


@dataclass
class Work:
    """A product, repeated: ``binary`` runs its steps."""

    system: object
    plan: object
    binary: object

    @property
    def cycles(self):
        """Planned cycles of all steps."""
        return self.plan.cycles(self.binary.steps)


def work(system, cycles, seed):
    """A product of a random matrix and vector, repeated for at least ``cycles`` cycles."""
    rng = np.random.default_rng(seed)
    program, _ = compile_product(system, _SIZE, _SIZE, rng)
    binary, plan = program.binary, program.plan
    verify(system, replace(binary, steps=2))
    return Work(system, plan, replace(binary, steps=-(-cycles // plan.cycles(1))))


@contextmanager
def _environment(variables):
    """``os.environ`` as ``variables``: the stock runner takes no other."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def stock_build(sources, directory):
    """A build by cocotb's own runner, unmodified.

    Parameters
    ----------
    sources : dict of str to str
        Verilog by file name.
    directory : Path
        Emptied first.

    Returns
    -------
    Model
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name, text in sources.items():
        (directory / name).write_text(text)
    begin = time.monotonic()
    with _environment(find_verilator().environment()):
        runner = get_runner("verilator")
        runner.log.disabled = True
        runner.build(sources=[directory / name for name in sources], hdl_toplevel=TOP,
                     build_args=list(_STOCK_ARGS), build_dir=directory, always=True,
                     timescale=("1ns", "1ns"), log_file=directory / "build.log")
    if not (directory / TOP).is_file():
        raise BuildFailed(f"The stock build failed: see {directory / 'build.log'}")
    return Model("stock", TOP, directory, False, time.monotonic() - begin, False)


def largest_file(directory):
    """Name and bytes of the largest C++ file that was generated, but for collections of others."""
    files = [file for file in Path(directory).rglob("*.cpp") if not file.name.endswith("__ALL.cpp")]
    file = max(files, key=lambda file: file.stat().st_size)
    return file.name, file.stat().st_size


def rates(builds, the_work, rounds, seed):
    """Best cycles per processor second and per second of each build, by name.

    Returns
    -------
    dict of str to (float, float, RtlResult)
    """
    best = {}
    for number in range(rounds):
        for name, model in builds.items():
            result = run_rtl(model, the_work.system, the_work.binary, seed=seed + number,
                             run_dir=RUN_ROOT / "bench-speed" / name, read_sram=False,
                             limit=the_work.cycles + 1000)
            rate = result.cycles_per_cpu_second, result.cycles_per_second, result
            if name not in best or rate[0] > best[name][0]:
                best[name] = rate
    return best


def check_seconds(the_work, rtl, seed):
    """Processor seconds of expanding the plan and comparing it, emulator and RTL."""
    emulator, = run_emulator(the_work.system, the_work.binary, garbage=seed,
                             limit=the_work.cycles + 1000)
    begin = time.process_time()
    report = check(the_work.system, the_work.binary, rtl=rtl, emulator=emulator,
                   plan=Events(**expand(the_work.plan, the_work.binary.steps)))
    seconds = time.process_time() - begin
    if not report.ok:
        raise RuntimeError(f"The run does not conform: {report.lines()}")
    return seconds, report.summary()


def measure(cfg, cycles, rounds, seed, report):
    """All figures.

    Parameters
    ----------
    cfg : hdl.arch.config.TileConfig
    cycles, rounds, seed : int
        Cycles of a run, runs of each build.
    report : callable
        Called with lines of progress.

    Returns
    -------
    dict
        Figures by name; JSON.
    """
    root = OUTPUT / "speed"
    shutil.rmtree(root, ignore_errors=True)
    one, four = single(cfg), all_to_all(cfg, _TILES)
    begin = time.monotonic()
    sources = {f"{unit}.v": text for unit, text in
               system_verilog(one, max_latency=MAX_LATENCY).items()}
    sources[f"{TOP}.sv"] = top_verilog(one, MAX_LATENCY)
    emission = time.monotonic() - begin
    builds = {"fast": build_rtl(one, root=root, report=report)}
    report("building the same Verilog by cocotb's own runner ...")
    builds["stock"] = stock_build(sources, root / "stock")
    builds["no trace"] = build_rtl(one, trace=False, name="bare", root=root, report=report)
    the_work = work(one, cycles, seed)
    best = rates(builds, the_work, rounds, seed)
    rtl_seconds = {name: the_work.cycles / rate for name, (rate, *_) in best.items()}
    checking, line = check_seconds(the_work, best["fast"][2].runs[0], seed)
    report(line)
    files = {name: largest_file(builds[name].directory) for name in ("fast", "stock")}
    model = build_rtl(four, root=root, report=report)
    several = rates({"4 tiles": model}, work(four, cycles, seed), rounds, seed)["4 tiles"]
    shutil.rmtree(root)     # the next time builds everything again
    return {
        "cycles": the_work.cycles, "rounds": rounds, "emission_seconds": emission,
        "build_seconds": {**{name: build.seconds for name, build in builds.items()},
                          "4 tiles": model.seconds},
        "largest_file": {name: {"name": file, "bytes": size} for name, (file, size)
                         in files.items()},
        "cycles_per_cpu_second": {**{name: rate for name, (rate, *_) in best.items()},
                                  "4 tiles": several[0]},
        "cycles_per_second": {**{name: rate for name, (_, rate, _) in best.items()},
                              "4 tiles": several[1]},
        "check_seconds": checking,
        "over_stock": best["fast"][0] / best["stock"][0],
        "conformance_cost": (rtl_seconds["fast"] + checking) / rtl_seconds["no trace"],
    }


def missed(figures):
    """Names of the figures that miss their bar."""
    return [name for name, met in (
        ("over_stock", figures["over_stock"] >= BARS["over_stock"]),
        ("conformance_cost", figures["conformance_cost"] <= BARS["conformance_cost"])) if not met]


def table(figures):
    """The figures as text."""
    lines = [f"{'':<12}{'build s':>10}{'cycles/s':>12}{'cycles/CPU s':>14}  largest generated file"]
    for name, seconds in figures["build_seconds"].items():
        file = figures["largest_file"].get(name)
        text = f"  {file['bytes'] / 1e6:.2f} MB {file['name']}" if file else ""
        lines.append(f"{name:<12}{seconds:>10.1f}{figures['cycles_per_second'][name]:>12,.0f}"
                     f"{figures['cycles_per_cpu_second'][name]:>14,.0f}{text}")
    lines.append(f"Verilog of the tile: {figures['emission_seconds']:.1f} s; runs of "
                 f"{figures['cycles']:,} cycles, best of {figures['rounds']}")
    lines.append(f"fast over stock: {figures['over_stock']:.2f} (at least {BARS['over_stock']}); "
                 f"recorder and check: {figures['conformance_cost']:.2f} times the time without "
                 f"(at most {BARS['conformance_cost']})")
    return "\n".join(lines)


def summary(figures):
    """One line."""
    names = missed(figures)
    verdict = "all bars met" if not names else "MISSED: " + ", ".join(names)
    rate = figures["cycles_per_second"]
    return (f"speed: {rate['fast']:,.0f} cycles/s on 1 tile, {rate['4 tiles']:,.0f} on {_TILES}; "
            f"{figures['over_stock']:.1f} times the stock build, conformance costs "
            f"{figures['conformance_cost']:.2f}; {verdict}")


def main(argv=None):
    """Print the table and the summary line, write the JSON file.

    Returns
    -------
    int
        0; 1 where a figure misses its bar.
    """
    parser = argparse.ArgumentParser(prog="bench speed", description=__doc__.split("\n")[0])
    parser.add_argument("--cycles", type=positive, default=20_000,
                        help="cycles of a run, at least (default: %(default)s)")
    parser.add_argument("--rounds", type=positive, default=3,
                        help="runs of each build (default: %(default)s)")
    parser.add_argument("--seed", type=positive, default=1, help="default: 1")
    parser.add_argument("--output", default=OUTPUT / "speed.json", help="JSON file to write")
    options = parser.parse_args(argv)
    figures = measure(DEMO, options.cycles, options.rounds, options.seed,
                      lambda text: print(text, file=sys.stderr, flush=True))
    print(table(figures))
    write_json(options.output, figures | {"bars": BARS, "missed": missed(figures)})
    print(summary(figures))
    return 1 if missed(figures) else 0
