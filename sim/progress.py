"""Progress of long work: lines with cycles per second, or with what has been done."""

import resource
import sys
import time

__all__ = ["Progress", "Stages", "peak_memory", "say"]

_QUIET = 2.0        #: seconds before the first line
_INTERVAL = 5.0     #: seconds between lines
_STAGE = 1.0        #: seconds between lines of `Stages`, and before the first


def say(line):
    """Show a line to whoever waits: on standard error, at once."""
    print(line, file=sys.stderr, flush=True)


def peak_memory():
    """Megabytes (1,000,000 bytes) of memory that this process has had at most."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit // 1_000_000


class Stages:
    """Says what has been done of work that has no count, with time and memory.

    Parameters
    ----------
    report : callable
        Called with each line.
    """

    def __init__(self, report, *, clock=time.monotonic, memory=peak_memory):
        self._report = report
        self._clock = clock
        self._memory = memory
        self._start = clock()
        self._next = self._start + _STAGE

    def __call__(self, text):
        """Say that ``text`` has been done, if the last line is long enough ago."""
        now = self._clock()
        if now >= self._next:
            self._next = now + _STAGE
            self._report(f"  {now - self._start:.1f} s, {self._memory():,} MB: {text}")

    def done(self, text):
        """Say that all of it has been done, in any case."""
        self._report(f"{text}: {self._clock() - self._start:.1f} s, at most {self._memory():,} MB "
                     "of memory")


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
