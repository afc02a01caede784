"""What is to be scheduled: rigid clusters of instructions and the least distances between them.

Streams cannot wait, so instructions joined by a stream value keep fixed distances: they are one
*cluster*, placed as a whole.  Everything that can wait (an SRAM word, an accumulator, the shadow
weights, a FIFO) joins clusters by *edges*: a least distance between two issues.
"""

from dataclasses import dataclass, field

from hdl.arch.queues import queues
from hdl.arch.timing import timing

from ..errors import ScheduleError

__all__ = ["Bundle", "Cluster", "Edge", "Slot", "Use"]


@dataclass(eq=False)
class Slot:
    """One instruction of a cluster.

    Parameters
    ----------
    tile, queue, op : int, str, str
    fields : dict of str to int
        Operand fields; stream operands are filled in by the scheduler.
    index, terms, predicate
        As in `plan.Issue`.
    offset : int
        Cycles from the cluster's first issue, set by `Cluster`.
    """

    tile: int
    queue: str
    op: str
    fields: dict = field(default_factory=dict)
    index: tuple = ()
    terms: tuple = ()
    predicate: object = None
    offset: int = 0
    cluster: object = None


@dataclass(eq=False)
class Bundle:
    """A value on ``width`` (1, 2 or 4) aligned streams of one direction.

    Parameters
    ----------
    width : int
    producers : list of (Slot, int)
        Instruction and the first plane it writes; together they write every plane once.
    consumers : list of (Slot, str, int, int)
        Instruction, operand field (``"source"``), first plane and number of planes it reads.
    """

    width: int
    producers: list
    consumers: list


@dataclass(frozen=True)
class Use:
    """A resource other than a queue or a stream that a cluster holds: ``resource`` (any hashable
    name) from ``offset`` for ``length`` cycles."""

    resource: tuple
    offset: int
    length: int


class Edge:
    """``target`` is issued at least ``distance`` cycles (may be negative) after ``source``."""

    __slots__ = ("distance", "source", "target")

    def __init__(self, source, target, distance):
        self.source = source
        self.target = target
        self.distance = distance


class Cluster:
    """Instructions with fixed distances.

    Parameters
    ----------
    cfg : TileConfig
    name : str
        For messages.
    slots : list of Slot
        All of one tile.
    bundles : list of Bundle
        Their stream values; they must join all slots.

    Raises
    ------
    ScheduleError
        When the distances that the bundles ask for contradict each other.
    """

    def __init__(self, cfg, name, slots, bundles):
        self.name = name
        self.slots = slots
        self.bundles = bundles
        self._cfg = cfg
        self._queues = {queue.name: queue for queue in queues(cfg)}
        self._place()
        self.uses = self._links()
        for slot in slots:
            slot.cluster = self

    def position(self, slot):
        """Position of the slice that executes ``slot``."""
        return self._cfg.position(self._queues[slot.queue].slice)

    def times(self, slot):
        """`Timing` of ``slot``."""
        return timing(self._cfg)[self._queues[slot.queue].kind, slot.op]

    def distance(self, producer, consumer):
        """Cycles from the issue of ``producer`` to that of ``consumer`` of its stream value."""
        hops = abs(self.position(producer) - self.position(consumer))
        return self.times(producer).t_d + hops - self.times(consumer).t_skew

    def _place(self):
        offsets = {id(self.slots[0]): 0}
        pairs = [(producer, consumer, self.distance(producer, consumer))
                 for bundle in self.bundles for producer, consumer in _pairs(bundle)]
        changed = True
        while changed:
            changed = False
            for producer, consumer, distance in pairs:
                for a, b, way in ((producer, consumer, distance), (consumer, producer, -distance)):
                    if id(a) in offsets and id(b) not in offsets:
                        offsets[id(b)] = offsets[id(a)] + way
                        changed = True
        if len(offsets) < len(self.slots):
            raise ScheduleError(f"{self.name}: its instructions are not joined by streams")
        for producer, consumer, distance in pairs:
            if offsets[id(consumer)] - offsets[id(producer)] != distance:
                raise ScheduleError(f"{self.name}: {consumer.queue} cannot meet all its operands: "
                                    f"the one of {producer.queue} needs {distance} cycles")
        first = min(offsets.values())
        for slot in self.slots:
            slot.offset = offsets[id(slot)] - first

    def _links(self):
        uses = []
        for slot in self.slots:
            if slot.op in ("SEND", "FORWARD"):
                vectors = 4 if slot.fields.get("quad") else 1
                for link in range(len(self._cfg.ports) + 1):
                    if slot.fields["links"] >> link & 1:
                        uses.append(Use(("wire", slot.tile, link),
                                        slot.offset + self.times(slot).t_d,
                                        vectors * self._cfg.port(link).flits(self._cfg.lanes)))
        return uses


def _pairs(bundle):
    """Producer and consumer instructions that share a plane of ``bundle``."""
    for producer, first in bundle.producers:
        last = first + producer_planes(producer, bundle)
        for consumer, _, begin, count in bundle.consumers:
            if begin < last and first < begin + count:
                yield producer, consumer


def producer_planes(producer, bundle):
    """Planes that ``producer`` writes: a quad, or one."""
    quad = producer.op == "ACC" or producer.fields.get("quad")
    return bundle.width if quad else 1
