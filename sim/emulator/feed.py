"""Issues of one queue as the event loop takes them, window by window."""

import numpy as np

from hdl.arch import isa, trace
from hdl.arch.encoding import crc16

from .sequencer import FOREVER, Issues

__all__ = ["Feed"]


class Feed:
    """Issues of one queue of one tile in one run.

    Parameters
    ----------
    cfg : TileConfig
    tile, unit : int
        Tile, and number of the queue in it.
    kind : str
    start : int
        Machine cycle of the start.
    sequencer : Sequencer
    sources : list of Source
    operations : array of int, by source
        Number of the bound operation of each.

    Attributes
    ----------
    next : int
        Machine cycle of the next issue; ``FOREVER`` or more behind the last.
    """

    def __init__(self, cfg, tile, unit, kind, start, sequencer, sources, operations):
        self._start = start
        self._chunks = sequencer.chunks()
        self._operations = operations
        self._tile, self._unit = tile, unit
        count = isa.word_bytes(cfg, kind)
        self._crc = np.array([crc16(source.word, count) for source in sources], np.uint16)
        # where the second index is packed; a kind without one has 0 there
        self._shift = (*isa.index_bits(cfg, kind), 0)[0]
        self._waiting = None
        self._until = start
        self.next = start
        self._refill()

    def _refill(self):
        """Have all issues before ``_until``, and one at least unless there is none."""
        issues, until = next(self._chunks, (None, FOREVER))
        self._until = self._start + until
        if issues is not None:
            issues = issues.later(self._start)
            self._waiting = issues if self._waiting is None else \
                Issues.concatenate([self._waiting, issues])
        self.next = self._start + FOREVER if self._waiting is None else int(self._waiting.cycle[0])

    def take(self, horizon):
        """(`Issues`, operations) before machine cycle ``horizon``; None if there are none."""
        while self._until < horizon and self._until < FOREVER:
            self._refill()
        if self.next >= horizon:
            return None
        count = int(np.searchsorted(self._waiting.cycle, horizon))
        taken = self._waiting.pick(slice(count))
        if count < len(self._waiting.cycle):
            self._waiting = self._waiting.pick(slice(count, None))
            self.next = int(self._waiting.cycle[0])
        else:
            self._waiting = None
            self.next = self._until
        return taken, self._operations[taken.source]

    def table(self, issues):
        """``issues`` as a table of `trace.ISSUE`, cycles counted from the start."""
        table = np.zeros(len(issues.cycle), trace.ISSUE)
        table["cycle"] = issues.cycle - self._start
        table["tile"], table["unit"] = self._tile, self._unit
        table["crc"] = self._crc[issues.source]
        table["index"] = issues.indices[0] | issues.indices[1] << self._shift
        return table
