"""Ranges of a model's activations on a text, from which the static scales are made.

The text is a file of the user's choice, or else ``calibration.txt`` in the model directory or
beside the model file, cut into sequences of at most 256 tokens. Ranges are rounded up to 7
significant bits, so that the order in which a computer's float32 library adds does not reach the
program.
"""

from pathlib import Path

import numpy as np

from compiler.model.checkpoint import folder
from compiler.model.config import ModelError
from compiler.model.fp32 import forward
from compiler.model.weights import Weights

#: Name of the text in a model directory or beside a model file.
CALIBRATION = "calibration.txt"
#: Bytes that it may have.
TEXT_LIMIT = 1 << 22
#: Tokens of one calibration sequence, the begin token included.
SEQUENCE = 256
#: Significant bits of a range.
RANGE_BITS = 7

#: Tensors (names of the taps of `compiler.model.fp32.forward`, without the layer's number) whose
#: largest magnitude is kept: for each channel of each head, for each channel.
PER_HEAD = ("q", "k", "v")
PER_CHANNEL = ("attention_in", "attention_out", "ffn_in", "ffn_product", "head_in",
               "embedding", "middle", "out")
#: Those whose smallest and largest value is kept.
EXTREMES = ("largest_scores",)
#: Those whose smallest and largest mean square over the last axis is kept.
SQUARED = ("q_raw", "k_raw", "v_raw", "embedding", "middle", "out")


def calibration_text(model, text=None):
    """Path of the calibration text of the checkpoint at ``model``: ``text`` unless it is None."""
    return folder(model) / CALIBRATION if text is None else Path(text)


def calibration_sequences(model, checkpoint, text=None):
    """The calibration text of a model, as token sequences.

    Parameters
    ----------
    model : path
        Of the checkpoint.
    checkpoint : compiler.model.checkpoint.Checkpoint
    text : path or None
        None: the model's own, see `calibration_text`.

    Returns
    -------
    np.ndarray, int, [sequences, length]

    Raises
    ------
    ModelError
        The text is missing, empty, or has characters outside the vocabulary.
    """
    path = calibration_text(model, text)
    try:
        if path.stat().st_size > TEXT_LIMIT:
            raise ModelError(f"larger than {TEXT_LIMIT} bytes: some pages of text will do")
        tokens = checkpoint.tokenizer.encode(path.read_text(encoding="utf-8"))
        return sequences(tokens, checkpoint.config.max_position, checkpoint.config.bos)
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file; put a text like the model's training text "
                         "there, or name one with --calibration: activation ranges are taken from "
                         "it") from None
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ModelError(f"{path}: not UTF-8 text") from None
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def sequences(tokens, max_position, bos=None, longest=SEQUENCE):
    """Cut the tokens of a text into sequences of equal length, each begun with the begin token.

    Parameters
    ----------
    tokens : sequence of int
        A begin token in front is dropped (each sequence gets its own).
    max_position : int
        Positions of the model.
    bos : int or None
        The begin token.
    longest : int
        Tokens of a sequence, the begin token included; fewer where the model has fewer positions
        or the text fewer tokens.

    Returns
    -------
    np.ndarray, int, [sequences, length]
        Without the incomplete last one.

    Raises
    ------
    ModelError
        There is no token.
    """
    tokens = np.asarray(tokens, np.int64)
    if bos is not None and tokens.size and tokens[0] == bos:
        tokens = tokens[1:]
    if not tokens.size:
        raise ModelError("the text is empty")
    begin = [] if bos is None else [bos]
    length = min(longest, max_position, tokens.size + len(begin)) - len(begin)
    if length < 1:
        raise ModelError("a model of 1 position cannot be measured on a text")
    count = tokens.size // length
    body = tokens[: count * length].reshape(count, length)
    return np.concatenate([np.full((count, len(begin)), begin, np.int64), body], axis=1)


def round_up(x):
    """Smallest numbers of `RANGE_BITS` significant bits that are at least x (float64, >= 0)."""
    mantissa, exponent = np.frexp(np.asarray(x, np.float64))
    return np.ldexp(np.ceil(np.ldexp(mantissa, RANGE_BITS)), exponent - RANGE_BITS)


def calibrate(weights: Weights, sequences):
    """Run the float32 model and keep ranges.

    Parameters
    ----------
    weights : Weights
    sequences : iterable of sequences of int
        Each from position 0; at least one.

    Returns
    -------
    dict of str to np.ndarray, float64
        By name ("3.q", "head_in"): largest magnitudes, [heads, head_dim] or [channels] for
        `PER_HEAD` and `PER_CHANNEL`. For `EXTREMES` the smallest and the largest value, for
        `SQUARED` the smallest and the largest mean square of any position (and head), as
        "3.q_raw.least" and "3.q_raw.most", [].

    Raises
    ------
    ModelError
        A value of the model is not finite, or there is no sequence.
    """
    kept_axes = dict.fromkeys(PER_CHANNEL, 1) | dict.fromkeys(PER_HEAD, 2)
    found = {}

    def extremes(name, values):
        least, most = f"{name}.least", f"{name}.most"
        found[least] = np.minimum(found.get(least, np.inf), values.min())
        found[most] = np.maximum(found.get(most, -np.inf), values.max())

    def tap(name, value):
        kind = name.rpartition(".")[2]
        if kind in kept_axes:
            largest = np.abs(value).max(axis=tuple(range(value.ndim - kept_axes[kind])))
            if not np.isfinite(largest).all():
                raise ModelError(f"activation {name} is not finite on the calibration text")
            found[name] = np.maximum(found.get(name, 0), round_up(largest))
        if kind in SQUARED:
            extremes(name, round_up(np.square(value.astype(np.float64)).mean(axis=-1)))
        if kind in EXTREMES:
            extremes(name, value)

    with np.errstate(all="ignore"):         # what comes of it is not finite, and `tap` sees it
        for sequence in sequences:
            forward(weights, sequence, tap)
    if not found:
        raise ModelError("calibration needs at least one sequence of tokens")
    return found
