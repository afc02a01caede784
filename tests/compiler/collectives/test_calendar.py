"""Calendars: what they give, beside counting cycle by cycle."""

from collections import Counter

import pytest

from compiler.collectives.calendar import Calendar


def test_moves_fill_the_cycles_that_have_room():
    calendar = Calendar(2)
    calendar.take(5, 3)
    assert [calendar.first(start) for start in (4, 5, 6, 7)] == [4, 6, 6, 7]
    calendar.take(4, 3)         # before what was taken, and behind it
    assert [calendar.first(start) for start in (0, 4, 6, 7)] == [0, 7, 7, 7]


@pytest.mark.parametrize("room", [1, 2, 3])
def test_every_move_goes_to_the_first_cycle_that_has_room(room, rng):
    calendar, taken = Calendar(room), Counter()
    for start, moves in rng.integers((0, 1), (40, 6), (60, 2)).tolist():
        free = next(cycle for cycle in range(start, 400) if taken[cycle] < room)
        assert calendar.first(start) == free
        calendar.take(start, moves)
        for _ in range(moves):
            taken[next(cycle for cycle in range(start, 400) if taken[cycle] < room)] += 1
