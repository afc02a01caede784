"""``oncycle board``: a program on a real board, over a serial line."""

import asyncio
import time
from pathlib import Path

import numpy as np

from compiler.program import load
from hdl.arch.bridge import BAUD
from hdl.arch.errors import Fault
from sim.bridge.board import Board
from sim.bridge.link import SerialLink
from sim.bridge.port import SerialPort
from sim.commands.options import add_program, add_seed, add_steps, positive, steps_of
from sim.compiling import DEFAULT_MODEL
from sim.decoding import prepare
from sim.emulate import run_emulator
from sim.image import initial_sram
from sim.progress import Progress, say
from sim.rtl.run import GRACE

__all__ = ["HELP", "add_arguments", "run"]

HELP = "load a program into a board over a serial line and run it"


def add_arguments(parser):
    """See `sim.cli`."""
    add_program(parser)
    parser.add_argument("--port", required=True, metavar="DEVICE",
                        help="serial line of the board, for example /dev/ttyUSB0")
    parser.add_argument("--baud", type=positive, default=BAUD,
                        help="bits a second, as the board was built for (default: %(default)s)")
    add_steps(parser)
    add_seed(parser, "what SRAM holds where the program puts nothing")
    parser.add_argument("--prompt", metavar="TEXT",
                        help="text to continue, where the program is that of a model")
    parser.add_argument("--tokens", type=positive, default=24,
                        help="new tokens behind the prompt (default: %(default)s)")
    parser.add_argument("--model", type=Path, default=DEFAULT_MODEL,
                        help="the model of the program, for its tokens")
    parser.add_argument("--check", action="store_true",
                        help="compare vectors, SRAM and faults with the emulator")


def run(options):
    """See `sim.cli`."""
    program, texts = load(options.program), None
    steps = steps_of(options, program.binary)
    if options.prompt is not None:
        texts = prepare(prompts=[options.prompt], tokens=options.tokens, directory=options.model,
                        system=program.system, program=program)
        program, steps = texts.program, (0, texts.steps)
    with SerialPort(options.port, options.baud) as port:
        seen, sram = asyncio.run(_run(SerialLink(port), program, steps, options))
    if texts:
        print(*texts.decoded(seen.host), sep="\n")
    good = not seen.running and not any(seen.faults)
    for tile, queue in seen.running:
        print(f"tile {tile}: {queue} has not halted")
    for tile, bits in enumerate(seen.faults):
        for fault in Fault:
            if bits >> fault & 1:
                print(f"tile {tile}: {fault.name}")
    print(f"{seen.cycles:,} cycles, {len(seen.host)} vectors to the host")
    if options.check:
        differences = _differences(program, steps, options.seed, seen, sram)
        good = good and not differences
        print(f"compared with the emulator: {', '.join(differences) or 'all equal'}")
    return 0 if good else 1


async def _run(link, program, steps, options):
    """The `BoardRun`, and SRAM behind it if it is to be checked."""
    board = Board(link, program.system)
    await board.connect()
    begin = time.monotonic()
    loader = await board.load(program.binary, initial_sram(program.system, program.binary,
                                                           options.seed))
    await board.play(loader.clear())
    say(f"loaded in {time.monotonic() - begin:.1f} s: {link.requests} requests, {link.repeats} "
        "sent again")
    progress = Progress("board")
    seen = await board.run(loader, *steps, limit=program.plan.cycles(steps[1]) + GRACE,
                           progress=progress)
    progress.done(seen.cycles)
    readable = options.check and not seen.running
    return seen, await board.read_sram(loader) if readable else None


def _differences(program, steps, seed, seen, sram):
    """What the emulator does otherwise than the board."""
    limit = program.plan.cycles(steps[1]) + GRACE
    expected, = run_emulator(program.system, program.binary, garbage=seed, runs=[steps],
                             limit=limit)
    found = []
    if not np.array_equal(expected.host["data"], seen.host["data"]):
        found.append("other vectors to the host")
    if sram is None:
        found.append("SRAM was not read")
    elif not np.array_equal(expected.sram[0], sram[0]):
        found.append(f"{(expected.sram[0] != sram[0]).any(axis=2).sum()} other words of SRAM")
    if expected.faults != seen.faults:
        found.append("other faults")
    return found
