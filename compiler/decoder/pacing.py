"""The order of an MXM's work: what takes weights is done in the order in which its inputs come.

The weight side of an MXM runs through its blocks in program order, so that order is the compiler's
to choose.  It is chosen by playing the work through on an estimate: jobs become ready some cycles
after those they wait for, and of the ready ones that of the first stage named goes first.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from hdl.arch.timing import rules, timing

__all__ = ["MIX", "PROJECT", "ROWS", "SCORE", "VALUES", "Job", "Pace", "in_order"]

#: Stages: of several jobs that are ready, the one with the longest way to go is first.
MIX, SCORE, PROJECT, VALUES, ROWS = range(5)


@dataclass(eq=False)
class Job:
    """Work of the MXMs of one tile.

    Parameters
    ----------
    tile : int
    stage : int
        Of several ready jobs the one of the lowest stage goes first, then the first in the list.
    cycles : int
        That the weight sides are busy with it.
    emit : callable
        Appends its clusters to the builder.
    after : list of (Job, int)
        Jobs of any tile, and estimated cycles from their end to when this can begin.
    """

    tile: int
    stage: int
    cycles: int
    emit: object
    after: list = field(default_factory=list)


class Pace:
    """Estimates of how long things take on a tile of ``system``.

    Parameters
    ----------
    system : SystemConfig
    slack : float
        How many times as long as on an idle tile chains of operations are taken to be.
    """

    def __init__(self, system, slack):
        self._slack = slack
        cfg = system.tile
        table = timing(cfg)
        self._alu = max(alu.depth for alu in cfg.alus)
        self._reduce = table["reduce", "SUM"].t_d
        # from a sum to the VXM, to SRAM, and back to an MXM
        far = max((cfg.hops(mxm, "vxm") for mxm in cfg.slices("mxm")), default=0)
        self._around = 2 * far + table["mxm_act", "ABC"].t_d + table["mxm_act", "ACC"].t_d + \
            rules(cfg).write_to_read
        self._blocks = cfg.lanes // 4
        self._mxms = len(cfg.slices("mxm"))

    def chain(self, alus, reductions=0):
        """Cycles from the last product of a sum to the first product of what is made of it."""
        return round(self._slack * (self._around + alus * self._alu + reductions * self._reduce))

    def job(self, tile, stage, blocks, emit, after=()):
        """A `Job` that loads ``blocks`` blocks of weights."""
        return Job(tile, stage, -(-blocks * self._blocks // self._mxms), emit, list(after))


def in_order(jobs):
    """``jobs`` of all tiles in the order in which they begin.

    Jobs that they wait for and that are not among them have been done.  Every tile works through
    its own, one at a time; a job begins when it is ready, its tile is free, and no other that is
    ready goes before it.

    Raises
    ------
    ValueError
        When jobs wait for each other.
    """
    waiting, ends, free, found = list(jobs), {}, defaultdict(int), []
    mine = {id(job) for job in waiting}
    after = {id(job): [(other, cycles) for other, cycles in job.after if id(other) in mine]
             for job in waiting}
    while waiting:
        ready = [(max([free[job.tile]] + [ends[id(other)] + cycles
                                          for other, cycles in after[id(job)]]), job)
                 for job in waiting if all(id(other) in ends for other, _ in after[id(job)])]
        if not ready:
            raise ValueError(f"{len(waiting)} jobs wait for each other")
        now, first = min(ready, key=lambda entry: entry[0])
        job = min((job for begin, job in ready if job.tile == first.tile and begin == now),
                  key=lambda job: job.stage)
        waiting.remove(job)
        found.append(job)
        free[job.tile] = ends[id(job)] = now + job.cycles
    return found
