"""What a run is seen to do, in the same form from plan, emulator and RTL."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hdl.arch.trace import ISSUE, arrival_record, write_record

__all__ = ["KINDS", "Events", "FaultEvent", "Observation", "no_events"]

#: Kinds of event, and the names of their tables in `Events`.
KINDS = ("issues", "writes", "arrivals")


class Events(NamedTuple):
    """Tables of events: structured arrays in the record formats of `hdl.arch.trace`.

    Order within a table does not matter.  A plan's ``writes`` and ``arrivals`` have no field
    ``data``.
    """
    issues: np.ndarray
    writes: np.ndarray
    arrivals: np.ndarray


class FaultEvent(NamedTuple):
    """The first fault of a class in a tile: a bit of its error register is set.

    ``place`` is the queue, stream or part of the tile that raises it; ``cycle`` counts from the
    start time, in the emulator at the cause, in RTL where it shows.
    """
    tile: int
    fault: int
    cycle: int
    place: str


def no_events(cfg):
    """`Events` of a run of tiles of ``cfg`` in which nothing happens."""
    return Events(np.zeros(0, ISSUE), np.zeros(0, write_record(cfg)),
                  np.zeros(0, arrival_record(cfg)))


@dataclass(frozen=True)
class Observation:
    """One run of a machine, seen from outside.

    Parameters
    ----------
    events : Events
    host : array, optional
        Vectors that the host received, as `hdl.arch.trace.arrival_record`, in order.
    sram : list of array, optional
        By tile: contents behind the run, uint8 of shape (slices, words, lanes).  None: not read.
    faults : tuple of int
        By tile: the sticky error register (bits: `hdl.arch.errors.Fault`).
    running : tuple of (int, str)
        Tile and name of the queues that have not halted.
    fault_events : tuple of FaultEvent
        When and where bits of the error registers were set, as far as it was recorded.
    """

    events: Events
    host: np.ndarray | None = None
    sram: list | None = None
    faults: tuple = ()
    running: tuple = field(default=())
    fault_events: tuple = field(default=())
