"""A model on several tile counts: a conformance line each, and the plain model's bits."""

import numpy as np

from compiler.decoder.shared import of_sequence
from compiler.plan import expand
from compiler.reference import PlainModel
from sim.compiling import machine, quantised
from sim.conformance import check
from sim.decoding import host_tokens, prepare, prompt_words, written_vectors
from sim.emulate import run_emulator
from sim.events import Events
from sim.progress import say as show
from sim.rtl.build import build_rtl
from sim.rtl.run import GRACE, run_rtl

__all__ = ["check_model"]

#: The second text, which the loaded machine decodes behind the first, without reset.  Of a batch it
#: is that of sequence 0: each of the others has what the one before it had in the first text.
_SECOND_PROMPT = "Fear not"


def check_model(rtl, *, prompts, tokens, tiles, seeds, directory, context, run_root, say,
                batch=None, calibration=None):
    """Decode two texts, one after the other, on every tile count and with every seed.

    Parameters
    ----------
    rtl : bool
        Whether they run on RTL too, or the emulator alone is compared.
    prompts, batch
        Of the first text; as of `sim.decoding.prepare`.
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
    asked = ((prompts, tokens), ([_SECOND_PROMPT, *prompts[:-1]], max(1, tokens // 8)))
    texts_by_count = [[prepare(prompts=words, tokens=number, batch=batch, tiles=count,
                               directory=directory, context=context, report=show,
                               calibration=calibration) for words, number in asked]
                      for count in tiles]
    whole = machine(len(texts_by_count[0][0].prompts))
    model = build_rtl(whole, report=show) if rtl else None
    ok, by_shards = True, {}
    for count, texts in zip(tiles, texts_by_count, strict=True):
        shards = texts[0].program.shards
        if shards not in by_shards:
            by_shards[shards] = _plain(texts, directory, context, calibration)
            decode = texts[0].checkpoint.tokenizer.decode
            for text, sequences in zip(texts, by_shards[shards], strict=True):
                for prompt, (chosen, _) in zip(text.prompts, sequences, strict=True):
                    new = chosen[len(prompt) - 1:][:text.tokens]
                    say(f"plain model: {decode(prompt + new)}")
        expected = by_shards[shards]
        for seed in range(1, seeds + 1):
            ok &= _check(model, whole, texts, expected, seed, run_root / f"model-{count}", say)
    return ok


def _plain(texts, directory, context, calibration):
    """Chosen token and logits of every step, by text and sequence."""
    checkpoint = texts[0].checkpoint
    model = quantised(checkpoint, directory, texts[0].program.system.tile.lanes, calibration)
    return [[_continued(PlainModel(model, context, text.program.shards), prompt, text.steps)
             for prompt in text.prompts] for text in texts]


def _continued(plain, prompt, steps):
    """Chosen token and logits of every step of one sequence."""
    chosen, logits = [], []
    for position in range(steps):
        token = prompt[position] if position < len(prompt) else chosen[-1]
        logits.append(plain.step(token, position))
        chosen.append(plain.token)
    return chosen, np.array(logits)


def _check(build, whole, texts, expected, seed, run_dir, say):
    program, batch = texts[0].program, len(texts[0].prompts)
    system, binary = program.system, program.binary
    runs = [(0, text.steps) for text in texts]
    second = [words for sequence, prompt in enumerate(texts[1].prompts)
              for words in prompt_words(program, prompt, texts[0].steps, sequence=sequence)]
    patches = [[], second]
    limit = program.plan.cycles(max(steps for _, steps in runs)) + GRACE
    observed = {"emulator": run_emulator(system, binary, garbage=seed, runs=runs, limit=limit,
                                         patches=patches)}
    engine = "emulator"
    if build is not None:
        result = run_rtl(build, system, binary, run_dir=run_dir, machine=whole, seed=seed,
                         runs=runs, limit=limit, patches=patches, report=show)
        observed["rtl"] = result.runs
        engine = f"RTL at {result.cycles_per_second:,.0f} cycles/s"
    ok = all(len(seen) == len(runs) for seen in observed.values())
    for number, sides in enumerate(zip(*observed.values(), strict=False)):
        report = check(system, binary, plan=Events(**expand(program.plan, runs[number][1])),
                       **dict(zip(observed, sides, strict=True)))
        host, writes = host_tokens(sides[-1].host), sides[-1].events.writes
        same = {"tokens": len(host) == batch * runs[number][1], "logits": True}
        for sequence, (chosen, logits) in enumerate(expected[number]):
            written = written_vectors(program, writes, of_sequence("logits", sequence))
            same["tokens"] &= host[sequence::batch] == chosen
            same["logits"] &= _equal(written, logits)
        sequences = "" if batch == 1 else f"{batch} sequences, "
        say(f"{system.tiles} tiles, {sequences}seed {seed}, text {number + 1}: "
            f"{runs[number][1]} steps of {program.plan.cycles(1):,} cycles, {engine}; "
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
