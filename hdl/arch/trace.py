"""What can be observed of a run: the events and the trace port that shows them.

Three kinds of event, each at a cycle counted from the start time: the *issue* of an instruction,
the *write* of an SRAM word, the *arrival* of a vector in the FIFO of a link.  Plan, emulator and
RTL are compared as tables of these (`ISSUE`, `write_record`, `arrival_record`: record formats as
numpy understands them).  An issue shows the CRC-16 of its word and its indices, packed from bit 0
in the order of `isa.QueueKind.indices`.

Beside them the trace port shows where faults are first seen (`fault_places`): what sets a bit of
the sticky error register.
"""

from amaranth.hdl import unsigned
from amaranth.lib import data
from amaranth.utils import bits_for

from . import isa
from .errors import Fault
from .queues import queues

__all__ = ["ISSUE", "write_record", "arrival_record", "trace_index_bits", "issue_layout",
           "write_layout", "arrival_layout", "fault_layout", "fault_places", "pack_index"]

_EVENT = [("cycle", "<i8"), ("tile", "<u2"), ("unit", "<u2")]

#: Issue: ``unit`` is the number of the queue in `queues.queues`.
ISSUE = [*_EVENT, ("crc", "<u2"), ("index", "<u4")]


def write_record(cfg):
    """SRAM write: ``unit`` is the number of the slice among the mem slices."""
    return [*_EVENT, ("address", "<u4"), ("data", "u1", (cfg.lanes,))]


def arrival_record(cfg):
    """Arrival of a vector: ``unit`` is the number of the link (the host is the last)."""
    return [*_EVENT, ("data", "u1", (cfg.lanes,))]


def trace_index_bits(cfg):
    """Width of the index field of the trace port's issues: the widest of all queues."""
    return max(1, *(sum(isa.index_bits(cfg, queue.kind)) for queue in queues(cfg)))


def pack_index(cfg, kind, indices):
    """Indices of a queue kind as the one number that an issue event shows."""
    packed, offset = 0, 0
    for value, bits in zip(indices, isa.index_bits(cfg, kind), strict=True):
        packed |= (value & (1 << bits) - 1) << offset
        offset += bits
    return packed


def issue_layout(cfg):
    """Trace port of one queue: an instruction issues in this cycle."""
    return data.StructLayout({"valid": unsigned(1), "crc": unsigned(16),
                              "index": unsigned(trace_index_bits(cfg))})


def write_layout(cfg):
    """Trace port of one slice: its write port writes in this cycle."""
    return data.StructLayout({"valid": unsigned(1),
                              "address": unsigned(bits_for(cfg.mem_words - 1)),
                              "data": unsigned(8 * cfg.lanes)})


def arrival_layout(cfg):
    """Trace port of one link: a vector enters the FIFO in this cycle."""
    return data.StructLayout({"valid": unsigned(1), "data": unsigned(8 * cfg.lanes)})


def fault_places(cfg):
    """Names of the places of a tile where faults are raised, in the order of its trace port: the
    host's side, the unit of every slice, every queue, the streams at every slice.  A queue that is
    named like its slice is one place with the unit."""
    return list(dict.fromkeys(["host", *cfg.floorplan, *(queue.name for queue in queues(cfg)),
                               *(f"{name} streams" for name in cfg.floorplan)]))


def fault_layout(cfg):
    """Trace port of one place: in this cycle it raises faults of classes that the tile's error
    register does not hold yet, bit numbers of ``bits`` as `Fault`."""
    return data.StructLayout({"valid": unsigned(1), "bits": unsigned(len(Fault))})
