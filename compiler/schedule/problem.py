"""What is to be scheduled: rigid clusters of instructions and the least distances between them.

Streams cannot wait, and an ALU's result exists for one cycle, so instructions joined by either keep
fixed distances: they are one *cluster*, placed as a whole.  Everything that can wait (an SRAM word,
an accumulator, the shadow weights, a FIFO) joins clusters by *edges*: a least distance between two
issues.
"""

from dataclasses import dataclass, field
from functools import cache

from hdl.arch import timing
from hdl.arch.ops import ALU_FEATURE
from hdl.arch.queues import queues

from ..errors import ScheduleError
from .shape import shape_of

__all__ = ["Bundle", "Cluster", "Edge", "Slot", "Wire", "alus_for"]


@dataclass(eq=False, slots=True)
class Slot:
    """One instruction of a cluster.

    Parameters
    ----------
    tile : int
    queue : str or tuple of str
        Where it runs; of several (ALUs of one depth) the scheduler takes one that is free.
    op : str
    fields : dict of str to int
        Operand fields; stream and RESULT operands are filled in by the scheduler.
    index, terms, predicate
        As in `plan.Issue`.
    key : hashable, optional
        What an SRAM access is ordered by, where its address does not tell.
    offset : int
        Cycles from the cluster's first issue, set by `Cluster`.
    """

    tile: int
    queue: str | tuple
    op: str
    fields: dict = field(default_factory=dict)
    index: tuple = ()
    terms: tuple = ()
    predicate: object = None
    key: object = None
    offset: int = 0
    cluster: object = None

    @property
    def queues(self):
        """The queues it may run in."""
        return (self.queue,) if isinstance(self.queue, str) else self.queue


@dataclass(eq=False, slots=True)
class Bundle:
    """A value on ``width`` (1, 2 or 4) aligned streams, in one direction or in both.

    Parameters
    ----------
    width : int
    producers : list of (Slot, int)
        Instruction and the first plane it writes; together they write every plane once.
    consumers : list of (Slot, str, int)
        Instruction, operand field (``"source"``, ``"a_source"``, ``"b_source"``) and the first
        plane it reads.
    """

    width: int
    producers: list
    consumers: list


@dataclass(eq=False, slots=True)
class Wire:
    """The result of ALU (or reduction) ``producer`` as operand ``operand`` (``"a"``, ``"b"``) of
    ``consumer``."""

    producer: Slot
    consumer: Slot
    operand: str


class Edge:
    """``target`` is issued at least ``distance`` cycles (may be negative) after ``source``."""

    __slots__ = ("distance", "source", "target")

    def __init__(self, source, target, distance):
        self.source = source
        self.target = target
        self.distance = distance


def alus_for(cfg, op):
    """Queues of the ALUs that have ``op``, those with the fewest features first.

    Raises
    ------
    ScheduleError
        When no ALU has it.
    """
    feature = ALU_FEATURE.get(op)
    able = [(len(alu.features), number) for number, alu in enumerate(cfg.alus)
            if feature is None or feature in alu.features]
    if not able:
        raise ScheduleError(f"{op} needs an ALU with the feature {feature!r}: add one to "
                            "TileConfig.alus")
    depth = cfg.alus[able[0][1]].depth
    return tuple(f"alu{number}" for _, number in sorted(able) if cfg.alus[number].depth == depth)


@cache
def _queues_by_name(cfg):
    return {queue.name: queue for queue in queues(cfg)}


@cache
def _positions(cfg):
    return {queue.name: cfg.position(queue.slice) for queue in queues(cfg)}


class Cluster:
    """Instructions with fixed distances.

    Parameters
    ----------
    cfg : TileConfig
    name : str
        For messages.
    slots : list of Slot
        All of one tile.
    bundles, wires : list of Bundle, list of Wire
        What joins them.

    Attributes
    ----------
    tile : int
    shape : Shape
        What it has in common with others.

    Raises
    ------
    ScheduleError
        When the distances that these ask for contradict each other.
    """

    __slots__ = ("_cfg", "_queues", "bundles", "name", "shape", "slots", "tile", "wires")

    def __init__(self, cfg, name, slots, bundles, wires=()):
        self.name = name
        self.slots = slots
        self.bundles = bundles
        self.wires = wires
        self._cfg = cfg
        self._queues = _queues_by_name(cfg)
        self.tile = slots[0].tile
        self.shape = shape_of(cfg, self)
        for slot, offset in zip(slots, self.shape.offsets, strict=True):
            slot.offset, slot.cluster = offset, self

    @property
    def alus(self):
        """Number of ALUs, which is the number of the reduction unit as a RESULT."""
        return len(self._cfg.alus)

    def unit(self, slot, queue=None):
        """`queues.Queue` of ``slot`` (of several, the first), or of ``queue``."""
        return self._queues[queue or slot.queues[0]]

    def position(self, slot):
        """Position of the slice that executes ``slot``."""
        return _positions(self._cfg)[slot.queue if isinstance(slot.queue, str) else slot.queue[0]]

    def times(self, slot):
        """`Timing` of ``slot``."""
        return timing.of(self._cfg, self.unit(slot), slot.op)

    def distance(self, producer, consumer):
        """Cycles from the issue of ``producer`` to that of ``consumer`` of its value."""
        hops = abs(self.position(producer) - self.position(consumer))
        return self.times(producer).t_d + hops - self.times(consumer).t_skew
