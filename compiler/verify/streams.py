"""Streams: every read finds a value, every value is read to the end, nothing is written over."""

from collections import defaultdict

from hdl.arch.isa import Operand, planes
from hdl.arch.ops import TWO_OPERANDS
from hdl.arch.timing import of

from ..errors import VerifyError

__all__ = ["check_streams", "stream_operands"]


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
    for operand in stream_operands(event):
        for plane in range(planes(event.op, fields, operand)):
            cell = event.tile, fields[f"{operand}_west"], fields[operand] + plane, at
            reads[event.cycle + times.t_skew].append((cell, fields[f"{operand}_last"],
                                                      event.queue.name))
    for west, side in enumerate(("east", "west")):
        if fields.get(f"{side}_en"):
            first = fields["target"] if "target" in fields else fields[side]
            for plane in range(planes(event.op, fields, "target")):
                cell = event.tile, west, first + plane, at
                writes[event.cycle + times.t_d].append((cell, event.queue.name))


def stream_operands(event):
    """Names of the operand fields of ``event`` that name a stream it reads."""
    fields = event.fields
    if "source" in fields:
        return () if fields.get("buffered") else ("source",)
    operands = [name for name in "ab"
                if name in fields and (name == "a" or event.op in TWO_OPERANDS)]
    return tuple(f"{name}_source" for name in operands
                 if fields[name] == Operand.STREAM.value)


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
