"""Streams, issue by issue: every read finds a value, every value is read to the end, nothing is
written over."""

from collections import defaultdict

from hdl.arch.timing import of

from .faults import cell_name, fault
from .words import stream_reads, stream_writes

__all__ = ["check_streams"]


def check_streams(cfg, events):
    """Move every value of ``events`` cycle by cycle.

    Returns
    -------
    list of Fault
        Those of the first cycle that has any.
    """
    reads, writes = defaultdict(list), defaultdict(list)
    for event in events:
        _accesses(cfg, event, reads, writes)
    live = {}                   # (tile, west, stream, position) -> queue that wrote the value
    cycle, pending = 0, sorted(set(reads) | set(writes), reverse=True)
    while pending or live:
        if not live:
            cycle = pending[-1]
        if pending and pending[-1] == cycle:
            pending.pop()
        faults = [*_read(cycle, live, reads[cycle]), *_write(cycle, live, writes[cycle])]
        live = _move(cfg, cycle, live, faults)
        if faults:
            return faults
        cycle += 1
    return []


def _accesses(cfg, event, reads, writes):
    times = of(cfg, event.queue, event.op)
    at = cfg.position(event.queue.slice)
    for west, stream, last in stream_reads(event.op, event.fields):
        reads[event.cycle + times.t_skew].append(((event.tile, west, stream, at), last,
                                                  event.queue.name))
    for west, stream in stream_writes(event.op, event.fields):
        writes[event.cycle + times.t_d].append(((event.tile, west, stream, at), event.queue.name))


def _read(cycle, live, accesses):
    cleared, faults = set(), []
    for cell, last, queue in accesses:
        if cell not in live:
            faults.append(fault("read", cycle, queue=queue, cell=cell_name(*cell)))
        elif last and cell in cleared:
            faults.append(fault("clear", cycle, queue=queue, cell=cell_name(*cell)))
        elif last:
            cleared.add(cell)
    for cell in cleared:
        del live[cell]
    return faults


def _write(cycle, live, accesses):
    written, faults = set(), []
    for cell, queue in accesses:
        if cell in live:
            faults.append(fault("over", cycle, queue=queue, other=live[cell],
                                cell=cell_name(*cell)))
        elif cell in written:
            faults.append(fault("meet", cycle, cell=cell_name(*cell)))
        written.add(cell)
    for cell, queue in accesses:
        live[cell] = queue
    return faults


def _move(cfg, cycle, live, faults):
    moved = {}
    for (tile, west, stream, position), queue in live.items():
        position += -1 if west else 1
        if 0 <= position < len(cfg.floorplan):
            moved[tile, west, stream, position] = queue
        else:
            faults.append(fault("leave", cycle, queue=queue, tile=tile,
                                stream=f"{'W' if west else 'E'}{stream}"))
    return moved
