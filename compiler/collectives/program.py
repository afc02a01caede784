"""Collectives as programs, and the choice of the algorithm."""

from typing import NamedTuple

import numpy as np

from ..collection import uncollected
from ..errors import CompileError
from ..lower.builder import Builder
from ..plan import stepped
from ..schedule.listing import schedule
from .algorithms import ALGORITHMS, COLLECTIVES, tasks_of, vectors_of
from .moves import Moves
from .network import Network
from .places import Places
from .play import Blocked, ordered

__all__ = ["Choice", "applicable", "choose", "collective_graph", "collective_program", "estimate",
           "fastest"]

#: Rounds of improvement of the schedule: the order of the tasks is one of time already.
_ROUNDS = 1


class Choice(NamedTuple):
    """An algorithm and the cycles it is estimated to take."""
    algorithm: str
    cycles: int


@uncollected
def collective_program(system, collective, algorithm, data):
    """Lower and schedule a collective.

    Parameters
    ----------
    system : SystemConfig
    collective : str
        ``"all_gather"``, ``"reduce_scatter"`` or ``"all_reduce"``.
    algorithm : str
        One of `ALGORITHMS`.
    data : list by tile of arrays (n, lanes)
        Of int32, whose sum is exact in any order, or of float32, which are added in the order of
        the tiles.  Vector ``v`` of an all-gather is vector ``v // tiles`` of tile ``v % tiles``;
        of a sum, all tiles have all vectors.

    Returns
    -------
    (Plan, Memory)
        Results are ``y`` of each tile (`Places`): all vectors, or of a reduce-scatter, on tile
        ``i``, the sums of vectors ``i, i + tiles, ...``.

    Raises
    ------
    CompileError
        When the algorithm does not apply, or something does not fit.
    """
    builder = collective_graph(system, collective, algorithm, data)
    body = schedule(system.tile, builder.clusters, builder.edges, rounds=_ROUNDS)
    return stepped(system, body), builder.memory


def collective_graph(system, collective, algorithm, data, kind=Builder):
    """The lowered graph of a collective, a `Builder` of the class ``kind``; see
    `collective_program`."""
    count, in_order = _check(system, collective, data)
    tasks, places, _ = _best_order(Network(system), collective, algorithm, count, in_order)
    builder = kind(system, places.memory(data))
    for task in tasks:
        task.build(builder)
    return builder


@uncollected
def estimate(system, collective, algorithm, vectors, in_order=False):
    """Cycles that an algorithm is estimated to take, by `play.ordered`; see `collective_program`.

    ``in_order``: the sums are of float32.
    """
    return _best_order(Network(system), collective, algorithm, vectors, in_order)[2]


@uncollected
def applicable(system, collective, vectors, in_order=False):
    """`Choice` of every algorithm that applies, in the order of `ALGORITHMS`."""
    found = []
    for algorithm in ALGORITHMS:
        try:
            cycles = estimate(system, collective, algorithm, vectors, in_order)
        except CompileError:
            continue
        found.append(Choice(algorithm, cycles))
    return found


def choose(system, collective, vectors, in_order=False):
    """The algorithm with the lowest estimate, a `Choice`.

    Raises
    ------
    CompileError
        When none applies: what the first of them lacks.
    """
    found = applicable(system, collective, vectors, in_order)
    if not found:
        estimate(system, collective, ALGORITHMS[0], vectors, in_order)
    return fastest(found)


def fastest(choices):
    """Of several `Choice` the one with the lowest estimate, the first of equal ones."""
    return min(choices, key=lambda choice: choice.cycles)


def _check(system, collective, data):
    """Number of vectors, and whether they are float32."""
    _check_kind(system, collective)
    lanes = system.tile.lanes
    kinds = {vectors.dtype for vectors in data}
    if len(data) != system.tiles or len(kinds) != 1 or not kinds <= {np.dtype(np.int32),
                                                                    np.dtype(np.float32)} or \
            any(vectors.shape[1:] != (lanes,) for vectors in data):
        raise CompileError(f"Collective needs arrays (n, {lanes}) of int32 or of float32 for each "
                           f"of {system.tiles} tiles")
    counts = [len(vectors) for vectors in data]
    count = sum(counts) if collective == "all_gather" else counts[0]
    wanted = vectors_of(collective, system.tiles, count)[0]
    if not count or counts != wanted:
        raise CompileError(f"Collective {collective} of {count} vectors needs "
                           f"{', '.join(map(str, wanted))} of the tiles, not "
                           f"{', '.join(map(str, counts))}")
    return count, kinds == {np.dtype(np.float32)}


def _check_kind(system, collective):
    if collective not in COLLECTIVES:
        raise CompileError(f"Collective must be one of {', '.join(COLLECTIVES)}, not "
                           f"{collective!r}")
    if system.tiles < 2:
        raise CompileError("Collective needs at least 2 tiles")


def _best_order(network, collective, algorithm, count, in_order):
    """Tasks in order, their `Places` and the estimate; sums straight from the links or from SRAM,
    whichever is estimated to be faster."""
    _check_kind(network.system, collective)
    if algorithm not in ALGORITHMS:
        raise CompileError(f"Algorithm must be one of {', '.join(ALGORITHMS)}, not {algorithm!r}")
    if in_order and collective != "all_gather" and algorithm not in ("one_shot", "two_shot"):
        raise CompileError(f"Algorithm {algorithm} adds in another order than that of the tiles, "
                           "which float32 needs: use one_shot or two_shot")
    system, found = network.system, []
    for direct in (True, False) if collective != "all_gather" else (True,):
        places = Places(system, vectors_of(collective, system.tiles, count))
        moves = Moves(network, places, add="ADD" if in_order else "IADD", in_order=in_order,
                      direct=direct)
        tasks_of(algorithm, collective, moves, count)
        try:
            tasks, cycles = ordered(network, moves.tasks)
        except Blocked:
            continue
        found.append((tasks, places, cycles))
    if not found:
        raise CompileError(f"Algorithm {algorithm} of {count} vectors fills its FIFOs: raise "
                           "PortConfig.fifo")
    return min(found, key=lambda one: one[2])
