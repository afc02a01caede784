"""What a queue does and when, from docs/architecture.md: it counts up, one thing at a time.

Everything is in the time of the fetch register: what issues in cycle ``c`` here does so in
``c + ICU_LEAD`` in the ICU.  Nothing is taken from `hdl.icu`.
"""

from amaranth.hdl import Mux, Signal, unsigned
from amaranth.lib import data

from hdl.arch import isa

__all__ = ["QueueSpec"]

_ELAPSED_BITS = isa.WAIT_BITS + isa.NOP_MORE_BITS + 1


class QueueSpec:
    """Registers and outputs of the specification, added to module ``m``.

    Parameters
    ----------
    m : Module
    cfg : TileConfig
    kind : str
    go, first_step, steps, fetched : Signal
        As the ICU has them; ``fetched`` is the word that comes when one is asked for.

    Attributes
    ----------
    fetch, address : Signal
        A word is asked for in this cycle, and which.
    issue, word, step : Signal
        A unit instruction issues; the word it shows; the step.
    fault : Signal
        The word in the register cannot be executed, or it is the last and has ended.
    """

    def __init__(self, m, cfg, kind, *, go, first_step, steps, fetched):
        self._m, self._cfg, self._kind = m, cfg, kind
        self.first_step, self._steps = first_step, steps
        levels = range(cfg.loop_levels)
        place = range(cfg.icu_words + 1)
        counter, repeats = unsigned(isa.COUNTER_BITS), unsigned(isa.REPEAT_COUNT_BITS + 1)

        def register(shape, name, **options):
            return Signal(shape, name=f"spec_{name}", **options)

        self.active = register(1, "active")
        self.first = register(1, "first")           # cycle of the word's duration is its first
        self.place = register(place, "place")
        self.register = register(fetched.shape(), "register", reset_less=True)
        self.acted = register(repeats, "acted")     # issues of the word before this cycle
        self.since = register(_ELAPSED_BITS, "since")   # cycles since the last of them
        self.held = register(fetched.shape(), "held")   # unit word that a REPEAT repeats
        self.holds = register(1, "holds")
        self.depth = register(range(cfg.loop_levels + 1), "depth")
        self.start = [register(place, f"start_{i}") for i in levels]
        self.total = [register(counter, f"total_{i}") for i in levels]
        self.iteration = [register(counter, f"iteration_{i}") for i in levels]

        self.fetch, self.address = Signal(name="spec_fetch"), Signal(place, name="spec_address")
        self.issue, self.fault = Signal(name="spec_issue"), Signal(name="spec_fault")
        self.word = Signal(fetched.shape(), name="spec_word")
        self.step = Signal(counter, name="spec_step")
        self._decode()
        self._count()
        self._advance(go)
        with m.If(self.fetch):
            m.d.sync += [self.register.eq(fetched), self.place.eq(self.address)]

    def _fields(self, name):
        layout = isa.layout(self._cfg, self._kind, isa.KINDS[self._kind].ops[name])
        return data.View(layout, self.register[:layout.size])

    def _decode(self):
        """Which word it is, its numbers, and whether it can be executed."""
        m = self._m
        self.is_op = {name: Signal(name=f"spec_is_{name}") for name in
                      ("unit", "NOP", "HALT", "LOOP", "REPEAT")}
        with m.Switch(self.register[:isa.OP_BITS]):
            for op in isa.opcodes(self._cfg, self._kind):
                with m.Case(op.value):
                    name = op.name if op.name in self.is_op else "unit"
                    m.d.comb += self.is_op[name].eq(1)
            with m.Default():
                unknown = Signal(name="spec_unknown")
                m.d.comb += unknown.eq(1)
        nop, repeat, loop = (self._fields(name) for name in ("NOP", "REPEAT", "LOOP"))
        self.count, self.interval = (Signal(isa.REPEAT_COUNT_BITS, name="spec_count"),
                                     Signal(isa.REPEAT_INTERVAL_BITS, name="spec_interval"))
        self.tail = Signal(_ELAPSED_BITS, name="spec_tail")     # idle cycles behind the last action
        m.d.comb += [self.count.eq(1), self.interval.eq(1), self.tail.eq(nop.wait)]
        with m.If(self.is_op["REPEAT"]):
            m.d.comb += [self.count.eq(Mux(repeat.count == 0, 1, repeat.count)),
                         self.interval.eq(Mux(repeat.interval == 0, 1, repeat.interval))]
        with m.If(self.is_op["NOP"]):
            m.d.comb += self.tail.eq(nop.wait + nop.more * 256)
        self.bad = Signal(name="spec_bad")
        m.d.comb += self.bad.eq(
            unknown | (loop.ends > self.depth) | self.is_op["REPEAT"] & ~self.holds
            | self.is_op["LOOP"] & ((self.depth == self._cfg.loop_levels) | (loop.ends != 0)))

    def _count(self):
        """Actions of the word, and the last cycle of its duration."""
        m = self._m
        acts, acted = Signal(name="spec_acts"), Signal.like(self.acted, name="spec_acted_now")
        since = Signal.like(self.since, name="spec_since_now")
        self.ends = Signal(name="spec_ends")
        m.d.comb += [
            acts.eq(self.first | ((self.acted < self.count) & (self.since == self.interval))),
            acted.eq(Mux(self.first, 0, self.acted) + acts), since.eq(Mux(acts, 0, self.since)),
            self.ends.eq((acted == self.count) & (since == self.tail)),
            self.word.eq(Mux(self.is_op["REPEAT"], self.held, self.register)),
            self.step.eq(Mux(self.depth == 0, 0, self.first_step + self.iteration[0])),
            self.issue.eq(self.active & acts & ~self.bad
                          & (self.is_op["unit"] | self.is_op["REPEAT"])),
        ]
        m.d.sync += [self.acted.eq(acted), self.since.eq(since + 1)]

    def _advance(self, go):
        """Start, halt, and the word behind this one."""
        m, past = self._m, Signal(name="spec_past")
        m.d.sync += self.first.eq(0)
        with m.If(go):
            m.d.comb += [self.fetch.eq(1), self.address.eq(0)]
            m.d.sync += [self.active.eq(1), self.first.eq(1), self.depth.eq(0), self.holds.eq(0)]
        with m.Elif(self.active & (self.bad | self.is_op["HALT"])):
            m.d.comb += self.fault.eq(self.bad)
            m.d.sync += self.active.eq(0)
        with m.Elif(self.active & self.ends):
            self._next(m)
            m.d.comb += [self.fetch.eq(1), past.eq(self.address == self._cfg.icu_words),
                         self.fault.eq(past)]
            m.d.sync += [self.active.eq(~past), self.first.eq(1),
                         self.holds.eq(self.is_op["unit"] | self.is_op["REPEAT"])]
            with m.If(self.is_op["unit"]):
                m.d.sync += self.held.eq(self.register)

    def _next(self, m):
        """LOOPs that open, end or continue behind the word; the address of the next."""
        loop = self._fields("LOOP")
        levels = range(self._cfg.loop_levels)
        m.d.comb += self.address.eq(self.place + 1)
        with m.If(self.is_op["LOOP"]):
            m.d.sync += self.depth.eq(self.depth + 1)
            for level in levels:
                with m.If(self.depth == level):
                    m.d.sync += [
                        self.start[level].eq(self.place + 1), self.iteration[level].eq(0),
                        self.total[level].eq(Mux(loop.count == 0, self._steps, loop.count))]
        with m.Else():
            for level in levels:
                with m.If(self.depth == level + 1):
                    self._end(m, loop.ends, level + 1)

    def _end(self, m, ends, depth):
        """Of ``depth`` open LOOPs the ``ends`` innermost end, but for one that has iterations left:
        it continues, and those around it stay open."""
        if depth == 0:
            m.d.sync += self.depth.eq(0)
            return
        level = depth - 1
        with m.If(ends == 0):
            m.d.sync += self.depth.eq(depth)
        with m.Elif(self.iteration[level] + 1 != self.total[level]):
            m.d.comb += self.address.eq(self.start[level])
            m.d.sync += [self.iteration[level].eq(self.iteration[level] + 1),
                         self.depth.eq(depth)]
        with m.Else():
            self._end(m, ends - 1, level)
