"""``oncycle bench full``: a tile of 320 lanes is emitted and built, and computes a product."""

import argparse
import sys
import time

import numpy as np

from compiler.plan import expand
from hdl.arch.config import single
from hdl.arch.presets import FULL
from sim.bench.builds import drop_older
from sim.bench.report import finish
from sim.commands.options import RUN_ROOT, positive
from sim.conformance import check
from sim.emulate import run_emulator
from sim.events import Events
from sim.products import compile_product, result_of
from sim.rtl.build import build_rtl
from sim.rtl.emitted import emitted
from sim.rtl.run import GRACE, run_rtl

__all__ = ["BARS", "main", "misses", "run_product"]

#: What the figures must reach.
BARS = {
    "megabytes": 20,    # at most: Verilog text of the tile and all its units
}
#: Of Verilator: these passes take many minutes over vectors of 10,240 bits.
_OPTIONS = ("-fno-dfg", "-fno-func-opt")


def run_product(model, system, size, seed, run_dir):
    """A random product of ``size`` rows and columns on RTL, emulator and plan.

    Returns
    -------
    (sim.conformance.Report, bool)
        How they compare, and whether the RTL's result is the exact one.
    """
    program, exact = compile_product(system, size, size, np.random.default_rng(seed))
    limit = program.plan.cycles(1) + GRACE
    emulator, = run_emulator(system, program.binary, garbage=seed, runs=[(0, 1)], limit=limit)
    rtl, = run_rtl(model, system, program.binary, run_dir=run_dir, seed=seed, limit=limit).runs
    report = check(system, program.binary, plan=Events(**expand(program.plan, 1)),
                   emulator=emulator, rtl=rtl)
    return report, np.array_equal(result_of(program, rtl.sram, size), exact)


def misses(record):
    """One line for every figure that is not as it should be."""
    found = []
    if record["megabytes"] > BARS["megabytes"]:
        found.append(f"{record['megabytes']:.1f} MB of Verilog, more than {BARS['megabytes']}")
    if not record["exact"]:
        found.append("the product is another one than in NumPy")
    if not record["ok"]:
        found.append(record["conformance"])
    return found


def main(arguments):
    """Run the bench; returns 0, or 1 where something is not as it should be."""
    parser = argparse.ArgumentParser(prog="oncycle bench full", description=__doc__)
    parser.add_argument("--seed", type=positive, default=1, help="default: %(default)s")
    options = parser.parse_args(arguments)
    system = single(FULL)
    begin = time.monotonic()
    units = emitted(system, packets=None, trace=True, max_latency=64)
    emission = time.monotonic() - begin
    model = build_rtl(system, name="full", args=_OPTIONS,
                      report=lambda text: print(text, file=sys.stderr))
    drop_older(model)
    begin = time.monotonic()
    report, exact = run_product(model, system, FULL.lanes, options.seed, RUN_ROOT / "bench-full")
    record = {"lanes": FULL.lanes, "units": len(units),
              "lines": sum(text.count("\n") for text in units.values()),
              "megabytes": sum(map(len, units.values())) / 1e6,
              "emission_seconds": round(emission, 1), "build_seconds": model.seconds,
              "run_seconds": round(time.monotonic() - begin, 1),
              "exact": exact, "ok": report.ok, "conformance": report.lines()[0]}
    for name, value in record.items():
        print(f"{name:>18}  {value}")
    return finish("full", record | {"bars": BARS}, misses(record),
                  f"{FULL.lanes} lanes, {FULL.lanes} x {FULL.lanes} product "
                  f"{'exact' if exact else 'WRONG'}")
