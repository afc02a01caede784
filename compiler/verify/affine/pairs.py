"""Reads and writes of one slice in one cycle: whether their addresses are ever equal."""

from dataclasses import dataclass, field

import numpy as np

from ..faults import fault
from .addresses import Offsets

__all__ = ["Pairs", "meetings"]


@dataclass
class Pairs:
    """READs and the WRITEs whose words are written in the cycle of the READ, a pair in each row.

    ``cycle`` is that of the READ; ``read`` and ``write`` are numbers in `Issues`, the levels their
    loop indices.  All happen again in every one of ``rides``, inner ones first.
    """
    cycle: np.ndarray
    read: np.ndarray
    read_levels: np.ndarray
    write: np.ndarray
    write_levels: np.ndarray
    rides: list = field(default_factory=list)


class _Side:
    """A READ or a WRITE of a pair."""

    def __init__(self, issues, issue, levels):
        self.word = issues.words[issues.word[issue]]
        self.queue = issues.bodies[issues.body[issue]].queue
        self.terms = {level: term for level, *term in self.word.terms[0]}
        self.levels = levels.tolist()
        self.base = int(issues.index[0, issue])

    def key(self, ride):
        """What decides how a ride changes the address."""
        level = ride.level.get(self.queue)
        return level, ride.step.get(self.queue), self.levels[level or 0], \
            tuple(self.terms.get(level, ())), self.word.predicate

    def address(self, levels):
        """Address at loop indices, not reduced."""
        return self.base + sum((levels[level] >> shift & mask) * step
                               for level, (shift, mask, step) in self.terms.items())

    def changes(self, ride):
        """How much each repetition of a ride adds, the first, which is there already, included."""
        level = ride.level.get(self.queue)
        number = np.arange(ride.count + 1)
        if level not in self.terms:
            return np.zeros_like(number)
        shift, mask, step = self.terms[level]
        value = (self.levels[level] + number * ride.step[self.queue] >> shift & mask) * step
        return value - value[0]

    def holds(self, ride=None):
        """Whether the predicate holds: in each repetition of a ride, or as things are."""
        if self.word.predicate is None:
            return True
        shift, mask, match = self.word.predicate
        step = self.levels[0]
        if ride:
            step = step + np.arange(ride.count + 1) * ride.step[self.queue]
        return (step >> shift & mask) == match

    def after(self, rides, times):
        """Loop indices after a number of repetitions of each ride."""
        levels = list(self.levels)
        for ride, number in zip(rides, times, strict=True):
            if self.queue in ride.level:
                levels[ride.level[self.queue]] += number * ride.step[self.queue]
        return levels


def meetings(pairs, issues, columns, slices):
    """Yield the first `Fault` of every pair that ever has equal addresses."""
    known = {}
    for i, cycle in enumerate(pairs.cycle.tolist()):
        read = _Side(issues, pairs.read[i], pairs.read_levels[i])
        write = _Side(issues, pairs.write[i], pairs.write_levels[i])
        modulo = int(columns.modulo[0, issues.word[pairs.read[i]]])
        key = tuple((read.key(ride), write.key(ride)) for ride in pairs.rides)
        if key not in known:
            known[key] = _differences(read, write, pairs.rides, modulo)
        found = known[key]
        wanted = (read.address(read.levels) - write.address(write.levels)) & modulo
        time = found.time[found.value == wanted]
        stepped = any(ride.level.get(write.queue) == 0 for ride in pairs.rides)
        if not len(time) or not stepped and not write.holds():
            continue
        rest, times = int(time.min()), []
        for ride in reversed(pairs.rides):      # each takes less time than one of the next
            number, rest = divmod(rest, ride.cycles)
            times.insert(0, number)
        address = read.address(read.after(pairs.rides, times)) & modulo
        yield fault("collision", cycle + int(time.min()), tile=issues.tile[pairs.read[i]],
                    mem=slices[read.word.queue.unit], address=address)


def _differences(read, write, rides, modulo):
    """`Offsets` of what rides add to the write's address less the read's, where it writes."""
    found = Offsets(modulo)
    for ride in rides:
        change = write.changes(ride) - read.changes(ride)
        number = np.arange(ride.count + 1)
        if ride.level.get(write.queue) == 0:
            holds = np.broadcast_to(write.holds(ride), number.shape)
            change, number = change[holds], number[holds]
        values, first = np.unique(change & modulo, return_index=True)
        found.add(values, number[first] * ride.cycles)
    return found
