"""What a unit sees of the machine around it."""

from typing import NamedTuple

from hdl.arch.config import TileConfig

from .calendar import Calendar
from .faults import FaultLog
from .streams import Streams

__all__ = ["Context"]


class Context(NamedTuple):
    """Surroundings of the units of one tile.

    A unit has ``bind(queue, op, fields, table)``: the function ``(cycle, index, index, step)`` that
    does what an issue of a word does: it reads what the issue reads and plans its effects.  It is
    called in the order of cycles, within a cycle in the order of the queues, but those of receive
    queues last.  Cycles are machine cycles.

    ``writes`` collects (cycle, tile, slice number, address, vector) of all SRAM writes.
    """
    cfg: TileConfig
    tile: int
    streams: Streams
    calendar: Calendar
    faults: FaultLog
    writes: list

    def fault(self, fault, cycle, place):
        """Note a fault of this tile."""
        self.faults.note(self.tile, fault, cycle, place)
