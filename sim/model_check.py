"""A model on several tile counts: a conformance line each, and the plain model's bits."""

import numpy as np

from compiler.plan import expand
from compiler.reference import PlainModel
from sim.compiling import machine, quantised
from sim.conformance import check
from sim.decoding import host_tokens, prepare, prompt_words, written_vectors
from sim.emulate import run_emulator
from sim.events import Events
from sim.progress import say as show
from sim.rtl.run import GRACE, run_rtl

__all__ = ["check_model"]

#: The second text, which the loaded machine decodes behind the first, without reset.
_SECOND_PROMPT = "Fear not"


def check_model(build, *, prompt, tokens, tiles, seeds, directory, context, run_root, say,
                calibration=None):
    """Decode two texts, one after the other, on every tile count and with every seed.

    Parameters
    ----------
    build : callable or None
        Gives a `sim.build.Model` of `sim.compiling.machine`; called when everything is compiled.
        None: nothing runs on RTL, the emulator alone is compared.
    prompt : str
        Of the first text.
    tokens : int
        New tokens of the first text; the second has an eighth of them.
    tiles : list of int
    seeds : int
        Seeds 1 .. seeds of the initial state.
    directory : path
        Of a checkpoint.
    context : int
    run_root : pathlib.Path
    say : callable
        Called with every line of the report.
    calibration : path, optional
        As of `sim.decoding.prepare`.

    Returns
    -------
    bool
        Whether every run was as planned and gave the plain model's tokens and logits.
    """
    asked = ((prompt, tokens), (_SECOND_PROMPT, max(1, tokens // 8)))
    texts_by_count = [[prepare(prompt=words, tokens=number, tiles=count, directory=directory,
                               context=context, report=show, calibration=calibration)
                       for words, number in asked]
                      for count in tiles]
    model = None if build is None else build()
    ok, by_shards = True, {}
    for count, texts in zip(tiles, texts_by_count, strict=True):
        shards = texts[0].program.shards
        if shards not in by_shards:
            by_shards[shards] = _plain(texts, directory, context, calibration)
            decode = texts[0].checkpoint.tokenizer.decode
            for text, (chosen, _) in zip(texts, by_shards[shards], strict=True):
                say(f"plain model: {decode(text.prompt + chosen[len(text.prompt) - 1:])}")
        expected = by_shards[shards]
        for seed in range(1, seeds + 1):
            ok &= _check(model, texts, expected, seed, run_root / f"model-{count}", say)
    return ok


def _plain(texts, directory, context, calibration):
    """Chosen token and logits of every step, by text."""
    checkpoint = texts[0].checkpoint
    model = quantised(checkpoint, directory, texts[0].program.system.tile.lanes, calibration)
    found = []
    for text in texts:
        plain, chosen, logits = PlainModel(model, context, texts[0].program.shards), [], []
        for position in range(text.steps):
            token = text.prompt[position] if position < len(text.prompt) else chosen[-1]
            logits.append(plain.step(token, position))
            chosen.append(plain.token)
        found.append((chosen, np.array(logits)))
    return found


def _check(build, texts, expected, seed, run_dir, say):
    program = texts[0].program
    system, binary = program.system, program.binary
    runs = [(0, text.steps) for text in texts]
    patches = [[], prompt_words(program, texts[1].prompt, texts[0].steps)]
    limit = program.plan.cycles(max(steps for _, steps in runs)) + GRACE
    observed = {"emulator": run_emulator(system, binary, garbage=seed, runs=runs, limit=limit,
                                         patches=patches)}
    engine = "emulator"
    if build is not None:
        result = run_rtl(build, system, binary, run_dir=run_dir, machine=machine(), seed=seed,
                         runs=runs, limit=limit, patches=patches, report=show)
        observed["rtl"] = result.runs
        engine = f"RTL at {result.cycles_per_second:,.0f} cycles/s"
    ok = all(len(seen) == len(runs) for seen in observed.values())
    for number, sides in enumerate(zip(*observed.values(), strict=False)):
        report = check(system, binary, plan=Events(**expand(program.plan, runs[number][1])),
                       **dict(zip(observed, sides, strict=True)))
        chosen, logits = expected[number]
        seen = sides[-1]
        same = {"tokens": host_tokens(seen.host) == chosen,
                "logits": _equal(written_vectors(program, seen.events.writes, "logits"), logits)}
        say(f"{system.tiles} tiles, seed {seed}, text {number + 1}: {runs[number][1]} steps of "
            f"{program.plan.cycles(1):,} cycles, {engine}; "
            + ", ".join(f"{name} {'equal' if equal else 'DIFFER from'} the plain model's"
                        for name, equal in same.items()))
        for line in report.lines():
            say(line)
        ok &= report.ok and all(same.values())
    return ok


def _equal(written, logits):
    """Bit for bit, without the lanes behind the vocabulary."""
    return written.shape[0] == len(logits) and \
        np.array_equal(written[:, :logits.shape[1]].view(np.uint32), logits.view(np.uint32))
