"""The play of the tasks: what goes first, beside looking through all queues before every task."""

from dataclasses import replace

import pytest

from compiler.collectives import COLLECTIVES
from compiler.collectives.algorithms import ALGORITHMS, tasks_of, vectors_of
from compiler.collectives.flow import Task
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
            start, number = min(queue.first(self._start(queue)) for queue in free)
            turn = self._turns[number]
            assert turn.queue.pop() is turn
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
