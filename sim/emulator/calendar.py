"""What is under way: effects of past issues, by the cycle in which they happen."""

from heapq import heappop, heappush

__all__ = ["Calendar"]


class Calendar:
    """Effects at the end of a cycle, behind everything that is read in it.

    Attributes
    ----------
    stream_writes : dict of int to list of (key, value)
        By cycle; `streams.Streams` defines both.
    actions : dict of int to list of tuples
        By cycle: a function and its arguments behind the cycle.
    """

    def __init__(self):
        self.stream_writes = {}
        self.actions = {}
        self.cycles = []        #: heap of the cycles that have anything, some of them twice
        self.done = -1          #: last cycle of which anything happened

    def write_stream(self, cycle, key, value):
        """Let the stream value ``value`` be written in ``cycle``."""
        entries = self.stream_writes.get(cycle)
        if entries is None:
            self.stream_writes[cycle] = [(key, value)]
            heappush(self.cycles, cycle)
        else:
            entries.append((key, value))

    def act(self, cycle, function, *arguments):
        """Call ``function(cycle, *arguments)`` at the end of ``cycle``."""
        entries = self.actions.get(cycle)
        if entries is None:
            self.actions[cycle] = [(function, *arguments)]
            heappush(self.cycles, cycle)
        else:
            entries.append((function, *arguments))

    def finish(self, cycle, write):
        """Let everything happen up to the end of ``cycle``.

        ``write(cycle, entries)`` writes the streams of one cycle.
        """
        cycles = self.cycles
        while cycles and cycles[0] <= cycle:
            self.done = now = heappop(cycles)
            entries = self.stream_writes.pop(now, None)
            if entries:
                write(now, entries)
            for function, *arguments in self.actions.pop(now, ()):
                function(now, *arguments)
