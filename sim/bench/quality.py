"""`bench quality`: what quantisation costs, on held-out text.

The same sequences go through the float32 reference and through the plain model of the quantised
network (bit-identical to what the tiles compute). Sequences are as long as the model's context
unless told otherwise; every token but the first of each is predicted once.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from compiler.model import checkpoint as checkpoints
from compiler.model import fp32
from compiler.model.config import ModelError
from compiler.quantise import calibration_sequences, quantise
from compiler.quantise.calibrate import sequences
from compiler.reference import PlainModel
from sim.bench.report import OUTPUT, write_json
from sim.commands.options import positive
from sim.compiling import DEFAULT_MODEL

RESULT = OUTPUT / "quality.json"

#: What the figures must reach.
BARS = {
    "perplexity_ratio": 1.03,       # at most: quantised over float32
    "top1_agreement": 0.90,         # at least: share of positions with the same first choice
    "tokens": 8192,                 # at least: held-out tokens that were predicted
}
#: What those of `DEFAULT_MODEL` must reach.
DEFAULT_MODEL_BARS = BARS | {"top1_agreement": 0.95}
#: Tokens of the first sequence that also go through the plain model one at a time.
STEPPED = 64


def bars_of(model):
    """Bars of the model at a path."""
    same = model.resolve() == DEFAULT_MODEL.resolve()
    return DEFAULT_MODEL_BARS if same else BARS


def measure(checkpoint, calibration, held_out, lanes=16, late_norms=None, context=None, shards=1,
            report=None):
    """Compare a model with its quantised form.

    Parameters
    ----------
    checkpoint : compiler.model.checkpoint.Checkpoint
    calibration : iterable of sequences of int
        Tokens that quantisation takes its ranges from.
    held_out : str
        Text.
    lanes : int
        Lanes of the machine (they order float32 sums).
    late_norms : bool or None
        See :func:`compiler.quantise.quantise`.
    context : int or None
        Tokens of a sequence; the model's positions if None.
    shards : int
        In how many parts, in every layer, the softmax over the cache is computed.
    report : callable(int) or None
        Called with the number of tokens that have just been through a model.

    Returns
    -------
    dict
        Figures by name; JSON.

    Raises
    ------
    ModelError
        The text is empty or has characters outside the vocabulary, the model cannot be
        quantised, or has no such context.
    RuntimeError
        The plain model disagrees with itself.
    """
    config, tokenizer = checkpoint.config, checkpoint.tokenizer
    model = quantise(checkpoint.weights, calibration, lanes, late_norms)
    plain = PlainModel(model, context, (shards,) * len(config.layers))
    batch = sequences(
        tokenizer.encode(held_out), config.max_position, config.bos, plain.positions)
    if batch.shape[1] < 2:
        raise ModelError("the held-out text has no token to predict")
    _check_steps(plain, batch[0, :STEPPED])

    reference, ours, same = 0.0, 0.0, 0
    for tokens in batch:
        known, targets = tokens[:-1], tokens[1:]
        expected = fp32.forward(checkpoint.weights, known)
        logits = plain.logits(plain.forward(known))
        reference += bits(expected, targets)
        ours += bits(logits, targets)
        same += int(np.sum(expected.argmax(axis=-1) == logits.argmax(axis=-1)))
        if report is not None:
            report(len(targets))
    predicted = batch[:, 1:].size
    text_bytes = len(tokenizer.decode(batch[:, 1:].ravel().tolist()).encode())
    return {
        "tokens": predicted,
        "text_bytes": text_bytes,
        "context": int(batch.shape[1]),
        "lanes": lanes,
        "shards": shards,
        "late_norms": model.late_norms,
        "parameters": config.parameters,
        "fp32_perplexity": 2.0 ** (reference / predicted),
        "perplexity": 2.0 ** (ours / predicted),
        "perplexity_ratio": 2.0 ** ((ours - reference) / predicted),
        "fp32_bits_per_byte": reference / text_bytes,
        "bits_per_byte": ours / text_bytes,
        "top1_agreement": same / predicted,
    }


def bits(logits, targets):
    """Sum of -log2 of the probabilities of the tokens [n] by logits [n, vocab]."""
    logits = logits.astype(np.float64)
    logits -= logits.max(axis=-1, keepdims=True)
    nats = np.log(np.exp(logits).sum(axis=-1)) - logits[np.arange(len(targets)), targets]
    return float(nats.sum() / np.log(2))


def _check_steps(plain, tokens):
    """The figures are those of the program only if one token at a time gives the same bits."""
    whole = plain.forward(tokens)
    for position, token in enumerate(tokens):
        plain.step(int(token), position)
        if plain.scores.tobytes() != whole[position].tobytes():
            raise RuntimeError(f"stepping and whole sequences differ at position {position}")


def missed(figures, bars):
    """Names of the figures that miss their bar."""
    return [name for name, bar in bars.items()
            if not (figures[name] <= bar if name == "perplexity_ratio" else figures[name] >= bar)]


def table(figures, bars):
    """The figures as text, one line each."""
    rows = [
        ("", "float32", "quantised", "bar"),
        ("perplexity", f"{figures['fp32_perplexity']:.4f}", f"{figures['perplexity']:.4f}", ""),
        ("bits per byte", f"{figures['fp32_bits_per_byte']:.4f}",
         f"{figures['bits_per_byte']:.4f}", ""),
        ("perplexity over float32", "", f"{figures['perplexity_ratio']:.4f}",
         f"<= {bars['perplexity_ratio']:.2f}"),
        ("same top-1 as float32", "", f"{figures['top1_agreement']:.2%}",
         f">= {bars['top1_agreement']:.0%}"),
        ("tokens predicted", "", f"{figures['tokens']:,}", f">= {bars['tokens']:,}"),
    ]
    return "\n".join(f"{a:<24}{b:>12}{c:>12}{d:>12}".rstrip() for a, b, c, d in rows)


def summary(figures, bars):
    """One line."""
    names = missed(figures, bars)
    verdict = "all bars met" if not names else "MISSED: " + ", ".join(names)
    return (
        f"quality: perplexity {figures['perplexity']:.3f} against {figures['fp32_perplexity']:.3f} "
        f"in float32 ({figures['perplexity_ratio'] - 1:+.2%}), same top-1 on "
        f"{figures['top1_agreement']:.2%} of {figures['tokens']:,} held-out tokens; {verdict}"
    )


def _read(path):
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ModelError(f"{path}: {reason}") from None


def _progress():
    """A reporter that shows itself after two seconds, then every two."""
    start = shown = time.monotonic()
    done = 0

    def report(tokens):
        nonlocal shown, done
        done += tokens
        if time.monotonic() - shown > 2:
            shown = time.monotonic()
            print(f"  {done:,} tokens, {shown - start:.0f} s", file=sys.stderr, flush=True)

    return report


def main(argv=None):
    """Print the table and the summary line, write the JSON file.

    Returns
    -------
    int
        0; 1 where a figure misses its bar; 2 where the input is bad.
    """
    parser = argparse.ArgumentParser(prog="bench quality", description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, default=DEFAULT_MODEL,
                        help="model directory or file")
    parser.add_argument("--calibration", type=Path, metavar="FILE",
                        help="text for the activation ranges (calibration.txt of the model)")
    parser.add_argument("--text", type=Path, metavar="FILE",
                        help="held-out text (heldout.txt in the directory, or beside the file)")
    parser.add_argument("--lanes", type=int, default=16, help="lanes of the machine (16)")
    parser.add_argument("--context", type=positive,
                        help="tokens of a sequence (as many as the model has positions)")
    parser.add_argument("--shards", type=positive, default=1,
                        help="tiles that share the positions of each KV cache (1)")
    parser.add_argument("--early-norms", action="store_true",
                        help="apply the factors of norms before their matrices, not behind them "
                             "as the programs do")
    parser.add_argument("--output", type=Path, default=RESULT, help="JSON file to write")
    options = parser.parse_args(argv)
    try:
        checkpoint = checkpoints.load(options.model)
        figures = measure(
            checkpoint,
            calibration_sequences(options.model, checkpoint, options.calibration),
            _read(options.text or checkpoints.folder(options.model) / "heldout.txt"),
            options.lanes,
            False if options.early_norms else None,
            options.context,
            options.shards,
            report=_progress(),
        )
    except ModelError as error:
        print(f"bench quality: {error}", file=sys.stderr)
        return 2
    bars = bars_of(options.model)
    names = missed(figures, bars)
    print(table(figures, bars))
    write_json(options.output, figures | {"bars": bars, "missed": names})
    print(summary(figures, bars))
    return 1 if names else 0
