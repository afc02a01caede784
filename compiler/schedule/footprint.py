"""What a cluster takes of the machine, by cycle: apart from its instructions, so that time can also
be looked at from behind.

A *cell* is one resource (a unit, a stream register, a wire) in one cycle.  Resources are numbers
here, and what is taken of one is a Python integer: bit ``k`` for cycle ``k``.  Shifts and ORs of
whole integers answer for all start cycles at once.
"""

from collections import defaultdict

from ..errors import ScheduleError
from .streams import registers

__all__ = ["Footprint", "Resources", "fits", "misfit"]


class Resources:
    """Numbers of resources, in the order in which they are first named."""

    def __init__(self):
        self._numbers = defaultdict(lambda: len(self._numbers))

    def __len__(self):
        return len(self._numbers)

    def number(self, name):
        return self._numbers[name]

    def items(self):
        """Names with their numbers."""
        return self._numbers.items()


class Footprint:
    """Cells of one cluster relative to its start.

    Parameters
    ----------
    cfg : TileConfig
    cluster : Cluster
    resources : Resources

    Attributes
    ----------
    fixed : list of (int, int)
        Resource and offset of each cell that it takes in any case.
    choices : list of list of list of (int, int)
        For each slot that may run in one of several units, and then for each bundle: by unit, or by
        first stream, the cells.
    units : list of Slot
        The slots that have a choice, those with the least of it first.
    first : int
        Least offset.

    Raises
    ------
    ScheduleError
        When it takes one cell twice.
    """

    __slots__ = ("choices", "first", "fixed", "units")

    def __init__(self, cfg, cluster, resources):
        number = resources.number
        # those with the least choice first: none of the others then takes their only unit
        self.units = sorted((slot for slot in cluster.slots if not isinstance(slot.queue, str)),
                            key=lambda slot: len(slot.queues))
        self.fixed = [(number(use.resource), use.offset + i) for use in cluster.uses
                      for i in range(use.length)]
        self.fixed += [(number(("queue", slot.tile, slot.queue)), slot.offset)
                       for slot in cluster.slots if isinstance(slot.queue, str)]
        self.choices = [[[(number(("queue", slot.tile, queue)), slot.offset)]
                         for queue in slot.queues] for slot in self.units]
        for bundle in cluster.bundles:
            path = registers(cluster, bundle)
            self.choices.append([[(number(register.resource(base)), register.offset)
                                  for register in path]
                                 for base in range(0, cfg.streams, bundle.width)])
        if len(set(self.fixed)) < len(self.fixed):
            twice = next(use for use in self.fixed if self.fixed.count(use) > 1)
            _, tile, unit = next(name for name, known in resources.items() if known == twice[0])
            raise ScheduleError(f"{cluster.name} needs {unit} of tile {tile} twice in a cycle: "
                                "change TileConfig.floorplan")
        self._note_first()

    def _note_first(self):
        self.first = min(offset for cells in [self.fixed, *(option for options in self.choices
                                                            for option in options)]
                         for _, offset in cells)

    def mirrored(self):
        """The same with time running backwards."""
        other = object.__new__(Footprint)
        other.units = self.units
        other.fixed = [(resource, -offset) for resource, offset in self.fixed]
        other.choices = [[[(resource, -offset) for resource, offset in option]
                          for option in options] for options in self.choices]
        other._note_first()
        return other

    def blocked(self, taken, start):
        """Bit ``i``: there is no room at ``start + i``; where it is 0 there may be.

        Parameters
        ----------
        taken : list of int
            By resource.
        start : int
            At least ``-first``.
        """
        found = 0
        for resource, offset in self.fixed:
            found |= taken[resource] >> start + offset
        for options in self.choices:
            all_options = -1
            for option in options:
                this = 0
                for resource, offset in option:
                    this |= taken[resource] >> start + offset
                all_options &= this
                if not all_options:
                    break
            found |= all_options
        return found

    def choose(self, taken, start, lacking=None):
        """The first option of each choice that is free at ``start`` beside those before it: a list
        of numbers, or None where a choice has none; its number is then added to ``lacking``."""
        mine, chosen = set(self.fixed), []
        for options in self.choices:
            for number, option in enumerate(options):
                if not any(taken[resource] >> start + offset & 1 for resource, offset in option) \
                        and mine.isdisjoint(option):
                    mine.update(option)
                    chosen.append(number)
                    break
            else:
                if lacking is not None:
                    lacking.append(len(chosen))
                return None
        return chosen

    def take(self, taken, start, chosen):
        """Mark the cells of a choice as taken."""
        for resource, offset in self.fixed:
            taken[resource] |= 1 << start + offset
        for options, number in zip(self.choices, chosen, strict=True):
            for resource, offset in options[number]:
                taken[resource] |= 1 << start + offset


def fits(cfg, cluster):
    """Whether ``cluster`` finds room on an idle tile."""
    return misfit(cfg, cluster) is None


def misfit(cfg, cluster):
    """Why ``cluster`` finds no room on an idle tile, and what to change; None where it does."""
    resources = Resources()
    try:
        mine = Footprint(cfg, cluster, resources)
    except ScheduleError as error:
        return str(error)
    idle, lacking = [0] * len(resources), []
    if mine.choose(idle, -mine.first, lacking) is not None:
        return None
    number, = lacking
    if number >= len(mine.units):
        return (f"{cluster.name} needs more than {cfg.streams} streams at once: raise "
                "TileConfig.streams")
    slot = mine.units[number]
    return (f"{cluster.name} needs more ALUs for {slot.op} in one cycle than {len(slot.queues)} "
            "of one depth: add to TileConfig.alus")
