"""``oncycle run``: a prompt and a model to text, on RTL or on the emulator, every event checked."""

import sys
import threading
import time

from compiler.plan import expand
from sim.commands.options import RUN_ROOT, add_text, positive
from sim.commands.waves import add_waves, build_options, check_waves, show_waves
from sim.conformance import check
from sim.decoding import MACHINE_TILES, host_tokens, machine, prepare
from sim.emulate import run_emulator
from sim.events import Events
from sim.rtl.build import build_rtl
from sim.rtl.run import GRACE, run_rtl

__all__ = ["HELP", "add_arguments", "run"]

HELP = "continue a prompt on simulated tiles and prove that every event was on its planned cycle"

_FIRST_WORDS = 12       #: tokens that the emulator shows while the RTL is being built


def add_arguments(parser):
    """See `sim.cli`."""
    add_text(parser)
    parser.add_argument("--tiles", type=positive, default=MACHINE_TILES,
                        help="tiles, tensor-parallel: 1, 2 or 4 (default: %(default)s)")
    parser.add_argument("--seed", type=positive, default=1,
                        help="of the initial state of every register and memory")
    parser.add_argument("--engine", choices=["rtl", "emulator"], default="rtl",
                        help="what runs it (default: %(default)s)")
    add_waves(parser)


def _say(line):
    print(line, file=sys.stderr, flush=True)


class _Build(threading.Thread):
    """The simulator of the machine, built while something else goes on."""

    def __init__(self, options):
        super().__init__(daemon=True)
        self._options = options
        self._model = self._error = None
        self.start()

    def run(self):
        try:
            self._model = build_rtl(machine(), report=_say, **self._options)
        except Exception as error:      # raised again where it is waited for
            self._error = error

    def model(self):
        """The build; raises what broke it."""
        self.join()
        if self._error:
            raise self._error
        return self._model


def run(options):
    """See `sim.cli`."""
    text = prepare(prompt=options.prompt, tokens=options.tokens, tiles=options.tiles,
                   directory=options.model, context=options.context, report=_say)
    program = text.program
    period = program.plan.cycles(1)
    check_waves(options, program.plan.cycles(text.steps), program.system.tiles)
    build = _Build(build_options(options)) if options.engine == "rtl" else None
    decode = text.checkpoint.tokenizer.decode
    early = min(text.steps, len(text.prompt) + _FIRST_WORDS) if build else text.steps
    emulator, = run_emulator(program.system, program.binary, garbage=options.seed,
                             runs=[(0, early)], limit=period * early + GRACE)
    if build:
        _say(f"emulator: {decode(text.prompt + _new(text, emulator))} ...")
    if early < text.steps:
        emulator, = run_emulator(program.system, program.binary, garbage=options.seed,
                                 limit=period * text.steps + GRACE)
    rtl, speed = None, ""
    if build:
        begin = time.monotonic()
        result = run_rtl(build.model(), program.system, program.binary, run_dir=RUN_ROOT / "run",
                         machine=machine(), seed=options.seed,
                         limit=period * text.steps + GRACE, report=_say,
                         waves=options.waves)
        rtl = result.runs[0]
        speed = f", RTL at {result.cycles_per_second:,.0f} cycles/s, " \
                f"{time.monotonic() - begin:.0f} s with loading and reading back"
    seen = rtl or emulator
    tokens = _new(text, seen)
    print(decode(text.prompt + tokens))
    print(f"tokens: {' '.join(map(str, tokens))}")
    print(f"{len(tokens)} new tokens on {program.system.tiles} tiles, {period:,} cycles a token, "
          f"every token alike{speed}")
    report = check(program.system, program.binary, rtl=rtl, emulator=emulator,
                   plan=Events(**expand(program.plan, text.steps)))
    for line in report.lines():
        print(line)
    if options.waves:
        print("\n".join(show_waves(RUN_ROOT / "run", program, options.waves_tile)))
    return 0 if report.ok else 1


def _new(text, seen):
    """Tokens chosen behind the prompt."""
    return host_tokens(seen.host)[len(text.prompt) - 1:]
