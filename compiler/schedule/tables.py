"""Reservation tables: what is taken, as one bit per cycle.

A table is one Python integer: bit ``k`` set means taken in cycle ``k``.  Shifts and ORs of whole
tables answer for all start cycles at once.
"""

from collections import defaultdict

from ..errors import ScheduleError

__all__ = ["Tables"]


class Tables:
    """Reservations of queues, stream registers and other resources, from cycle 0 on."""

    def __init__(self):
        self._taken = defaultdict(int)
        self._holder = {}

    def conflicts(self, resource, offset, length, start):
        """Bit ``i``: a reservation of ``length`` cycles from ``start + i + offset`` would meet
        another."""
        taken = self._taken[resource] if resource in self._taken else 0
        if not taken:
            return 0
        shift = start + offset
        taken = taken >> shift if shift >= 0 else taken << -shift
        spread = taken
        for i in range(1, length):
            spread |= taken >> i
        return spread

    def reserve(self, resource, cycle, length, holder):
        """Take ``resource`` from ``cycle`` for ``length`` cycles.

        Raises
        ------
        ScheduleError
            Naming the one that has it.
        """
        bits = (1 << length) - 1 << cycle
        if self._taken[resource] & bits:
            at = next(k for k in range(cycle, cycle + length) if self._taken[resource] >> k & 1)
            raise ScheduleError(f"{resource} at cycle {at} is held by "
                                f"{self._holder.get((resource, at))}; cannot place {holder}")
        self._taken[resource] |= bits
        for k in range(cycle, cycle + length):
            self._holder[resource, k] = holder

    def taken(self, resource, cycle):
        """Whether ``resource`` is taken in ``cycle``."""
        return resource in self._taken and self._taken[resource] >> cycle & 1

    def busy(self, resource):
        """Cycles in which ``resource`` is taken."""
        return self._taken[resource].bit_count() if resource in self._taken else 0
