"""Random programs for two nano tiles: few instructions in every queue, at random times, on few
streams, so that values meet, miss and overwrite each other, links collide and FIFOs run over."""

from hdl.arch import isa
from hdl.arch.binary import SystemBinary, TileBinary
from hdl.arch.encoding import encode
from hdl.arch.isa import Operand
from hdl.arch.presets import NANO
from hdl.arch.queues import queues

__all__ = ["random_binary"]

STREAMS = 3         #: streams that programs use, from 0 on
ADDRESSES = 5       #: SRAM addresses that most instructions use


def _field(rng, name, field):
    """A random value of a field."""
    if name in ("source", "a_source", "b_source", "east", "west", "target"):
        return int(rng.integers(STREAMS))
    if name == "address":
        return int(rng.integers(ADDRESSES))
    if name.endswith("_terms"):
        entries = rng.integers(0, isa.TABLE_ENTRIES, NANO.loop_levels)
        return [int(entry) for entry in entries * (rng.random() < 0.3)]
    if name.endswith("_last"):
        return int(rng.random() < 0.7)
    if name in ("a", "b"):
        return int(rng.choice([operand.value for operand in Operand]))
    return int(rng.integers(1 << field.width))


def _unit(rng, kind):
    ops = list(isa.formats(NANO, kind))
    op = ops[rng.integers(len(ops))]
    skipped = ("op", "ends", "wait")
    return op.name, {name: _field(rng, name, field) for name, field in isa.layout(NANO, kind, op)
                     if name not in skipped}


def _repeat(rng, kind):
    strides = {f"{index.name}_stride": int(rng.integers(-3, 4))
               for index in isa.KINDS[kind].indices}
    return "REPEAT", {"count": int(rng.integers(4)), "interval": int(rng.integers(4)), **strides}


def _queue(rng, kind, density, horizon):
    """Words of one queue: up to three instructions, perhaps in a loop."""
    lines = []
    if rng.random() < density:
        loop = rng.random() < 0.3
        if loop:
            lines.append(("LOOP", {"count": int(rng.integers(4))}))
        for _ in range(rng.integers(1, 4)):
            lines.append(("NOP", {"wait": int(rng.integers(horizon))}))
            lines.append(_unit(rng, kind))
            if rng.random() < 0.3:
                lines.append(_repeat(rng, kind))
        if loop:
            lines[-1][1]["ends"] = 1
    return [encode(NANO, kind, op, **fields) for op, fields in [*lines, ("HALT", {})]]


def _table(rng):
    return [(0, 0, 0), *((int(rng.integers(3)), int(rng.choice([1, 3, 7])),
                          int(rng.integers(-4, 5))) for _ in range(isa.TABLE_ENTRIES - 1))]


def random_binary(rng):
    """Two steps of a random program, with every SRAM word defined."""
    density = rng.choice([0.1, 0.2, 0.5, 1.0])
    horizon = int(rng.choice([3, 8, 20]))
    tiles = []
    for _ in range(2):
        tiles.append(TileBinary(
            words={queue.name: _queue(rng, queue.kind, density, horizon)
                   for queue in queues(NANO)},
            tables={queue.name: _table(rng) for queue in queues(NANO)
                    if isa.KINDS[queue.kind].terms},
            # Small bytes: planes of an address that GATHER finds now and then.
            sram={name: {0: rng.integers(0, rng.choice([2, 256]), NANO.mem_words * NANO.lanes,
                                         "u1").tobytes()} for name in NANO.slices("mem")}))
    return SystemBinary(tiles=tiles, first_step=int(rng.integers(50)), steps=2)
