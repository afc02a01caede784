"""Progress of long work: lines with cycles per second, once it has taken two seconds."""

import sys
import time

__all__ = ["Progress", "say"]

_QUIET = 2.0        #: seconds before the first line
_INTERVAL = 5.0     #: seconds between lines


def say(line):
    """Show a line to whoever waits: on standard error, at once."""
    print(line, file=sys.stderr, flush=True)


class Progress:
    """Reports to standard error.

    Parameters
    ----------
    what : str
        What is going on.
    total : int, optional
        Cycles it will take.
    """

    def __init__(self, what, total=None, *, stream=None, clock=time.monotonic):
        self._what = what
        self._total = total
        self._stream = stream
        self._clock = clock
        self._start = clock()
        self._next = self._start + _QUIET

    def __call__(self, cycles):
        """Say that ``cycles`` of them are done; prints if it is time to."""
        now = self._clock()
        if now >= self._next:
            self._next = now + _INTERVAL
            self._print(cycles, now)

    def done(self, cycles):
        """Say that it ends behind ``cycles`` cycles; prints only if it took long."""
        now = self._clock()
        if now - self._start >= _QUIET:
            self._total = None
            self._print(cycles, now)

    def _print(self, cycles, now):
        seconds = now - self._start
        of = f" of {self._total:,}" if self._total else ""
        print(f"{self._what}: {cycles:,}{of} cycles, {cycles / seconds:,.0f} cycles/s, "
              f"{seconds:.0f} s", file=self._stream or sys.stderr, flush=True)
