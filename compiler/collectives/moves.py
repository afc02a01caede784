"""The moves of which collectives are made: vectors onto links, from links on, and sums."""

from dataclasses import dataclass

from ..lower.chain import At, Chain
from .flow import Costs, Flight, Task

__all__ = ["Moves", "Stored"]


@dataclass(frozen=True)
class Stored:
    """A vector at ``at`` that ``task`` writes."""

    at: At
    task: Task


class Moves:
    """Tasks under construction.

    Parameters
    ----------
    network : Network
    places : Places
    add : str
        Opcode of the sum.
    in_order : bool
        Whether it is taken strictly from the first operand to the last.
    direct : bool
        Whether sums take what comes straight from the FIFOs; otherwise it is kept in SRAM first.

    Attributes
    ----------
    tasks : list of Task
    """

    def __init__(self, network, places, *, add="IADD", in_order=False, direct=True):
        self.network = network
        self.places = places
        self.tasks = []
        self._cfg = network.cfg
        self._costs = Costs(network.cfg)
        self._add = add
        self._in_order = in_order
        self._direct = direct

    def send(self, tile, at, links, *, copy=None):
        """The vector at ``at`` onto ``links``, and to the place ``copy``; returns the flights."""
        flights = [Flight(link) for link in links]

        def build(builder):
            chain = Chain(self._cfg, f"send of tile {tile}", tile)
            value = chain.read(at)
            if links:
                chain.send(value, [link.source_port for link in links])
            if copy:
                # a vector turns round in the VXM only
                turned = copy.slices == at.slices
                chain.write(chain.alu("PASS", value) if turned else value, copy)
            builder.add(chain.cluster())

        self._task(tile, build, sends=flights, leaves=self._costs.send, reads=1,
                   writes=int(copy is not None))
        return flights

    def pass_on(self, flight, links, at=None):
        """What comes on to ``links``, plane by plane, and to the place ``at``; returns the flights
        and the `Stored`, or None."""
        tile, port = flight.link.target, flight.link.target_port
        flights, ports = [Flight(link) for link in links], [link.source_port for link in links]

        def build(builder):
            for plane in range(4):
                chain = Chain(self._cfg, f"pass on at tile {tile}", tile)
                if at:
                    value = chain.recv(port, links=ports)
                    chain.write(value, At(at.slices[plane:plane + 1], at.address))
                else:
                    chain.forward(port, ports)
                builder.add(chain.cluster())

        task = self._task(tile, build, takes=[flight], sends=flights, streams=True,
                          ready=self._costs.receive, writes=int(at is not None))
        return flights, Stored(at, task) if at else None

    def store(self, flight, at):
        """What comes to the place ``at``; returns the `Stored`."""
        tile = flight.link.target

        def build(builder):
            chain = Chain(self._cfg, f"receive at tile {tile}", tile)
            chain.write(chain.recv(flight.link.target_port, quad=True), at)
            builder.add(chain.cluster())

        return Stored(at, self._task(tile, build, takes=[flight], ready=self._costs.receive,
                                     writes=1))

    def spread(self, flights, tree, keep):
        """Lead ``flights``, which have left the root of ``tree``, to its leaves.

        Parameters
        ----------
        keep : function (tile) to At or None
            Where a tile puts it, if it shall have it.

        Returns
        -------
        dict of int to Stored or Flight
            What each tile that keeps it has; a leaf the flight itself, still to be taken.
        """
        kept, queue = {}, list(flights)
        for flight in queue:
            tile = flight.link.target
            if links := tree.get(tile):
                onward, stored = self.pass_on(flight, links, keep(tile))
                queue += onward
                if stored:
                    kept[tile] = stored
            else:
                kept[tile] = flight
        return kept

    def settle(self, kept, keep):
        """Store the flights among the values of ``kept``."""
        for tile, value in kept.items():
            if isinstance(value, Flight):
                self.store(value, keep(tile))

    def sum(self, tile, parts, *, spare, at=None, links=()):
        """The sum of ``parts`` (At, Stored or Flight) to ``at`` and onto ``links``.

        Parameters
        ----------
        spare : function (number of the part) to At
            Where a flight can be kept.

        Returns
        -------
        (list of Flight, Stored or None)
        """
        parts = self._settled(parts, spare)
        groups = [[part] for part in parts] if self._in_order else self._groups(parts)
        late = len(groups) > 1 and self._meet(*groups[:2])
        flights = [Flight(link) for link in links]

        def build(builder):
            chain = Chain(self._cfg, f"sum at tile {tile}", tile)
            total = self._total(chain, groups, late)
            if at:
                chain.write(total, at)
            if links:
                chain.send(total, [link.source_port for link in links])
            builder.add(chain.cluster())

        takes = [part for part in parts if isinstance(part, Flight)]
        levels = [(len(group) - 1).bit_length() for group in groups]
        total = levels[0] + late        # levels behind which the first group is in the total
        leaves, ready = self._costs.sum(total + len(groups) - 1, not takes)
        later = {getattr(part, "task", part): (total + number - mine) * self._costs.add
                 for number, (group, mine) in enumerate(zip(groups[1:], levels[1:], strict=True))
                 for part in group if not isinstance(part, At)}
        task = self._task(tile, build, takes=takes, sends=flights, leaves=leaves, ready=ready,
                          after=[part.task for part in parts if isinstance(part, Stored)],
                          adds=self._costs.vxm(len(parts) - 1, not takes),
                          reads=len(parts) - len(takes), writes=int(at is not None),
                          later=later)
        return flights, Stored(at, task) if at else None

    def _settled(self, parts, spare):
        """``parts`` with those flights stored that a sum cannot take: two of one link, or all."""
        links = [part.link for part in parts if isinstance(part, Flight)]
        return [self.store(part, spare(number)) if isinstance(part, Flight)
                and (not self._direct or links.count(part.link) > 1) else part
                for number, part in enumerate(parts)]

    def _groups(self, parts):
        """``parts`` in groups of 4, 2 or 1, the largest first; a slice gives one word in a cycle,
        so those in one group lie in different ones."""
        groups = []
        for part in parts:
            fit = next((group for group in groups if len(group) < self._costs.group
                        and not self._share(group, [part])), None)
            if fit is None:
                groups.append([part])
            else:
                fit.append(part)
        groups = [piece for group in groups for piece in
                  ([group[:2], group[2:]] if len(group) == 3 else [group])]
        return sorted(groups, key=len, reverse=True)

    def _meet(self, first, second):
        """Whether the first two groups cannot be taken in one cycle, in which both are wanted."""
        return len(first) == len(second) and (
            self._share(first, second) or len(first) + len(second) > self._costs.group)

    def _share(self, group, other):
        slices = [self._slices(part) for part in group]
        return any(self._slices(part) in slices for part in other if self._slices(part))

    def _total(self, chain, groups, late):
        """Sum of all parts: those of a group in one cycle and by pairs, the groups one behind the
        other, each a level of the adders later than the one before (the first one too if ``late``:
        it is passed on once)."""
        total = None
        for group in groups:
            values = [self._value(chain, part) for part in group]
            while len(values) > 1:
                values = [chain.alu(self._add, *values[i:i + 2]) for i in range(0, len(values), 2)]
            if total is None:
                total = chain.alu("PASS", values[0]) if late else values[0]
            else:
                total = chain.alu(self._add, total, values[0])
        return total

    @staticmethod
    def _slices(part):
        return None if isinstance(part, Flight) else (part.at if isinstance(part, Stored)
                                                      else part).slices

    def _value(self, chain, part):
        if isinstance(part, Flight):
            return chain.recv(part.link.target_port, quad=True)
        return chain.read(part.at if isinstance(part, Stored) else part)

    def _task(self, tile, build, **arguments):
        task = Task(tile, build, **arguments)
        self.tasks.append(task)
        return task
