"""Every stream value that the emulator reads, seen from outside of it."""

from contextlib import contextmanager

from sim.emulator.streams import Streams

__all__ = ["recorded_reads"]


@contextmanager
def recorded_reads():
    """Within it, runs of emulators that are made within it add to the list it gives.

    Yields
    ------
    list of (cycle, tile, slice, westward, stream, bytes)
        In no particular order.
    """
    reads, original = [], Streams._plane

    def plane(self, tile, place, west, number, last):
        read = original(self, tile, place, west, number, last)

        def noted(cycle):
            value = read(cycle)
            reads.append((cycle, tile, place, west, number, bytes(value)))
            return value
        return noted

    Streams._plane = plane
    try:
        yield reads
    finally:
        Streams._plane = original
