"""Who made what a plan's instructions take: words, sums and values on streams, of one step.

Only the plan is looked at: cycles, addresses, stream numbers.  What was on a stream is found from
the cycle and the distance, what was in a word from the last WRITE that a READ can see.
"""

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

from compiler.plan import added, iterations
from hdl.arch.isa import index_bits, planes
from hdl.arch.queues import queue_index, queues
from hdl.arch.timing import of, rules

__all__ = ["Event", "Flow"]


@dataclass(eq=False, slots=True)
class Event:
    """One instruction of a step.

    Attributes
    ----------
    cycle, tile, queue, op, fields : int, int, hdl.arch.queues.Queue, str, dict
    index : tuple of int
        With what the loops add.
    run : tuple of int
        Region, and which run of it in the step.
    made_by : list of Event
        Who put the planes that it takes from streams there.
    """

    cycle: int
    tile: int
    queue: object
    op: str
    fields: dict
    index: tuple
    run: tuple
    made_by: list = field(default_factory=list)

    @property
    def place(self):
        """The word that a READ or WRITE accesses, the sum that an ABC or ACC accesses."""
        return self.tile, self.queue.slice, self.index[0]


class Flow:
    """The instructions of a plan's first step, and what each of them takes.

    Attributes
    ----------
    events : list of Event
        In order of time.
    """

    def __init__(self, plan):
        self._cfg = plan.system.tile
        self.events = sorted(_events(plan), key=lambda event: event.cycle)
        self._made = {op: defaultdict(list) for op in ("WRITE", "ABC")}
        for event in self.events:
            if event.op in self._made:
                self._made[event.op][event.place].append(event)
        self._join_streams()

    def ready(self, event):
        """Who finished what a READ or ACC takes, and the first cycle in which it may issue.

        Returns
        -------
        (Event, int) or None
            None where it was there before the step.
        """
        maker, wait = {"READ": ("WRITE", rules(self._cfg).write_to_read),
                       "ACC": ("ABC", rules(self._cfg).abc_to_acc)}[event.op]
        made = self._made[maker][event.place]
        number = bisect_right(made, event.cycle - wait, key=lambda other: other.cycle)
        return (made[number - 1], made[number - 1].cycle + wait) if number else None

    def _join_streams(self):
        """Fill in ``made_by`` of every event: what moves one position a cycle stays on one diagonal
        of cycle and position, and the nearest that wrote there made what is read."""
        cfg, written = self._cfg, defaultdict(list)
        for event in self.events:
            at, out = cfg.position(event.queue.slice), of(cfg, event.queue, event.op).t_d
            for west, name in ((0, "east"), (1, "west")):
                if event.fields.get(f"{name}_en"):
                    first = event.fields["target" if "target" in event.fields else name]
                    for plane in range(planes(event.op, event.fields, "target")):
                        written[_diagonal(event, first + plane, west, event.cycle + out, at)] \
                            .append((at, event))
        for event in self.events:
            at, skew = cfg.position(event.queue.slice), of(cfg, event.queue, event.op).t_skew
            for operand in ("source", "a_source", "b_source"):
                if f"{operand}_last" not in event.fields:       # no stream
                    continue
                west, first = event.fields[f"{operand}_west"], event.fields[operand]
                for plane in range(planes(event.op, event.fields, operand)):
                    makers = [(abs(at - there), number, other) for number, (there, other) in
                              enumerate(written.get(_diagonal(event, first + plane, west,
                                                              event.cycle + skew, at), ()))
                              if (there > at if west else there < at)]
                    if makers:
                        event.made_by.append(min(makers)[2])


def _diagonal(event, stream, west, cycle, position):
    return event.tile, west, stream, cycle + position if west else cycle - position


def _events(plan):
    cfg = plan.system.tile
    kinds = {name: queues(cfg)[number] for name, number in queue_index(cfg).items()}
    for number, (region, _, path) in enumerate(plan.root.walk()):
        starts, levels = iterations(path, 0, 1)
        for issue in region.issues:
            queue, fields = kinds[issue.queue], dict(issue.fields)
            indices = [(base + added(terms, levels, len(starts))) & (1 << bits) - 1
                       for base, terms, bits in zip(issue.index, issue.terms,
                                                    index_bits(cfg, queue.kind), strict=True)]
            for run, start in enumerate(starts.tolist()):
                term = issue.predicate
                if term and (int(levels[term.level][run]) >> term.shift) & term.mask != term.step:
                    continue
                yield Event(start + issue.start, issue.tile, queue, issue.op, fields,
                            tuple(int(index[run]) for index in indices), (number, run))
