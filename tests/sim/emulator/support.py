"""Short ways to write programs for the emulator's tests and to look at what they did."""

from hdl.arch.binary import SystemBinary, TileBinary
from hdl.arch.config import single
from hdl.arch.encoding import encode
from hdl.arch.queues import queue_index, queues
from sim.emulator import Machine

__all__ = ["assemble", "events", "issued", "lines_at", "run_tile", "tile_binary"]


def assemble(cfg, queue, lines):
    """Words of ``queue`` from (opcode, fields) pairs."""
    kind = {found.name: found.kind for found in queues(cfg)}[queue]
    return [encode(cfg, kind, op, **fields) for op, fields in lines]


def lines_at(moments):
    """Lines that issue each (cycle, op, fields), in order."""
    lines, now = [], 0
    for cycle, op, fields in sorted(moments, key=lambda moment: moment[0]):
        assert cycle >= now, f"two words in cycle {cycle}"
        if cycle > now:
            lines.append(("NOP", {"wait": cycle - now - 1}))
        lines.append((op, fields))
        now = cycle + 1
    return lines


def tile_binary(cfg, programs, tables=None, sram=None):
    """`TileBinary` of ``programs``: (opcode, fields) pairs by queue name, a HALT behind them.

    ``tables`` give entries 1, 2, ... of a queue.
    """
    return TileBinary(
        words={name: assemble(cfg, name, [*lines, ("HALT", {})])
               for name, lines in programs.items()},
        tables={name: [(0, 0, 0), *entries] for name, entries in (tables or {}).items()},
        sram=sram or {})


def run_tile(cfg, programs, tables=None, sram=None, *, first_step=0, steps=1, garbage=None,
             **start):
    """Run one tile; gives (machine, result)."""
    machine = Machine(single(cfg), garbage)
    machine.load(SystemBinary([tile_binary(cfg, programs, tables, sram)], first_step, steps))
    return machine, machine.start(**start)


def issued(cfg, result, queue, tile=0):
    """(cycle, packed index) of the issues of a queue."""
    found = result.issues
    chosen = found[(found["unit"] == queue_index(cfg)[queue]) & (found["tile"] == tile)]
    return list(zip(chosen["cycle"].tolist(), chosen["index"].tolist(), strict=True))


def events(table):
    """Rows of a table of events with the data as bytes."""
    return [tuple(value.tobytes() if name == "data" else int(value)
                  for name, value in zip(table.dtype.names, row, strict=True)) for row in table]
