"""``oncycle bench collectives``: cycles of collectives, beside a lower bound and what was chosen.

Every row is a program: verified, run on the emulator, its result equal to NumPy's and its events to
the plan's.  Those of some systems run on RTL too.
"""

import argparse
import sys
from collections import Counter
from dataclasses import replace
from itertools import groupby
from multiprocessing import get_context
from operator import itemgetter

import numpy as np

from compiler.collectives import COLLECTIVES, END, START, applicable, fastest, lower_bound
from compiler.plan import expand
from hdl.arch.config import all_to_all, dragonfly, pair, ring
from hdl.arch.presets import DEMO
from sim.bench.batch import Task, run_batch
from sim.bench.builds import drop_older
from sim.bench.report import OUTPUT, write_json
from sim.collectives import compile_collective, expected, operands, result_of
from sim.commands.options import RUN_ROOT
from sim.conformance import check
from sim.emulate import run_emulator
from sim.errors import UsageError
from sim.events import Events
from sim.report.table import table
from sim.rtl.build import build_rtl
from sim.rtl.fit import link_latencies

__all__ = ["BARS", "TOPOLOGIES", "main", "measure", "system_of"]

#: What the figures must reach.
BARS = {
    "chosen_is_best": 0.95,     # at least: share of the cells in which no algorithm is faster
    "wrong": 0,                 # rows whose result or events are not as they should be
}

TOPOLOGIES = ("all_to_all", "ring", "dragonfly")
#: Groups and their size, by tiles of a dragonfly.
_GROUPS = {4: (2, 2), 8: (2, 4), 16: (4, 4)}
#: What runs on RTL where nothing else is asked for.
_RTL_COLLECTIVE, _RTL_VECTORS = "all_reduce", 8
#: What is built: a link from every tile to every other, of which each topology uses some.
MACHINE = all_to_all(replace(DEMO, mem_words=256, icu_words=1024, ports=DEMO.ports[:1] * 15), 16)
_GRACE = 500        #: cycles behind the planned end after which a run is stopped

#: Published latencies of small messages, for context (secondary notes): (what, us).
ELSEWHERE = (("8x H800 or H200, NCCL 2.27, 8 bytes", 2.3), ("8x B200", 3.0),
             ("2x H100, NVLS tree, up to 64 KB", 6.0),
             ("H100 pair, 0.5 MB, vLLM one-stage", 7.0))

_HEADER = ("topology", "tiles", "collective", "vectors", "algorithm", "cycles", "estimate", "bound",
           "ratio", "payload B", "hops", "binds", "")


def system_of(topology, tiles):
    """Demo tiles with little SRAM and as many ports as they need, or None where there is none."""
    def tile(ports):
        # enough for 64 vectors from every tile, kept
        return replace(DEMO, mem_words=64 * tiles, icu_words=512 * tiles,
                       ports=DEMO.ports[:1] * ports)
    if topology == "all_to_all":
        return pair(tile(1)) if tiles == 2 else all_to_all(tile(tiles - 1), tiles)
    if topology == "ring":
        return ring(tile(2), tiles) if tiles > 2 else None
    if tiles not in _GROUPS:
        return None
    groups, size = _GROUPS[tiles]
    return dragonfly(tile(size - 1 + -(-(groups - 1) // size)), groups, size)


def part_of(machine, system):
    """``system`` of the tiles of ``machine``, each of its links one of those of ``machine``."""
    links = {(link.source, link.target): link for link in machine.links}
    return replace(system, tile=machine.tile,
                   links=tuple(links[link.source, link.target] for link in system.links))


def measure(case, system=None):
    """Rows of one cell: (topology, tiles, collective, vectors, seed).

    ``system``: instead of that of `system_of`.

    Returns
    -------
    list of (dict, Program)
        For each algorithm that applies: its figures, in which ``problems`` is a list of lines, and
        the program.
    """
    topology, tiles, collective, vectors, seed = case
    system = system or system_of(topology, tiles)
    bound = lower_bound(system, collective, vectors)
    choices = applicable(system, collective, vectors)
    chosen = fastest(choices).algorithm
    found = []
    for algorithm, cycles in choices:
        data = operands(system, collective, vectors, np.random.default_rng([seed, vectors]))
        program = compile_collective(system, collective, algorithm, data)
        seen, = run_emulator(system, program.binary, garbage=seed)
        events = expand(program.plan, 1)
        report = check(system, program.binary, plan=Events(**events), emulator=seen)
        problems = [] if report.ok else report.lines()
        if any(not np.array_equal(result_of(program, seen.sram, tile, want), want)
               for tile, want in enumerate(expected(collective, data))):
            problems.append("the result is not NumPy's")
        taken = int(events["writes"]["cycle"].max()) + 1 - int(events["issues"]["cycle"].min())
        found.append(({"topology": topology, "tiles": tiles, "collective": collective,
                       "vectors": vectors, "algorithm": algorithm, "cycles": taken,
                       "estimate": cycles, "bound": bound._asdict(),
                       "chosen": algorithm == chosen, "problems": problems}, program))
    return found


def _rows(case):
    return [row for row, _ in measure(case)]


def share_of_best(rows):
    """Share of the cells whose chosen algorithm is not beaten, and a line for every other."""
    beaten, cells = [], 0
    for cell, group in groupby(rows, itemgetter("topology", "tiles", "collective", "vectors")):
        mine, cells = list(group), cells + 1
        best = min(mine, key=itemgetter("cycles"))
        chosen = next(row for row in mine if row["chosen"])
        if chosen["cycles"] > best["cycles"]:
            beaten.append(f"{cell[1]} tiles, {cell[0]}, {cell[2]} of {cell[3]}: "
                          f"{chosen['algorithm']} takes {chosen['cycles']} cycles, "
                          f"{best['algorithm']} {best['cycles']}")
    return 1 - len(beaten) / max(1, cells), beaten


def conform(cells, seed):
    """Run the programs of ``cells`` on RTL, all in one build (`MACHINE`); returns the events that
    agree on plan, emulator and RTL, the differences by category, and a line for every problem."""
    model = build_rtl(MACHINE, name="collectives", report=lambda text: print(text, file=sys.stderr))
    drop_older(model)
    programs = [(row, program) for case in cells
                for row, program in measure(case, part_of(MACHINE, system_of(*case[:2])))]
    tasks = [Task(program.binary, program.plan.cycles(1) + _GRACE,
                  link_latencies(MACHINE, program.system)) for _, program in programs]
    observed = run_batch(model, MACHINE, tasks, run_dir=RUN_ROOT / "bench-collectives", seed=seed)
    equal, counts, problems = Counter(), Counter(), []
    for (row, program), rtl in zip(programs, observed, strict=True):
        emulator, = run_emulator(program.system, program.binary, garbage=seed)
        report = check(program.system, program.binary, plan=Events(**expand(program.plan, 1)),
                       emulator=emulator, rtl=rtl.runs[0])
        equal["programs"] += 1
        for kind in ("issues", "arrivals", "writes"):
            equal[kind] += min(one.equal[kind] for one in report.comparisons.values())
        counts.update(report.counts)
        lines = row["problems"] if report.ok else [*row["problems"], report.lines()[-1]]
        problems += [f"{row['tiles']} tiles, {row['topology']}, {row['collective']} of "
                     f"{row['vectors']}, {row['algorithm']}, on the machine: {line}"
                     for line in lines]
    return equal, counts, problems


def _line(row):
    bound = row["bound"]
    return (row["topology"], row["tiles"], row["collective"], row["vectors"], row["algorithm"],
            row["cycles"], row["estimate"], bound["cycles"],
            f"{row['cycles'] / bound['cycles']:.2f}", bound["payload"], bound["hops"],
            bound["binds"], "chosen" if row["chosen"] else "")


def _context(rows, mhz):
    """Lines of what was published elsewhere, and the range of ours at a clock."""
    chosen = [row for row in rows if row["chosen"] and row["collective"] == "all_reduce"]
    lines = ["", f"for context: small collectives elsewhere, and our all_reduce at {mhz:,} MHz, a "
                 "clock that is an assumption of this line alone"]
    lines += [f"  {us:>7.2f} us  {what}" for what, us in ELSEWHERE]
    lines += [f"  {row['cycles'] / mhz:>7.2f} us  {row['tiles']} tiles, {row['topology']}, "
              f"{row['bound']['payload']:,} bytes: {row['cycles']:,} cycles, {row['algorithm']}"
              for row in chosen if row["vectors"] in (1, 64) and row["tiles"] in (8, 16)]
    return lines


def _numbers(text):
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"Numbers must be separated by commas, not {text!r}") from None


def _options(arguments):
    parser = argparse.ArgumentParser(prog="oncycle bench collectives", description=__doc__)
    parser.add_argument("--topologies", default=",".join(TOPOLOGIES), help="default: all three")
    parser.add_argument("--tiles", default="2,4,8,16", help="default: %(default)s")
    parser.add_argument("--vectors", default="1,2,4,8,16,32,64",
                        help="of four byte planes each (default: 1,2,4,8,16,32,64)")
    parser.add_argument("--rtl", choices=("none", "some", "all"), default="some",
                        help="what runs on RTL too; some: all_reduce of 8 vectors (default)")
    parser.add_argument("--mhz", type=int, default=1000,
                        help="clock of the lines for context (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    return parser.parse_args(arguments)


def main(arguments):
    """Run the bench; returns 0, or 1 where a figure misses its bar."""
    options = _options(arguments)
    topologies = options.topologies.split(",")
    if unknown := set(topologies) - set(TOPOLOGIES):
        raise UsageError(f"Topologies must be among {', '.join(TOPOLOGIES)}, not "
                         f"{', '.join(sorted(unknown))}")
    systems = [(topology, tiles) for topology in topologies for tiles in _numbers(options.tiles)
               if system_of(topology, tiles)]
    cells = [(*system, collective, vectors, options.seed) for system in systems
             for collective in COLLECTIVES for vectors in _numbers(options.vectors)]
    print(f"cycles and bound: from the {START} to {END}")
    with get_context("spawn").Pool(options.jobs) as pool:
        rows = []
        for found in pool.imap(_rows, cells):
            rows += found
            print(f"{len(rows)} rows", file=sys.stderr, end="\r")
    print("\n".join(table(_HEADER, map(_line, rows))))
    problems = [f"{row['tiles']} tiles, {row['topology']}, {row['algorithm']}: {line}"
                for row in rows for line in row["problems"]]
    share, beaten = share_of_best(rows)
    print("\n".join([*beaten, *_context(rows, options.mhz)]))
    equal, counts = Counter(), Counter()
    if options.rtl != "none":
        mine = [cell for cell in cells if options.rtl == "all"
                or cell[2:4] == (_RTL_COLLECTIVE, _RTL_VECTORS)]
        equal, counts, wrong = conform(mine, options.seed)
        problems += wrong
        differences = ", ".join(f"{count} {name.replace('_', '-')}"
                                for name, count in counts.items())
        print(f"\nRTL: {equal['programs']} programs of {len(mine)} cells on {MACHINE.tiles} tiles: "
              f"{equal['issues']:,} instructions, {equal['arrivals']:,} link vectors, "
              f"{equal['writes']:,} SRAM writes; {differences}")
    write_json(OUTPUT / "collectives.json", {
        "bars": BARS, "seed": options.seed, "start": START, "end": END, "rows": rows,
        "chosen_is_best": share, "rtl": {**equal, **counts}, "problems": problems})
    for line in problems:
        print(f"wrong: {line}", file=sys.stderr)
    missed = share < BARS["chosen_is_best"] or len(problems) > BARS["wrong"]
    print(f"collectives: {len(rows)} rows; the chosen algorithm is the best in {share:.1%} of "
          f"{len(cells)} cells (at least {BARS['chosen_is_best']:.0%}); {len(problems)} wrong")
    return 1 if missed else 0
