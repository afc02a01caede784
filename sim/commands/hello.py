"""``oncycle hello``: the smallest tour: two tiles, one product, every event checked."""

import sys

import numpy as np

from compiler.plan import expand
from compiler.program import save
from hdl.arch.config import pair
from hdl.arch.encoding import decode, to_text
from hdl.arch.presets import NANO
from hdl.arch.queues import queues
from sim.build.model import BUILD_ROOT
from sim.commands.options import RUN_ROOT, add_seed
from sim.commands.waves import show_waves
from sim.conformance import check
from sim.emulate import run_emulator
from sim.events import Events
from sim.products import compile_product, result_of
from sim.rtl.build import build_rtl
from sim.rtl.run import run_rtl

__all__ = ["HELP", "add_arguments", "run"]

HELP = "two nano tiles multiply a vector, half of which comes over a link"

_SIZE = 8
_LIMIT = 10_000
_VISIBLE = 0        #: tile whose waves are shown
#: Queues of tile 0 whose issues are listed, and those of the tile that sends to it.
_LISTED = {0: ("link0.recv", "mem0.write", "mem1.write", "mxm0.act"), 1: ("link0.send",)}


def add_arguments(parser):
    """See `sim.cli`."""
    add_seed(parser, "operands and of the machine's initial state")


def hello_program(seed):
    """The program, and the vector that it must compute.

    Returns
    -------
    (Program, array of float32 (8,))
    """
    return compile_product(pair(NANO), _SIZE, _SIZE, np.random.default_rng(seed))


def run(options):
    """See `sim.cli`."""
    program, expected = hello_program(options.seed)
    system, binary = program.system, program.binary
    path = BUILD_ROOT / "hello.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    save(program, path)
    print(f"{system.tiles} tiles of {system.tile.lanes} lanes: y = x W, {_SIZE} x {_SIZE}; each "
          "tile holds half of x, sends it to the other and makes half of y")
    emulator, = run_emulator(system, binary, garbage=options.seed, runs=[(0, 1)], limit=_LIMIT)
    model = build_rtl(system, kind="waves", report=lambda line: print(line, file=sys.stderr))
    result = run_rtl(model, system, binary, run_dir=RUN_ROOT / "hello", seed=options.seed,
                     limit=_LIMIT, waves=(0, program.plan.cycles(1)))
    rtl = result.runs[0]
    planned = Events(**expand(program.plan, 1))
    _print_listing(program, planned, rtl.events)
    computed = result_of(program, rtl.sram, _SIZE)
    print("y on the tiles:", " ".join(f"{value:.0f}" for value in computed))
    print("y in NumPy:    ", " ".join(f"{value:.0f}" for value in expected))
    report = check(system, binary, plan=planned, emulator=emulator, rtl=rtl)
    for line in report.lines():
        print(line)
    print("\n".join(show_waves(RUN_ROOT / "hello", program, _VISIBLE)))
    print(f"next: .venv/bin/python -m sim disasm {path.relative_to(BUILD_ROOT.parent)} --tile 0")
    return 0 if report.ok and np.array_equal(computed, expected) else 1


def _print_listing(program, planned, observed):
    """The events around the transfer to tile 0, each as planned and as the RTL showed it."""
    cfg = program.system.tile
    names = [queue.name for queue in queues(cfg)]
    kinds = {queue.name: queue.kind for queue in queues(cfg)}
    words = {(issue.tile, issue.queue, issue.start): issue.word
             for region, _, _ in program.plan.root.walk() for issue in region.issues}
    rows = []
    for event in planned.issues:
        tile, queue = int(event["tile"]), names[event["unit"]]
        if queue in _LISTED[tile]:
            text = to_text(decode(cfg, kinds[queue], words[tile, queue, int(event["cycle"])]))
            rows.append((int(event["cycle"]), tile, queue, text, _seen(observed.issues, event)))
    for event in planned.arrivals:
        if event["tile"] == 0:
            rows.append((int(event["cycle"]), 0, "link0", "(a vector arrives)",
                         _seen(observed.arrivals, event)))
    print(f"{'planned':>7} {'observed':>8}  tile  {'queue':<10}  instruction")
    for cycle, tile, queue, text, seen in sorted(rows):
        print(f"{cycle:>7} {seen:>8}  {tile:>4}  {queue:<10}  {text}")


def _seen(table, event):
    """Cycle at which the RTL showed the event, or a dash."""
    same = (table["tile"] == event["tile"]) & (table["unit"] == event["unit"]) & \
        (table["cycle"] == event["cycle"])
    return str(table["cycle"][same][0]) if same.any() else "-"
