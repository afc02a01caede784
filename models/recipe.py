"""What is different between the models that are trained here."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compiler.model import checkpoint
from compiler.model.config import ModelConfig


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
        Learns it from an iterable of str, writes its files, and returns it.
    export : callable(tensors, directory)
        Writes the weights: float32 arrays by the names of :mod:`models.network`. The file of
        weights is complete at every moment.
    file : str
        What is named to load a model, within its directory: "." where that is the directory.
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
    file: str
    steps: int
    muon_rate: float
    adam_rate: float

    def load(self, directory):
        """Read such a directory, as `compiler.model.checkpoint.load` does."""
        return checkpoint.load(directory / self.file)
