"""Stream registers that a cluster occupies, and the operand fields that name its streams."""

from typing import NamedTuple

from hdl.arch.isa import Operand, planes

from ..errors import ScheduleError
from ..plan import Issue

__all__ = ["issues_of", "registers"]


class Register(NamedTuple):
    """One stream register in one cycle: the value is written into the register that leads on from
    position ``boundary`` in cycle ``offset`` of the cluster."""

    west: bool
    plane: int
    boundary: int
    offset: int

    def resource(self, base):
        """Name in the reservation tables when the bundle's first stream is ``base``."""
        return ("stream", self.west, base + self.plane, self.boundary)


def _readers(cluster, bundle, plane, origin, west):
    """Positions at which ``plane`` is read on the side of ``origin``, as distances."""
    found = []
    for consumer, operand, begin in bundle.consumers:
        if begin <= plane < begin + planes(consumer.op, consumer.fields, operand):
            distance = cluster.position(consumer) - origin
            if distance == 0:
                raise ScheduleError(f"{cluster.name}: {consumer.op} cannot read a stream at the "
                                    "position that writes it")
            if (distance < 0) == west:
                found.append(abs(distance))
    return found


def registers(cluster, bundle):
    """All `Register` that a value of ``bundle`` passes.

    Raises
    ------
    ScheduleError
        When a plane that is written on one side is not read there.
    """
    found = []
    for west in (False, True):
        if not any(_side(cluster, bundle, consumer) == west for consumer, *_ in bundle.consumers):
            continue
        for producer, first in bundle.producers:
            origin = cluster.position(producer)
            written = producer.offset + cluster.times(producer).t_d
            for plane in range(first, first + planes(producer.op, producer.fields, "target")):
                readers = _readers(cluster, bundle, plane, origin, west)
                if not readers:
                    raise ScheduleError(f"{cluster.name}: nobody reads plane {plane} of a value")
                found += [Register(west, plane, origin + (-hop if west else hop), written + hop)
                          for hop in range(max(readers))]
    return found


def _side(cluster, bundle, consumer):
    """Whether ``consumer`` is west of the producers of ``bundle``."""
    sides = {cluster.position(consumer) < cluster.position(producer)
             for producer, _ in bundle.producers}
    if len(sides) > 1:
        raise ScheduleError(f"{cluster.name}: {consumer.op} lies between the sources of one value")
    return sides.pop()


def issues_of(cluster, units, streams, start):
    """`Issue` of every slot of a placed cluster.

    Parameters
    ----------
    units : list of str
        Queue of each slot.
    streams : list of int
        First stream of each bundle.
    start : int
        Cycle of the cluster's first issue.
    """
    shape = cluster.shape
    if shape.operands is None:
        shape.operands = _operands(cluster)
    issues = []
    for slot, queue, (fixed, named, results) in zip(cluster.slots, units, shape.operands,
                                                    strict=True):
        fields = slot.fields | fixed
        for name, bundle, plane in named:
            fields[name] = streams[bundle] + plane
        for name, producer in results:
            unit = cluster.unit(cluster.slots[producer], units[producer])
            fields[name] = unit.unit if unit.kind == "alu" else cluster.alus
        issues.append(Issue(tile=slot.tile, queue=queue, op=slot.op, start=start + slot.offset,
                            fields=tuple(sorted(fields.items())), index=slot.index,
                            terms=slot.terms or ((),) * len(slot.index),
                            predicate=slot.predicate))
    return issues


def _operands(cluster):
    """Of each slot: fields with their values; fields with the bundle and the plane of it whose
    stream they name; fields with the number of the slot whose unit they name."""
    found = [({}, [], []) for _ in cluster.slots]
    of = {id(slot): mine for slot, mine in zip(cluster.slots, found, strict=True)}
    for number, bundle in enumerate(cluster.bundles):
        for producer, first in bundle.producers:
            fixed, named, _ = of[id(producer)]
            width = planes(producer.op, producer.fields, "target")
            for consumer, operand, begin in bundle.consumers:
                read = planes(consumer.op, consumer.fields, operand)
                if begin < first + width and first < begin + read:
                    side = "west" if _side(cluster, bundle, consumer) else "east"
                    fixed[f"{side}_en"] = 1
                    named.append(("target" if _shares_target(cluster, producer) else side,
                                  number, first))
        for reader, (consumer, operand, begin) in enumerate(bundle.consumers):
            fixed, named, _ = of[id(consumer)]
            named.append((operand, number, begin))
            fixed |= {f"{operand}_west": int(_side(cluster, bundle, consumer)),
                      f"{operand}_last": int(_last(cluster, bundle, reader))}
    slots = {id(slot): number for number, slot in enumerate(cluster.slots)}
    for wire in cluster.wires:
        fixed, _, results = of[id(wire.consumer)]
        fixed[wire.operand] = Operand.RESULT.value
        results.append((f"{wire.operand}_source", slots[id(wire.producer)]))
    return found


def _shares_target(cluster, producer):
    return cluster.unit(producer).kind in ("alu", "reduce", "sxm")


def _last(cluster, bundle, number):
    """Whether consumer ``number`` is the last reader of all its planes (else of none)."""
    consumer, operand, begin = bundle.consumers[number]
    west = _side(cluster, bundle, consumer)
    sign = -1 if west else 1
    verdicts = set()
    for plane in range(begin, begin + planes(consumer.op, consumer.fields, operand)):
        readers = [(sign * cluster.position(other), -i)
                   for i, (other, field, first) in enumerate(bundle.consumers)
                   if first <= plane < first + planes(other.op, other.fields, field)
                   and _side(cluster, bundle, other) == west]
        verdicts.add(max(readers)[1] == -number)
    if len(verdicts) > 1:
        raise ScheduleError(f"{cluster.name}: {consumer.op} is the last reader of some planes only")
    return verdicts.pop()
