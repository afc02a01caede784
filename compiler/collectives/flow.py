"""What a collective does, as tasks of tiles, and what they cost.

A *task* is one move of a vector of four byte planes: from SRAM onto links, from a link to SRAM or
on to other links, or a sum.  A *flight* is a vector on its way over one link.
"""

from dataclasses import dataclass, field
from functools import cached_property

from hdl.arch.timing import departure, rules, timing

from ..lower.layout import vector_quads
from ..schedule.problem import alus_for

__all__ = ["PLANES", "Costs", "Flight", "Task"]

PLANES = 4      #: byte planes of a vector


@dataclass(eq=False, slots=True)
class Flight:
    """A vector over ``link``; ``first`` and ``last`` are the cycles in which its first and its last
    byte plane arrive."""

    link: object
    first: int = 0
    last: int = 0


@dataclass(eq=False, slots=True)
class Task:
    """One move.

    Parameters
    ----------
    tile : int
    build : function (Builder)
        Adds its clusters.
    takes, sends : list of Flight
    after : list of Task
        Whose words in SRAM it reads.
    streams : bool
        It needs only the first byte plane of what it takes to begin with.
    leaves, ready : int
        Cycles from its begin to the departure of what it sends, and until a task that reads its
        word can begin.
    adds : int
        Cycles that it keeps ALUs, streams or SRAM of a sum busy.
    reads, writes : int
        Words that it reads from each slice of a quad, and writes.
    later : dict of Flight or Task to int
        Cycles from its begin until it needs what it takes, or the word it reads, where not at once.
    """

    tile: int
    build: object
    takes: list | tuple = ()
    sends: list | tuple = ()
    after: list | tuple = ()
    streams: bool = False
    leaves: int = 0
    ready: int = 0
    adds: int = 0
    reads: int = 0
    writes: int = 0
    later: dict = field(default_factory=dict)
    done: int = 0


class Costs:
    """Cycles of the parts of a task, from the configuration.

    Attributes
    ----------
    send : int
        READ to departure.
    receive : int
        RECV to the READ that sees it.
    """

    def __init__(self, cfg):
        self._cfg = cfg
        self._times = timing(cfg)
        self._quads = vector_quads(cfg)
        self._seen = rules(cfg).write_to_read
        across = max(cfg.hops(name, "c2c") for quad in self._quads for name in quad)
        self.send = self._times["mem_read", "READ"].t_d + across + departure(cfg, "send")
        self.receive = self._times["recv", "RECV"].t_d + across + self._seen

    @cached_property
    def _adders(self):
        """Numbers of the ALUs that add."""
        return [int(name.removeprefix("alu")) for name in alus_for(self._cfg, "IADD")]

    @cached_property
    def group(self):
        """Vectors that a sum takes in one cycle: 1, 2 or 4.

        A quad of streams carries each; and while the sum of one group is added to the total, the
        pairs of the next two are added.
        """
        return next(size for size in (4, 2, 1)
                    if size <= min(self._cfg.streams // PLANES, len(self._adders)))

    @property
    def add(self):
        """Cycles of one sum."""
        return self._cfg.alus[self._adders[0]].depth

    def sum(self, levels, stored):
        """Of ``levels`` sums one behind the other: (cycles to a departure, to a READ of it).

        If not all operands are ``stored``, they begin when one arrives; others are read before.
        """
        cfg = self._cfg
        far = max(cfg.hops(name, "vxm") for quad in self._quads for name in quad)
        near = cfg.hops("vxm", "c2c")
        begin = self._times["mem_read", "READ"].t_d + far if stored else \
            self._times["recv", "RECV"].t_d + near
        end = begin + levels * self.add
        return end + near, end + far + self._seen

    def vxm(self, adds, stored):
        """Cycles that ``adds`` sums, of operands that are all ``stored`` or not, keep ALUs, streams
        or SRAM busy."""
        return -(-adds // min(len(self._adders), len(self._quads) if stored else self.group))
