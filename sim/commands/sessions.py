"""Turns of ``oncycle run``: a text that grows on one loaded machine, and what each turn cost."""

import time

from compiler.plan import expand
from compiler.program import load
from sim.commands.background import BackgroundBuild
from sim.commands.options import RUN_ROOT, positive, prompts_of
from sim.compiling import machine
from sim.conformance import check
from sim.emulate import LoadedEmulator
from sim.errors import UsageError
from sim.events import Events
from sim.progress import say
from sim.rtl.run import GRACE, run_rtl
from sim.session import PREFILL, open_session

__all__ = ["add_session", "is_session", "run_session"]


def add_session(parser):
    """Turns, who computes the K and V of prompts, and how far the context may grow."""
    parser.add_argument("--turn", action="append", metavar="TEXT",
                        help="text to put behind what is there, and continue; may be given several "
                        "times (the first begins the text where there is no --prompt)")
    parser.add_argument("--prefill", choices=PREFILL,
                        help="who computes K and V of the prompts: the tiles, a step a token, or "
                        "the host, which hands them over before each turn (default: tiles)")
    parser.add_argument("--context-limit", type=positive, metavar="N",
                        help="where a turn does not fit, go on with a program of twice the "
                        "context, up to N positions (default: the context stays)")


def is_session(options):
    """Whether ``options`` ask for more than one prompt that the tiles take in."""
    return bool(options.turn or options.prefill or options.context_limit)


def run_session(options):
    """All turns, on the emulator and then on RTL if asked; returns the exit code."""
    if options.waves:
        raise UsageError("Waves are of one run: leave --waves or the options of turns out")
    if (options.batch or 1) > 1 or len(options.prompt or ()) > 1:
        raise UsageError("Turns are of one sequence: leave --batch and further prompts out, or "
                         "--turn, --prefill and --context-limit")
    prompts = [*(options.prompt or []), *(options.turn or [])]
    session, checkpoint = open_session(
        prompts=prompts or prompts_of(options), tokens=options.tokens, tiles=options.tiles,
        directory=options.model, context=options.context, limit=options.context_limit,
        prefill=options.prefill or PREFILL[0], report=say, calibration=options.calibration,
        program=options.program and load(options.program))
    build = BackgroundBuild(machine(), {}) if options.engine == "rtl" else None
    turns, texts, emulated = _emulate(session, checkpoint.tokenizer.decode, options.seed)
    runs, speed = emulated, ""
    if build:
        for number, text in enumerate(texts, 1):
            say(f"emulator, turn {number}: {text}")
        begin = time.monotonic()
        first = turns[0].program
        result = run_rtl(
            build.model(), first.system, first.binary, run_dir=RUN_ROOT / "run", machine=machine(),
            seed=options.seed, limit=_limit(turns), report=say,
            runs=[(turn.first_step, turn.steps) for turn in turns],
            patches=[turn.patches for turn in turns],
            reloads={number: turn.program.binary for number, turn in enumerate(turns)
                     if turn.reload})
        runs = result.runs
        speed = f"RTL at {result.cycles_per_second:,.0f} cycles/s, " \
                f"{time.monotonic() - begin:.0f} s with loading and reading back"
    ok = len(runs) == len(emulated) and not session.left
    for number, (turn, text, seen, emulator) in enumerate(
            zip(turns, texts, runs, emulated, strict=False), 1):
        report = check(turn.program.system, turn.program.binary, emulator=emulator,
                       rtl=seen if build else None,
                       plan=Events(**expand(turn.program.plan, turn.steps, turn.first_step)))
        print("\n".join([f"turn {number}: {text}", *_cost(turn, seen, options.tokens),
                         *report.lines()]))
        ok &= report.ok and turn.agreed
    if speed:
        print(speed)
    return 0 if ok else 1


def _emulate(session, decode, seed):
    """Turns, their texts, and what the emulator did; the last is one that does not halt, if any."""
    loaded, turns, texts, observed = None, [], [], []
    while session.left:
        begin = len(session.text)
        turn = session.ask()
        if loaded is None:
            loaded = LoadedEmulator(turn.program.system, turn.program.binary, garbage=seed)
        elif turn.reload:
            loaded.reload(turn.program.binary)
        seen = loaded.run(turn.first_step, turn.steps, turn.patches, limit=_limit([turn]))
        turns.append(turn)
        observed.append(seen)
        if not seen.running:
            session.answer(seen)
        texts.append(decode(session.text[begin:]))
        if seen.running:
            break
    return turns, texts, observed


def _limit(turns):
    return max(turn.program.plan.cycles(turn.steps) for turn in turns) + GRACE


def _cost(turn, seen, tokens):
    """Lines: what the machine did, and what the host wrote before."""
    period, last = turn.program.plan.cycles(1), turn.first_step + turn.steps - 1
    sent = seen.host["cycle"][seen.host["tile"] == 0]       # four planes a token
    known = int(sent[-4 * tokens + 3]) if len(sent) == 4 * turn.steps else None
    yield (f"  steps {turn.first_step} to {last} of {_positions(turn.program)}, {period:,} cycles "
           "each; " + ("tokens are missing" if known is None else
                       f"first new token at cycle {known:,}"))
    written = ", ".join(f"{what} {size:,}" for what, size in turn.written.items())
    yield (f"  bytes written by the host: {written}; at most {turn.words:,} SRAM words a tile, "
           "a cycle each")
    if turn.reload:
        yield ("  K and V moved by the host: " + ("those that the tiles held" if turn.agreed else
                                                  "NOT those that the tiles held"))


def _positions(program):
    return program.symbols["context.forced tokens@0"].words
