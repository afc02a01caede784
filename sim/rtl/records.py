"""What a testbench knows of a run."""

from dataclasses import dataclass, field

__all__ = ["RunRecord"]


@dataclass
class RunRecord:
    """One run, without its events: those are in the recorder's files.

    Attributes
    ----------
    begin : int
        Cycle since reset from which on events belong to this run.
    starts : list of int
        By tile: start time, in cycles since reset.
    cycles : int
        From the last start time until every queue had halted or the watchdog stopped.
    seconds, cpu_seconds : float
        Real time and processor time of these cycles.
    faults : list of int
        By tile: the sticky error register behind the run.
    running : list of (int, str)
        Tile and name of the queues that had not halted in time.
    network : list of int
        By tile: sticky `hdl.arch.packets.NetworkFault` bits behind the run; empty without the
        conventional network.
    """

    begin: int
    starts: list
    cycles: int
    seconds: float
    cpu_seconds: float
    faults: list
    running: list
    network: list = field(default_factory=list)
