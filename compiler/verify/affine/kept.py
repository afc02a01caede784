"""Places that hold something from some cycle on: ALU entries, lane maps, sums, activations."""

import numpy as np

from ..faults import NEVER

__all__ = ["Kept", "canonical"]


def canonical(*columns):
    """Bytes that are equal for equal rows, whatever their order."""
    rows = np.stack([np.asarray(column, np.int64) for column in columns])
    return rows[:, np.lexsort(rows)].tobytes() + b"|"


class Kept:
    """``size`` places, empty at first."""

    def __init__(self, size):
        self._there = np.zeros(size, bool)
        self._place, self._since = np.zeros((2, 0), np.int64)

    def missing(self, end, places, since, asked, cycles):
        """Mask of the reads of ``asked`` places in ``cycles`` that find nothing.

        ``places`` hold something from the cycles ``since`` on; all happens before cycle ``end``,
        and after what was given before.
        """
        places = np.concatenate([self._place, places])
        since = np.concatenate([self._since, since])
        first = np.where(self._there, -1, NEVER)
        np.minimum.at(first, places, since)
        missing = first[asked] > cycles
        self._there[places[since <= end]] = True
        waiting = ~self._there[places]
        self._place, self._since = places[waiting], since[waiting]
        return missing

    def state(self, cycle):
        """Bytes that are equal for equal contents, seen from ``cycle``."""
        return np.packbits(self._there).tobytes() + canonical(self._place, self._since - cycle)

    def skip(self, cycles):
        """Let ``cycles`` cycles pass in which everything repeats."""
        self._since = self._since + cycles
