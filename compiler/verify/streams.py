"""Streams: every read finds a value, every value is read to the end, nothing is written over."""

from collections import defaultdict

from hdl.arch.timing import of

from ..errors import VerifyError

__all__ = ["check_streams"]


def check_streams(cfg, events):
    """Move every value of ``events`` cycle by cycle.

    Raises
    ------
    VerifyError
        Naming cycle, tile, slice and stream of the first fault.
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
        _read(cycle, live, reads[cycle])
        _write(cycle, live, writes[cycle])
        live = _move(cfg, cycle, live)
        cycle += 1


def _accesses(cfg, event, reads, writes):
    times = of(cfg, event.queue, event.op)
    at = cfg.position(event.queue.slice)
    fields = event.fields
    quad = 4 if fields.get("quad") or event.op == "ACC" else 1
    if "source" in fields and not fields.get("buffered"):
        count = 1 << fields["count_log2"] if event.op == "LW" else quad
        for plane in range(count):
            cell = event.tile, fields["source_west"], fields["source"] + plane, at
            reads[event.cycle + times.t_skew].append((cell, fields["source_last"],
            event.queue.name))
    for west, side in enumerate(("east", "west")):
        if fields.get(f"{side}_en"):
            for plane in range(quad):
                cell = event.tile, west, fields[side] + plane, at
                writes[event.cycle + times.t_d].append((cell, event.queue.name))


def _name(cell):
    tile, west, stream, position = cell
    return f"tile {tile} position {position} stream {'W' if west else 'E'}{stream}"


def _read(cycle, live, accesses):
    cleared = set()
    for cell, last, queue in accesses:
        if cell not in live:
            raise VerifyError(f"Cycle {cycle}: {queue} reads {_name(cell)}, which carries no value")
        if last and cell in cleared:
            raise VerifyError(f"Cycle {cycle}: {queue} clears {_name(cell)} a second time")
        if last:
            cleared.add(cell)
    for cell in cleared:
        del live[cell]


def _write(cycle, live, accesses):
    written = set()
    for cell, queue in accesses:
        if cell in live:
            raise VerifyError(f"Cycle {cycle}: {queue} writes over the value of "
                              f"{live[cell]} on {_name(cell)}")
        if cell in written:
            raise VerifyError(f"Cycle {cycle}: two writes meet on {_name(cell)}")
        written.add(cell)
    for cell, queue in accesses:
        live[cell] = queue


def _move(cfg, cycle, live):
    moved = {}
    for (tile, west, stream, position), queue in live.items():
        position += -1 if west else 1
        if not 0 <= position < len(cfg.floorplan):
            raise VerifyError(f"Cycle {cycle}: the value of {queue} on stream "
                              f"{'W' if west else 'E'}{stream} of tile {tile} leaves the last "
                              "position unread")
        moved[tile, west, stream, position] = queue
    return moved
