"""The verifier on affine sets: no loop count is expanded where iterations repeat.

`Timeline` goes through a few iterations of each loop that all queues share and skips the rest once
the state (what is under way, kept, begun, loaded) is that of an earlier iteration, seen from its
own start.  This decides everything that depends on cycles alone, exactly: the same state is
followed by the same faults.  Indices of an MXM that loops change are part of it: as many iterations
are taken for one as it needs until they repeat.  What depends on SRAM addresses is decided on the
affine sets of the addresses (`Sram`), exactly too.  Where loops do not fit together, iterations are
gone through one by one.
"""

from typing import NamedTuple

import numpy as np

from hdl.arch.timing import of

from ...errors import VerifyError
from ..words import check_binary
from .batch import Columns, make_batch
from .issues import Issues
from .links import Links
from .mxm import Mxm
from .sram import Sram
from .streams import Streams
from .timeline import Timeline
from .vxm import Maps, Vxm

__all__ = ["Run", "verify"]


def verify(system, binary):
    """Check every issue of ``binary`` (with its step count) on ``system``.

    Takes time in proportion to the instruction words and the issues of a few iterations, whatever
    the number of steps.

    Returns
    -------
    int
        Number of issues checked.

    Raises
    ------
    VerifyError
        Naming the first fault: cycle, tile, unit and what is wrong.
    """
    return Run(system, binary).total


class _Mark(NamedTuple):
    """How far a run is: cycle, totals of the links, number of noted pairs."""
    cycle: int
    totals: np.ndarray
    pairs: int


class _Found(Exception):
    """A batch has faults."""


class Run:
    """One verification.

    Attributes
    ----------
    total : int
        Issues of the program.
    listed : int
        Issues that were gone through one by one.
    skipped : int
        Cycles that were not gone through.

    Raises
    ------
    VerifyError
        As `verify`.
    """

    def __init__(self, system, binary):
        check_binary(system, binary)
        self._issues = issues = Issues(system.tile, binary)
        columns = Columns(issues)
        parts = (system, issues, columns)
        self._streams, self._links = Streams(*parts), Links(*parts)
        self._mxm, self._sram = Mxm(*parts), Sram(*parts)
        self._kept = Vxm(*parts), Maps(*parts)
        self._checks = self._streams, self._links, self._mxm, self._sram, *self._kept
        self.total = sum(root.total for root in issues.roots)
        self.listed = self.skipped = 0
        faults = self._go()
        faults += self._sram.faults(binary)
        if faults:
            raise VerifyError(min(faults).line)

    def _go(self):
        """First faults that depend on cycles, as a list."""
        try:
            end = Timeline(self._issues, self).run()
            longest = max((of(self._issues.cfg, word.queue, word.op).t_d
                           for word in self._issues.words), default=0)
            self.batch([], end, 1 + max(end + longest, self._streams.last(end),
                                        self._links.last(end)))
        except _Found as found:
            return list(found.args)
        return self._links.end()

    def batch(self, pieces, start, end):
        """Check the issues of a stretch of time."""
        batch = make_batch(self._issues, pieces, start, end)
        self.listed += len(batch.issue)
        faults = [fault for check in self._checks for fault in check.check(batch)]
        if faults:
            raise _Found(*faults)

    def mark(self, cycle):
        """What `skip` needs to know of the present."""
        return _Mark(cycle, self._links.totals.copy(), len(self._sram.pairs))

    def state(self, cycle):
        """Bytes that are equal if the same follows."""
        return b"".join(check.state(cycle) for check in self._checks)

    def skip(self, mark, ride):
        """Let what happened since ``mark`` happen again in all of ``ride``."""
        cycles = ride.count * ride.cycles
        self.skipped += cycles
        self._streams.skip(cycles)
        self._links.skip(cycles, ride.count, mark.totals)
        self._mxm.skip(cycles, mark.cycle)
        self._sram.skip(cycles, mark.pairs, ride)
        for check in self._kept:
            check.skip(cycles)
