"""What has room for some moves in every cycle, filled in any order of cycles."""

from collections import defaultdict

__all__ = ["Calendar"]


class Calendar:
    """Room for moves.

    Parameters
    ----------
    room : int
        Moves in one cycle.
    """

    __slots__ = ("_full", "_room", "_taken")

    def __init__(self, room):
        self._room = room
        self._taken = defaultdict(int)      # cycle -> moves
        self._full = 0                      # bit k: no room in cycle k

    def first(self, start):
        """The first cycle from ``start`` on in which there is room."""
        late = self._full >> start
        return start + (~late & late + 1).bit_length() - 1

    def take(self, start, moves):
        """Take room for ``moves``, from ``start`` on wherever there is some."""
        for _ in range(moves):
            start = self.first(start)
            self._taken[start] += 1
            if self._taken[start] == self._room:
                self._full |= 1 << start
