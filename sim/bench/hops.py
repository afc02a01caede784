"""``oncycle bench hops``: cycles from SRAM to SRAM over one, two and three links.

Vectors are passed on by FORWARD, or kept in SRAM on the way.  And a tile multiplies a matrix while
others' vectors pass through it.
"""

import argparse
import sys
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from compiler.lower.builder import Builder
from compiler.lower.chain import At, Chain
from compiler.lower.layout import vector_quads
from compiler.lower.matvec import matvec_graph
from compiler.plan import expand, stepped
from compiler.program import from_plan
from compiler.schedule.listing import schedule
from compiler.verify import verify
from hdl.arch.config import ring
from hdl.arch.presets import DEMO
from hdl.arch.timing import rules
from sim.bench.batch import Task, run_batch
from sim.bench.builds import drop_older
from sim.bench.report import OUTPUT, write_json
from sim.commands.options import RUN_ROOT
from sim.conformance import check
from sim.emulate import run_emulator
from sim.events import Events
from sim.report.table import table
from sim.rtl.build import build_rtl

__all__ = ["BARS", "SYSTEM", "busy_program", "hop_program", "main", "own_issues"]

#: What the figures must reach.
BARS = {
    "moved_issues": 0,      # of a tile that multiplies, by vectors that pass through
    "wrong": 0,             # events that differ on plan, emulator and RTL, or results
}

#: Demo tiles with little SRAM.
SYSTEM = ring(replace(DEMO, mem_words=256, ports=DEMO.ports[:2]), 4)
WAYS = ("forward", "store")
HOPS = (1, 2, 3)
WORDS = 40          #: vectors that pass through the tile that multiplies
_SHAPE = (64, 64)   #: of its matrix
_GRACE = 500        #: cycles behind the planned end after which a run is stopped


class Case(NamedTuple):
    """A program, what it is, and where (tile, `At`) which words shall be in the end."""
    name: str
    program: object
    results: list


def hop_program(way, hops, planes, words):
    """Tile 0 sends a vector of ``planes`` (1 or 4) streams over ``hops`` links.

    Parameters
    ----------
    way : str
        What tiles between do: ``"forward"``, or ``"store"`` it in SRAM and send it from there.
    words : array of uint8 (planes, lanes)

    Returns
    -------
    Case
    """
    builder, cfg = Builder(SYSTEM), SYSTEM.tile
    first, last = (quad[:planes] for quad in (vector_quads(cfg)[0], vector_quads(cfg)[-1]))
    builder.memory.place("x", 0, first, 1, words[:, None])
    for tile in range(1, hops + 1):
        # each tile sends from where it has put it; the next is then nearer to the links
        builder.memory.place("y", tile, last, 1)
    _send(builder, 0, At(first, 0))
    for tile in range(1, hops + 1):
        if way == "forward" and tile < hops:
            for _ in range(planes):
                _forward(builder, tile)
            continue
        receive = Chain(cfg, f"receive at tile {tile}", tile)
        receive.write(receive.recv(0, quad=planes == 4), At(last, 0))
        builder.add(receive.cluster())
        if tile < hops:
            _send(builder, tile, At(last, 0))
    body = schedule(cfg, builder.clusters, builder.edges)
    return Case(f"{way} {hops}", from_plan(stepped(SYSTEM, body), builder.memory),
                [(hops, At((name,), 0), word) for name, word in zip(last, words, strict=True)])


def _send(builder, tile, at):
    chain = Chain(builder.cfg, f"send of tile {tile}", tile)
    chain.send(chain.read(at), [0])
    builder.add(chain.cluster())


def _forward(builder, tile):
    chain = Chain(builder.cfg, f"forward at tile {tile}", tile)
    chain.forward(0, [0])
    builder.add(chain.cluster())


def busy_program(rng, words, traffic):
    """Tile 0 multiplies a random matrix; with ``traffic``, ``words`` (n, lanes) go from tile 3
    through it to tile 1.

    Returns
    -------
    Case
    """
    cfg = SYSTEM.tile
    weights = rng.integers(-128, 128, _SHAPE).astype(np.int8)
    product = matvec_graph(SYSTEM.restrict(1), weights, rng.integers(-32639, 32640, _SHAPE[0]))
    through = Builder(SYSTEM)
    through.memory.place("through", 3, ("mem0",), len(words), [words])
    through.memory.place("through", 1, ("mem7",), len(words))
    for number in range(len(words) if traffic else 0):
        _send(through, 3, At(("mem0",), number))
        _forward(through, 0)
        receive = Chain(cfg, f"receive {number}", 1)
        receive.write(receive.recv(0), At(("mem7",), number))
        through.add(receive.cluster())
    # without rounds of improvement, which end everything together, nothing moves that need not
    body = schedule(cfg, product.clusters + through.clusters, product.edges + through.edges,
                    rounds=0)
    program = from_plan(stepped(SYSTEM, body), through.memory)
    product.memory.fill(program.binary)
    return Case("product" + " and traffic" * traffic, program,
                [(1, At(("mem7",), number), word) for number, word in enumerate(words) if traffic])


def own_issues(case):
    """Issues of tile 0 but for FORWARDs: a set of (cycle, queue, op)."""
    region = case.program.plan.root.children[0]
    return {(issue.start, issue.queue, issue.op) for issue in region.issues
            if issue.tile == 0 and issue.op != "FORWARD"}


def cycles_of(case):
    """Cycles from the issue of the first READ to the last SRAM write."""
    events = expand(case.program.plan, 1)
    return int(events["writes"]["cycle"].max()) - int(events["issues"]["cycle"].min())


def differences(case, seed, rtl=None):
    """Lines for what differs on plan, emulator and RTL, and for words that are not as they
    should be."""
    program = case.program
    emulator, = run_emulator(SYSTEM, program.binary, garbage=seed)
    report = check(SYSTEM, program.binary, plan=Events(**expand(program.plan, 1)),
                   emulator=emulator, rtl=rtl)
    found = [] if report.ok else [f"{case.name}: {line}" for line in report.lines()]
    mems = SYSTEM.tile.slices("mem")
    for name, seen in (("emulator", emulator), *([("RTL", rtl)] if rtl else [])):
        for tile, at, word in case.results:
            if not np.array_equal(seen.sram[tile][mems.index(at.slices[0]), at.address], word):
                found.append(f"{case.name}: {name} has other words on tile {tile}")
    return found, report.summary()


def cases(seed):
    """All programs: ({(planes, way, hops): Case}, [without, with traffic])."""
    rng, lanes = np.random.default_rng([seed, 0]), SYSTEM.tile.lanes
    single = {(planes, way, hops): hop_program(way, hops, planes,
                                               rng.integers(0, 256, (planes, lanes), np.uint8))
              for planes in (1, 4) for way in WAYS for hops in HOPS}
    words = rng.integers(0, 256, (WORDS, lanes), np.uint8)
    return single, [busy_program(np.random.default_rng([seed, 1]), words, traffic)
                    for traffic in (False, True)]


def main(arguments):
    """Run the bench; returns 0, or 1 where a figure misses its bar."""
    parser = argparse.ArgumentParser(prog="oncycle bench hops", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    parser.add_argument("--rtl", choices=("none", "all"), default="all",
                        help="whether the programs run on RTL too (default: all)")
    options = parser.parse_args(arguments)
    single, busy = cases(options.seed)
    every = [*single.values(), *busy]
    for case in every:
        verify(SYSTEM, case.program.binary)
    observed = _on_rtl(every, options.seed) if options.rtl == "all" else [None] * len(every)
    checked = [differences(case, options.seed, rtl)
               for case, rtl in zip(every, observed, strict=True)]
    problems = [line for lines, _ in checked for line in lines]
    port = SYSTEM.tile.port(0)
    print(f"links of {port.bytes} bytes a cycle and latency {SYSTEM.links[0].latency}; vectors of "
          f"{SYSTEM.tile.lanes} bytes; from the issue of the first READ to the last SRAM write")
    print("\n".join(table(("hops", *(f"{planes} plane(s), {way}" for planes in (1, 4)
                                     for way in WAYS)),
                          [(hops, *(cycles_of(single[planes, way, hops]) for planes in (1, 4)
                                    for way in WAYS)) for hops in HOPS])))
    hop = port.flits(SYSTEM.tile.lanes) + SYSTEM.links[0].latency + \
        rules(SYSTEM.tile).arrival_to_recv
    print(f"a hop by FORWARD: {hop} cycles (flits, latency, arrival to FORWARD)")
    alone, together = map(own_issues, busy)
    moved = len(alone ^ together)
    print(f"tile 0 multiplies {_SHAPE[0]} x {_SHAPE[1]}: {len(alone)} issues, {moved} of them "
          f"moved by {WORDS} vectors that pass through\n{checked[-1][1]}")
    write_json(OUTPUT / "hops.json", {
        "bars": BARS, "seed": options.seed, "rtl": options.rtl, "moved_issues": moved,
        "cycles": [{"planes": planes, "way": way, "hops": hops, "cycles": cycles_of(case)}
                   for (planes, way, hops), case in single.items()], "problems": problems})
    for line in problems:
        print(f"wrong: {line}", file=sys.stderr)
    print(f"hops: {len(every)} programs, {moved} issues moved, {len(problems)} wrong")
    return int(moved > BARS["moved_issues"] or len(problems) > BARS["wrong"])


def _on_rtl(every, seed):
    model = build_rtl(SYSTEM, name="hops", report=lambda text: print(text, file=sys.stderr))
    drop_older(model)
    tasks = [Task(case.program.binary, case.program.plan.cycles(1) + _GRACE) for case in every]
    return [result.runs[0] for result in
            run_batch(model, SYSTEM, tasks, run_dir=RUN_ROOT / "bench-hops", seed=seed)]
