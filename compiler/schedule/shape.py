"""What clusters have in common that differ only in tile, addresses, immediates and names.

A program has tens of thousands of clusters and some hundred shapes: what is worked out of a shape
is worked out once.
"""

from functools import cache

from hdl.arch import timing
from hdl.arch.isa import planes

from ..errors import ScheduleError

__all__ = ["Shape", "shape_of"]


class Shape:
    """Distances and resources of a cluster, whatever its tile.

    Attributes
    ----------
    offsets : list of int
        Of each slot: cycles from the cluster's first issue.
    uses : list of (tuple, int, int)
        Resources other than queues and streams: name on its tile, first cycle, cycles.
    results : int
        Cycles from the first issue to the last result.
    length : int
        Cycles from the first issue to when nothing is issued, written or moved any more.
    operands, fits : object
        What `streams` and `footprint` keep here; None until it is asked for.

    Raises
    ------
    ScheduleError
        When the distances contradict each other.
    """

    __slots__ = ("fits", "length", "offsets", "operands", "results", "uses")

    def __init__(self, cfg, cluster):
        self.offsets = _offsets(cluster)
        self.uses = _uses(cfg, cluster, self.offsets)
        self.results = max(offset + cluster.times(slot).t_d
                           for slot, offset in zip(cluster.slots, self.offsets, strict=True))
        self.length = max([self.results + 1] + [first + cycles for _, first, cycles in self.uses])
        self.operands = self.fits = None


@cache
def _known(cfg):
    return {}


def shape_of(cfg, cluster):
    """`Shape` of ``cluster``; raises as that does."""
    number = {id(slot): i for i, slot in enumerate(cluster.slots)}
    key = (
        tuple([(slot.queue, slot.op, slot.fields.get("quad"), slot.fields.get("count_log2"),
                slot.fields.get("links")) for slot in cluster.slots]),
        tuple([(bundle.width, *[(number[id(slot)], plane) for slot, plane in bundle.producers],
                *[(number[id(slot)], operand, plane) for slot, operand, plane in bundle.consumers])
               for bundle in cluster.bundles]),
        tuple([(number[id(wire.producer)], number[id(wire.consumer)], wire.operand)
               for wire in cluster.wires]))
    known = _known(cfg)
    if key not in known:
        known[key] = Shape(cfg, cluster)
    return known[key]


def _offsets(cluster):
    pairs = [pair for bundle in cluster.bundles for pair in _pairs(bundle)]
    pairs += [(wire.producer, wire.consumer) for wire in cluster.wires]
    pairs = [(producer, consumer, cluster.distance(producer, consumer))
             for producer, consumer in pairs]
    near = {id(slot): [] for slot in cluster.slots}
    for producer, consumer, distance in pairs:
        near[id(producer)].append((consumer, distance))
        near[id(consumer)].append((producer, -distance))
    offsets, stack = {id(cluster.slots[0]): 0}, [cluster.slots[0]]
    while stack:
        slot = stack.pop()
        for other, distance in near[id(slot)]:
            if id(other) not in offsets:
                offsets[id(other)] = offsets[id(slot)] + distance
                stack.append(other)
    if len(offsets) < len(cluster.slots):
        raise ScheduleError(f"{cluster.name}: its instructions are not joined by streams")
    for producer, consumer, distance in pairs:
        if offsets[id(consumer)] - offsets[id(producer)] != distance:
            raise ScheduleError(f"{cluster.name}: {consumer.op} cannot meet all its operands: "
                                f"the one of {producer.op} needs {distance} cycles")
    first = min(offsets.values())
    return [offsets[id(slot)] - first for slot in cluster.slots]


def _uses(cfg, cluster, offsets):
    """Wires of links, and the cycle behind a GATHER in which the read port is taken."""
    uses = []
    for slot, offset in zip(cluster.slots, offsets, strict=True):
        if slot.op == "GATHER":
            uses.append((("queue", slot.queue), offset + 1, timing.rules(cfg).gather_to_read - 1))
        if slot.fields.get("links"):
            vectors = planes(slot.op, slot.fields, "source")
            leaves = offset + timing.departure(cfg, cluster.unit(slot).kind)
            uses += [(("wire", link), leaves,
                      vectors * cfg.port(link).flits(cfg.lanes))
                     for link in range(len(cfg.ports) + 1) if slot.fields["links"] >> link & 1]
    return uses


def _pairs(bundle):
    """Producer and consumer instructions that share a plane of ``bundle``."""
    for producer, first in bundle.producers:
        written = range(first, first + planes(producer.op, producer.fields, "target"))
        for consumer, operand, begin in bundle.consumers:
            read = range(begin, begin + planes(consumer.op, consumer.fields, operand))
            if read.start < written.stop and written.start < read.stop:
                yield producer, consumer
