"""Queues of turns: which is the first, and when."""

from compiler.collectives.turns import Queue


def queue_of(*entries):
    """A queue of (since, number), a heap; a turn is what its number is, as text."""
    queue = Queue(None, (), (), ())
    queue.soon = [(since, number, str(number)) for since, number in entries]
    return queue


def room(start):
    """None in the cycles 20 and 21."""
    return 22 if start in (20, 21) else start


def test_of_those_that_can_begin_in_one_cycle_the_lowest_number_is_the_first():
    queue = queue_of((20, 5), (21, 3), (23, 1), (24, 2))
    assert queue.first(0, room) == (22, 3) and queue.pop(3) == "3"
    assert queue.first(0, lambda start: start) == (20, 5)


def test_one_that_is_ready_can_begin_no_sooner_for_another_that_is_not():
    queue = queue_of((20, 5), (30, 1))
    assert queue.first(25, lambda start: start + 1) == (26, 5)
    assert queue.pop(5) == "5"
    assert queue.first(25, lambda start: start) == (30, 1) and queue.pop(1) == "1"
    assert not queue


def test_what_is_taken_out_leaves_the_others_in_order():
    queue = queue_of((20, 3), (30, 4), (21, 0), (31, 5), (32, 6), (22, 1), (23, 2))
    order = []
    while queue:
        order.append(queue.first(0, room))
        assert queue.pop(order[-1][1]) == str(order[-1][1])
    assert order == [(22, 0), (22, 1), (22, 3), (23, 2), (30, 4), (31, 5), (32, 6)]
