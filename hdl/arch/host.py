"""The host's side of a tile: commands, status, and what each means.

A tile takes at most one command a cycle and never stalls.  Everything but ``CLEAR`` and ``NONE`` is
an error (`Fault.HOST_BUSY`, and ignored) from an accepted ``START`` until every queue has halted.

``SRAM``
    Write ``data`` into word ``address`` of every slice whose bit is set in ``select`` (slice ``i``
    of the floorplan's ``mem`` slices takes lanes from bit ``8 * lanes * i`` of ``data``).
``WORD``
    Write the low bits of ``data`` into instruction word ``address`` of queue number ``select``.
``TABLE``
    Write the low bits of ``data`` (`isa.table_layout`) into table entry ``address`` of queue
    ``select``.
``READ``
    Word ``address`` of every slice is on ``read_data`` ``READ_LATENCY`` cycles later.
``START``
    ``data`` is a `start_layout`: at ``time`` of the tile's own cycle counter, event cycle 0, the
    first word of every queue issues.  In time until ``time - timing.START_LEAD``; later it is
    `Fault.START_PAST` and nothing runs.  SRAM, accumulators and FIFOs stay as they are.
    ``steps`` of 0 counts as 1.
``CLEAR``
    Clear the sticky error register.
"""

from amaranth.hdl import Shape, unsigned
from amaranth.lib import data, enum
from amaranth.utils import bits_for

from . import isa
from .queues import queues

__all__ = ["HostOp", "TIME_BITS", "READ_LATENCY", "start_layout", "command_layout", "row_bits"]

TIME_BITS = 32
#: Cycles from a READ command to ``read_data``.
READ_LATENCY = 2


class HostOp(enum.Enum, shape=unsigned(3)):
    """Commands of the host."""
    NONE = 0
    SRAM = 1
    WORD = 2
    TABLE = 3
    READ = 4
    START = 5
    CLEAR = 6


start_layout = data.StructLayout({
    "time": unsigned(TIME_BITS),
    "first_step": unsigned(isa.COUNTER_BITS),
    "steps": unsigned(isa.COUNTER_BITS),
})


def row_bits(cfg):
    """Bits of one SRAM word of every slice, as loaded and read back at once."""
    return 8 * cfg.lanes * len(cfg.slices("mem"))


def command_layout(cfg):
    """`StructLayout` of a command: ``op``, ``select``, ``address``, ``data``."""
    kinds = {queue.kind for queue in queues(cfg)}
    data_bits = max(row_bits(cfg), Shape.cast(start_layout).width,
                    *(isa.word_bits(cfg, kind) for kind in kinds),
                    *(Shape.cast(isa.table_layout(cfg, kind)).width for kind in kinds))
    return data.StructLayout({
        "op": HostOp,
        "select": unsigned(max(bits_for(len(queues(cfg)) - 1), len(cfg.slices("mem")))),
        "address": unsigned(bits_for(max(cfg.mem_words, cfg.icu_words) - 1)),
        "data": unsigned(data_bits),
    })
