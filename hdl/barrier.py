"""SYNC: what parks and releases the queues of a tile together.

Timing, where the SYNC of the last queue is in its fetch register in ``f`` and a SYNC takes one
cycle; so its issue would be in ``p = f + ICU_LEAD``::

    cycle      f        f+1                f+2               f+2+ICU_LEAD = p+2
    queue      parked   release            next word fetched its issue
    notified   before f+1, or in it

If all are parked and the message is notified in ``n``, the release is in ``n`` and the next words
issue in ``n + 1 + ICU_LEAD`` (`timing.SYNC_TO_ISSUE`, `timing.NOTIFY_TO_ISSUE`).
"""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .arch import isa
from .signatures import Parametric

__all__ = ["Barrier", "BarrierSignature"]


class BarrierSignature(Parametric):
    """A queue at the barrier, from its ICU.

    Members
    -------
    parked : Out(1)
        A SYNC is in the fetch register and has not been released.
    rests : Out(1)
        Parked, or halted but for what is on its way to the issue.
    asked : Out(len(cfg.ports))
        Links of the SYNC; 0 while not ``parked``.
    release : In(1)
        Go on behind the SYNC.
    links : In(len(cfg.ports))
        With ``release``: links of all SYNCs together.
    """

    def __init__(self, cfg):
        ports = len(cfg.ports)
        super().__init__({"parked": Out(1), "rests": Out(1), "asked": Out(ports),
                          "release": In(1), "links": In(ports)}, cfg)


class Barrier(wiring.Component):
    """Releases all parked queues of a tile in one cycle.

    Parameters
    ----------
    cfg : TileConfig
    queues : int
        How many there are.

    Members
    -------
    queue<q> : In(BarrierSignature)
    notify : In(len(cfg.ports))
        Bit ``k``: the last vector of a message from link ``k`` is in the FIFO, or will be before
        anything can issue behind a release in this cycle.

    It releases when every queue rests and one is parked, and of each link that a SYNC names a
    message has been notified; each of those links then has one message less.  Messages are counted
    modulo ``2 ** NOTIFY_BITS``; reset forgets them, a start does not.
    """

    def __init__(self, cfg, queues):
        self._cfg = cfg
        self._queues = queues
        super().__init__({**{f"queue{q}": In(BarrierSignature(cfg)) for q in range(queues)},
                          "notify": In(len(cfg.ports))})

    def elaborate(self, platform):
        m = Module()
        queues = [getattr(self, f"queue{q}") for q in range(self._queues)]
        ready, release = Signal(), Signal()
        links = Signal(len(self._cfg.ports))
        there = Signal(len(self._cfg.ports))
        m.d.sync += [
            ready.eq(Cat(queue.rests for queue in queues).all()
                     & Cat(queue.parked for queue in queues).any() & ~release),
            links.eq(reduce(or_, (queue.asked for queue in queues))),
        ]
        for k in range(len(self._cfg.ports)):
            count = Signal(isa.NOTIFY_BITS, name=f"count_{k}")
            m.d.sync += count.eq(count + self.notify[k] - (release & links[k]))
            m.d.comb += there[k].eq((count != 0) | self.notify[k])
        m.d.comb += release.eq(ready & ((links & ~there) == 0))
        for queue in queues:
            m.d.comb += [queue.release.eq(release), queue.links.eq(links)]
        return m
