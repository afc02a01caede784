"""What a cluster takes of the machine, by cycle: apart from its instructions, so that time can also
be looked at from behind.

A *cell* is one resource (a unit, a stream register, a wire) in one cycle.  Resources are numbers
here, the same on every tile, and what is taken of one is a Python integer: bit ``k`` for cycle
``k``.  Shifts and ORs of whole integers answer for all start cycles at once.
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
    """Cells of a cluster, and of all others of its shape, relative to the start.

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
    units : list of int
        Numbers of the slots that have a choice, those with the least of it first.
    first : int
        Least offset.

    Raises
    ------
    ScheduleError
        When it takes one cell twice.
    """

    __slots__ = ("_fixed", "_last", "_masks", "choices", "first", "fixed", "units")

    def __init__(self, cfg, cluster, resources):
        number, slots, offsets = resources.number, cluster.slots, cluster.shape.offsets
        # those with the least choice first: none of the others then takes their only unit
        self.units = sorted((i for i, slot in enumerate(slots) if not isinstance(slot.queue, str)),
                            key=lambda i: len(slots[i].queues))
        self.fixed = [(number(name), first + i) for name, first, cycles in cluster.shape.uses
                      for i in range(cycles)]
        self.fixed += [(number(("queue", slot.queue)), slot.offset)
                       for slot in slots if isinstance(slot.queue, str)]
        self.choices = [[[(number(("queue", queue)), offsets[i])]
                         for queue in slots[i].queues] for i in self.units]
        for bundle in cluster.bundles:
            path = registers(cluster, bundle)
            self.choices.append([[(number(register.resource(base)), register.offset)
                                  for register in path]
                                 for base in range(0, cfg.streams, bundle.width)])
        if len(set(self.fixed)) < len(self.fixed):
            twice = next(use for use in self.fixed if self.fixed.count(use) > 1)
            _, unit = next(name for name, known in resources.items() if known == twice[0])
            raise ScheduleError(f"{cluster.name} needs {unit} of tile {cluster.tile} twice in a "
                                "cycle: change TileConfig.floorplan")
        self._note_cells()

    def _note_cells(self):
        """Number the cells, for masks of what would be taken twice; find the first."""
        options = [option for options in self.choices for option in options]
        bits = {}
        for cells in (self.fixed, *options):
            for cell in cells:
                bits.setdefault(cell, 1 << len(bits))
        self._fixed = sum(bits[cell] for cell in self.fixed)
        self._masks = [[sum({bits[cell] for cell in option}) for option in options]
                       for options in self.choices]
        reached = [offset for _, offset in bits]
        self.first, self._last = min(reached), max(reached)

    def mirrored(self):
        """The same with time running backwards."""
        other = object.__new__(Footprint)
        other.units = self.units
        other.fixed = [(resource, -offset) for resource, offset in self.fixed]
        other.choices = [[[(resource, -offset) for resource, offset in option]
                          for option in options] for options in self.choices]
        other._fixed, other._masks = self._fixed, self._masks
        other.first, other._last = -self._last, -self.first
        return other

    def folded(self, period):
        """The same with all cycles modulo ``period``; None where it would meet itself."""
        other = object.__new__(Footprint)
        other.units = self.units
        other.fixed = [(resource, offset % period) for resource, offset in self.fixed]
        other.choices = [[[(resource, offset % period) for resource, offset in option]
                          for option in options] for options in self.choices]
        if any(len(set(cells)) < len(cells) for options in ([other.fixed], *other.choices)
               for cells in options):
            return None
        other._note_cells()
        return other

    def blocked(self, taken, start):
        """Bit ``i``: there is no room at ``start + i``; where it is 0 there may be.

        Parameters
        ----------
        taken : list of int
            Of the cluster's tile, by resource.
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

    def choose(self, taken, start, lacking=None, barred=()):
        """The first option of each choice that is free at ``start`` beside those before it: a list
        of numbers, or None where a choice has none; its number is then added to ``lacking``.
        ``barred``: numbers of choice and option of which none may be taken."""
        mine, chosen = self._fixed, []
        for options, masks in zip(self.choices, self._masks, strict=True):
            for number, option in enumerate(options):
                if mine & masks[number] or (len(chosen), number) in barred:
                    continue
                for resource, offset in option:
                    if taken[resource] >> start + offset & 1:
                        break
                else:
                    mine |= masks[number]
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
    if cluster.shape.fits is None:
        cluster.shape.fits = misfit(cfg, cluster) is None
    return cluster.shape.fits


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
    slot = cluster.slots[mine.units[number]]
    return (f"{cluster.name} needs more ALUs for {slot.op} in one cycle than {len(slot.queues)} "
            "of one depth: add to TileConfig.alus")
