"""What a run of the emulator shows, in the record formats of `hdl.arch.trace`."""

from dataclasses import dataclass

import numpy as np

from hdl.arch import trace

__all__ = ["Result", "issue_table", "write_table", "arrival_table"]


@dataclass
class Result:
    """One run.

    Cycles count from the start time of the event's tile.  Tables are sorted by cycle, tile, unit.

    Attributes
    ----------
    issues : array of `trace.ISSUE`
    writes : array of `trace.write_record`
    arrivals : array of `trace.arrival_record`
        Vectors that entered the FIFO of a link.
    host : array of `trace.arrival_record`
        Vectors that the host received from ``tile``, by its host link.
    cycles : int
        First cycle in which every queue had halted (or the limit, if ``running`` is not empty).
    running : list of (tile, queue name)
        Queues that had not halted when the cycle limit was reached.
    faults : list of dict of Fault to FaultPlace
        By tile: the error register, with first cycle and place of each bit.  What an earlier run
        set and nobody cleared has a cycle below 0.
    """
    issues: np.ndarray
    writes: np.ndarray
    arrivals: np.ndarray
    host: np.ndarray
    cycles: int
    running: list
    faults: list


def _table(record, rows, names, starts, lanes):
    """Sorted table of ``rows``, whose last column is a vector."""
    table = np.zeros(len(rows), record)
    if rows:
        *columns, vectors = zip(*rows, strict=True)
        for name, column in zip(names, columns, strict=True):
            table[name] = column
        table["data"] = np.frombuffer(b"".join(vectors), np.uint8).reshape(-1, lanes)
        table["cycle"] -= starts[table["tile"]]
    return in_order(table)


def in_order(table):
    """``table`` sorted by cycle, tile, unit."""
    return table[np.lexsort((table["unit"], table["tile"], table["cycle"]))]


def write_table(cfg, rows, starts):
    """Table of (cycle, tile, slice, address, vector); ``starts``: start time of each tile."""
    return _table(trace.write_record(cfg), rows, ("cycle", "tile", "unit", "address"), starts,
                  cfg.lanes)


def arrival_table(cfg, rows, starts):
    """Table of (cycle, tile, link, vector); ``starts``: start time of each tile."""
    return _table(trace.arrival_record(cfg), rows, ("cycle", "tile", "unit"), starts, cfg.lanes)


def issue_table(parts):
    """Table of all issues; ``parts`` are tables, cycles already from the start of their tile."""
    return in_order(np.concatenate(parts) if parts else np.zeros(0, trace.ISSUE))
