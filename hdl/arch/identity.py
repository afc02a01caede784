"""What a program relies on beside the geometry of its tile, as one number."""

import hashlib
import json

from amaranth.hdl import Shape
from amaranth.lib import data

from . import isa
from .errors import Fault
from .host import READ_LATENCY, HostOp, command_layout, start_layout
from .queues import queues
from .timing import timing

__all__ = ["isa_digest"]


def _fields(layout):
    """(name, offset, width, signed) of the fields of a layout, those of a part under its name."""
    found = []
    for name, field in layout:
        if isinstance(field.shape, data.Layout):
            found += [(f"{name}.{part}", field.offset + offset, *kind)
                      for part, offset, *kind in _fields(field.shape)]
        else:
            shape = Shape.cast(field.shape)
            found.append((str(name), field.offset, shape.width, shape.signed))
    return found


def isa_digest(cfg):
    """16 hex digits that name the instruction set of a tile: encoding and timing of every opcode,
    tables, order of the queues, commands of the host, numbers of the faults."""
    kinds = {kind: {"table": _fields(isa.table_layout(cfg, kind)), "opcodes": {
        op.name: (op.value, _fields(isa.layout(cfg, kind, op)))
        for op in isa.opcodes(cfg, kind)}} for kind in isa.KINDS}
    delays = {f"{kind} {op}": (delay.t_d, delay.t_skew)
              for (kind, op), delay in timing(cfg).items()}
    parts = {"kinds": kinds, "timing": delays, "queues": [queue.name for queue in queues(cfg)],
             "host": {op.name: op.value for op in HostOp}, "command": _fields(command_layout(cfg)),
             "start": _fields(start_layout), "read_latency": READ_LATENCY,
             "faults": {fault.name: fault.value for fault in Fault}}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
