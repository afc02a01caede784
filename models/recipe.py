"""What is different between the models that are trained here, and what a trained one can do."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compiler.model.config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class Model:
    """A trained model that can be run.

    Parameters
    ----------
    config : ModelConfig
    tokenizer : object
        ``encode(text)`` gives tokens, the begin token first; ``decode(tokens)`` gives the text.
    forward : callable(tokens)
        Logits [n, vocab] of tokens [n] from position 0 on.
    decoder : callable()
        An object whose ``step(token)`` gives the logits [vocab] behind one token after another.
    """

    config: ModelConfig
    tokenizer: object
    forward: Callable
    decoder: Callable


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How one model is made.

    Parameters
    ----------
    name : str
        On the command line.
    directory : Path
        Of the committed model.
    config : ModelConfig
    learn_tokenizer : callable(texts, directory)
        Learns it from an iterable of str, writes its files, and returns it (see :class:`Model`).
    export : callable(tensors, directory)
        Writes the weights: float32 arrays by the names of :mod:`models.network`. The file of
        weights is complete at every moment.
    load : callable(directory)
        Reads all of that: a :class:`Model`.
    steps : int
        Of training.
    muon_rate, adam_rate : float
        Peaks of the learning rates.
    """

    name: str
    directory: Path
    config: ModelConfig
    learn_tokenizer: Callable
    export: Callable
    load: Callable
    steps: int
    muon_rate: float
    adam_rate: float
