"""``oncycle run``: a prompt and a model to text, on RTL or on the emulator, every event checked."""

import time
from pathlib import Path

from compiler.plan import expand
from compiler.program import load
from sim.build import find_verilator
from sim.commands.background import BackgroundBuild
from sim.commands.options import RUN_ROOT, add_seed, add_text, positive, prompts_of
from sim.commands.sessions import add_session, is_session, run_session
from sim.commands.waves import add_waves, build_options, check_waves, offer_waves, show_waves
from sim.compiling import MACHINE_TILES, machine
from sim.conformance import check
from sim.decoding import prepare
from sim.emulate import run_emulator
from sim.events import Events
from sim.progress import say
from sim.rtl.run import GRACE, run_rtl

__all__ = ["HELP", "add_arguments", "run"]

HELP = "continue a prompt on simulated tiles and prove that every event was on its planned cycle"

_FIRST_WORDS = 12       #: tokens that the emulator shows while the RTL is being built
_SHOWN = 1000           #: cycles of waves that are proposed


def add_arguments(parser):
    """See `sim.cli`."""
    add_text(parser)
    compiled = parser.add_mutually_exclusive_group()
    compiled.add_argument("--tiles", type=positive, default=MACHINE_TILES,
                          help="tiles, tensor-parallel: 1, 2 or 4 (default: %(default)s)")
    compiled.add_argument("--program", type=Path, metavar="FILE",
                          help="a program that `oncycle compile` made of the model, with its own "
                          "tiles and context, instead of compiling it")
    add_seed(parser, "the initial state of every register and memory")
    parser.add_argument("--engine", choices=["rtl", "emulator"], default="rtl",
                        help="what runs it (default: %(default)s)")
    add_session(parser)
    add_waves(parser)


def run(options):
    """See `sim.cli`."""
    if options.engine == "rtl":
        find_verilator()        # a tool that is missing shows now, not behind the emulator
    if is_session(options):
        return run_session(options)
    texts = prepare(prompts=prompts_of(options), tokens=options.tokens, batch=options.batch,
                    tiles=options.tiles, directory=options.model, context=options.context,
                    report=say, calibration=options.calibration,
                    program=options.program and load(options.program))
    program, steps, whole = texts.program, texts.steps, machine(len(texts.prompts))
    period = program.plan.cycles(1)
    check_waves(options, program.plan.cycles(steps), program.system.tiles)
    build = BackgroundBuild(whole, build_options(options)) if options.engine == "rtl" else None
    early = min(steps, max(map(len, texts.prompts)) + _FIRST_WORDS) if build else steps
    emulator, = run_emulator(program.system, program.binary, garbage=options.seed,
                             runs=[(0, early)], limit=period * early + GRACE)
    if build:
        for text in texts.decoded(emulator.host):
            say(f"emulator: {text} ...")
    if early < steps:
        emulator, = run_emulator(program.system, program.binary, garbage=options.seed,
                                 limit=period * steps + GRACE)
    rtl, speed = None, ""
    if build:
        begin = time.monotonic()
        result = run_rtl(build.model(), program.system, program.binary, run_dir=RUN_ROOT / "run",
                         machine=whole, seed=options.seed, limit=period * steps + GRACE,
                         report=say, waves=options.waves)
        rtl = result.runs[0]
        speed = f", RTL at {result.cycles_per_second:,.0f} cycles/s, " \
                f"{time.monotonic() - begin:.0f} s with loading and reading back"
    print("\n".join(_found(texts, (rtl or emulator).host, period)) + speed)
    if program.bounds:
        print(program.bounds.line(period))
    report = check(program.system, program.binary, rtl=rtl, emulator=emulator,
                   plan=Events(**expand(program.plan, steps)))
    for line in report.lines():
        print(line)
    if rtl:
        print("\n".join(show_waves(RUN_ROOT / "run", program, options.waves_tile)
                        if options.waves else offer_waves(RUN_ROOT / "run", _SHOWN)))
    return 0 if report.ok else 1


def _found(texts, host, period):
    """Lines: every text with its new tokens, and what they cost."""
    batch, tiles = len(texts.prompts), texts.program.system.tiles
    for number, (text, tokens) in enumerate(zip(texts.decoded(host), texts.new(host), strict=True)):
        yield text if batch == 1 else f"sequence {number}: {text}"
        yield f"tokens: {' '.join(map(str, tokens))}"
    if batch == 1:
        yield (f"{len(tokens)} new tokens on {tiles} tiles, {period:,} cycles a token, every token "
               "alike")
    else:
        yield (f"{batch} sequences of {texts.tokens} new tokens on {tiles} tiles, {period:,} "
               f"cycles a step, {period / batch:,.0f} a token, every step alike")
