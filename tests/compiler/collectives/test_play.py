"""The play of the tasks: what goes first, beside looking through all queues before every task."""

from dataclasses import replace

import pytest

from compiler.collectives import COLLECTIVES
from compiler.collectives.algorithms import ALGORITHMS, tasks_of, vectors_of
from compiler.collectives.flow import Flight, Task
from compiler.collectives.moves import Moves
from compiler.collectives.network import Network
from compiler.collectives.places import Places
from compiler.collectives.play import Blocked, _Play, ordered
from compiler.errors import CompileError
from hdl.arch.config import PortConfig, all_to_all, dragonfly, ring
from hdl.arch.presets import DEMO


class Scan(_Play):
    """The same times and the same room, and nothing remembered of what waits where."""

    def _push(self, queue, key):
        pass

    def run(self):
        for turn in self._turns:
            if not turn.left:
                self._add(turn)
        queues, order = {id(turn.queue): turn.queue for turn in self._turns}.values(), []
        while free := [queue for queue in queues if queue and not self._held(queue)]:
            start, number = min(self._first(queue) for queue in free)
            turn = self._turns[number]
            assert turn.queue.pop(number) is turn
            self._begin(turn, start)
            order.append(turn.task)
        if len(order) < len(self._turns):
            raise Blocked
        return order, max(task.done for task in order)


def tile(ports, fifo=16):
    return replace(DEMO, mem_words=512, ports=(PortConfig(fifo=fifo),) * ports)


SYSTEMS = {"all_to_all": all_to_all(tile(3), 4), "ring": ring(tile(2), 6, 9),
           "narrow ring": ring(tile(2, 4), 4, 30), "dragonfly": dragonfly(tile(4), 3, 3, 5, 21),
           "narrow dragonfly": dragonfly(tile(4, 4), 4, 4)}


def played(play, network, algorithm, collective, count, *, direct, reserve):
    """Numbers of the tasks in order and the estimate, or why there are none."""
    counts = vectors_of(collective, len(network.tiles), count)
    moves = Moves(network, Places(network.system, counts), direct=direct)
    try:
        tasks_of(algorithm, collective, moves, count)
        tasks, cycles = play(network, moves.tasks, reserve).run()
    except (Blocked, CompileError) as error:
        return type(error)
    number = {id(task): i for i, task in enumerate(moves.tasks)}
    return [number[id(task)] for task in tasks], cycles


@pytest.mark.parametrize("reserve", [False, True])
@pytest.mark.parametrize("name", SYSTEMS)
def test_the_task_that_can_begin_first_goes_first(name, reserve):
    network, found = Network(SYSTEMS[name]), 0
    for collective in COLLECTIVES:
        for algorithm in ALGORITHMS:
            for count, direct in ((1, True), (7, True), (7, False), (20, True)):
                one, other = (played(play, network, algorithm, collective, count, direct=direct,
                                     reserve=reserve) for play in (_Play, Scan))
                assert one == other, (collective, algorithm, count, direct)
                found += isinstance(one, tuple)
    assert found > 10


def test_a_task_that_is_ready_before_the_first_of_its_queue_moves_the_queue_forward():
    slow, fast, other = (Task(0, None, reads=1, ready=ready) for ready in (100, 10, 50))
    # late and early stand in one queue, between in another
    late, early = (Task(0, None, writes=1, after=[before]) for before in (slow, fast))
    between = Task(1, None, writes=1, after=[other])
    tasks, cycles = ordered(Network(SYSTEMS["ring"]), [slow, fast, other, late, early, between])
    assert tasks == [slow, fast, other, early, between, late]
    assert cycles == late.done == 100


def test_a_task_begins_before_what_it_needs_later_is_there():
    system = SYSTEMS["ring"]        # a vector: 8 cycles on the wire, a latency of 9, RECV behind
    one, other = (Flight(next(link for link in system.links
                              if (link.source, link.target) == (0, 1))) for _ in range(2))
    send, again = (Task(0, None, sends=[flight], reads=1) for flight in (one, other))
    slow, fast = (Task(1, None, reads=1, ready=ready) for ready in (60, 56))
    add = Task(1, None, takes=[one], after=[slow, fast], adds=1, later={one: 12, slow: 6})
    # takes its flight from the FIFO behind the other, and begins before it
    behind = Task(1, None, takes=[other], adds=1, later={other: 20})
    tasks, _ = ordered(Network(system), [send, again, slow, fast, add, behind])
    assert tasks == [send, slow, fast, again, add, behind]
    assert add.done == max(8 + 9 + 1 - 12, 60 - 6, 56) and behind.done == 56 + 12 + 1 - 20


@pytest.mark.parametrize("ready", [0, 20])
def test_a_task_waits_for_a_port_in_the_cycle_in_which_it_is_ready(ready):
    # each of two quads has a port, and all are ready at once: two begin in a cycle
    before = Task(0, None, reads=1, ready=ready)
    tasks = [Task(0, None, writes=1, after=[before], ready=3) for _ in range(5)]
    order, cycles = ordered(Network(SYSTEMS["ring"]), [before, *tasks])
    assert order == [before, *tasks] and cycles == ready + 5
    assert [task.done - ready for task in tasks] == [3, 3, 4, 4, 5]


def test_a_sum_begins_when_both_port_and_adder_are_free():
    ready, *reads = Task(0, None, ready=1), *(Task(0, None, reads=1) for _ in range(2))
    first = Task(0, None, adds=1, after=[ready])        # in cycle 1, and in 0 no port is free
    second = Task(0, None, reads=1, adds=1)
    ordered(Network(SYSTEMS["ring"]), [ready, *reads, first, second])
    assert (first.done, second.done) == (1, 2)
