"""Sticky faults of every tile, with the first cycle and the place of each."""

from typing import NamedTuple

__all__ = ["FaultLog", "FaultPlace"]


class FaultPlace(NamedTuple):
    """First occurrence of a fault: ``cycle``, and the stream or queue it met (``"mem1 E5"``,
    ``"link0.recv"``)."""
    cycle: int
    place: str


class FaultLog:
    """Faults of all tiles, in machine cycles.

    Parameters
    ----------
    tiles : int
    """

    def __init__(self, tiles):
        self._first = [{} for _ in range(tiles)]

    def note(self, tile, fault, cycle, place):
        """Set ``fault`` of ``tile``; the earliest cycle stays."""
        seen = self._first[tile].get(fault)
        if seen is None or cycle < seen.cycle:
            self._first[tile][fault] = FaultPlace(cycle, place)

    def clear(self, tile):
        """Clear the error register of ``tile``."""
        self._first[tile].clear()

    def since(self, tile, start):
        """Dict of `Fault` to `FaultPlace` of ``tile``, cycles counted from ``start``."""
        return {fault: FaultPlace(first.cycle - start, first.place)
                for fault, first in sorted(self._first[tile].items())}
