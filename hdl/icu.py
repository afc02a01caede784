"""ICU: the instruction memory, sequencer and index arithmetic of one queue.

Timing of a word that is in the fetch register in cycle ``f`` and issues once::

    cycle     f            f+1             f+2            f+3 = f + ICU_LEAD
    stage     decode       _s1             _s2            issue
    index     shift, mask  x table step    sum + base     issue.index
    predicate shift, mask  compare         .              issue.predicate

``go`` in cycle ``g`` has the first word in the fetch register in ``g + 1`` and issues it in
``g + 1 + ICU_LEAD``.  The address of the next word is computed from the fetched word in the last
cycle of its duration, so that words follow each other without a gap, at loop ends too.

A SYNC is held in the fetch register until `Barrier` releases all queues of the tile in one cycle,
which counts as the first of its ``1 + wait`` cycles.
"""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .arch import isa
from .arch.trace import issue_layout
from .barrier import BarrierSignature
from .crc import crc_value
from .signatures import IssueSignature, LoadSignature, fields
from .terms import TermTable

__all__ = ["Icu"]


class Icu(wiring.Component):
    """Instruction control unit of one queue; see `hdl.arch.isa` for what the words mean.

    Parameters
    ----------
    cfg : TileConfig
    kind : str
        Queue kind, a key of `isa.KINDS`.
    trace : bool
        Whether ``traced`` exists.

    Members
    -------
    go : In(1)
        Start at instruction word 0 in this cycle.  Only while ``halted``.
    first_step, steps : In(COUNTER_BITS)
        Index of the first iteration of LOOP level 0, and what a LOOP count of 0 stands for (at
        least 1).  Stable while the queue runs.
    load : In(LoadSignature)
        Only while ``halted``.
    issue : Out(IssueSignature)
        Registered.
    halted : Out(1)
        Nothing will issue until the next ``go``.  1 after reset.
    fault : Out(1)
        One cycle for each ``ICU_WORD``: registered.
    traced : Out(issue_layout)
        The issue of this cycle as the trace port shows it.
    barrier : Out(BarrierSignature)
        Only with ``cfg.sync``.
    """

    def __init__(self, cfg, kind, *, trace=True):
        self._cfg = cfg
        self._kind = kind
        self._trace = trace
        self._bits = isa.index_bits(cfg, kind)
        members = {
            "go": In(1), "first_step": In(isa.COUNTER_BITS), "steps": In(isa.COUNTER_BITS),
            "load": In(LoadSignature(cfg, kind)), "issue": Out(IssueSignature(cfg, kind)),
            "halted": Out(1), "fault": Out(1),
        }
        if trace:
            members["traced"] = Out(issue_layout(cfg))
        if cfg.sync:
            members["barrier"] = Out(BarrierSignature(cfg))
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        self._fetch(m)
        self._duration(m)
        self._loops(m)
        self._sequence(m)
        if self._cfg.sync:
            self._park(m)
        self._pipeline(m)
        if self._trace:
            issue = self.issue
            count = isa.word_bytes(self._cfg, self._kind)
            m.d.comb += [self.traced.valid.eq(issue.valid),
                         self.traced.crc.eq(crc_value(m, issue.word, count))]
            if self._bits:
                m.d.comb += self.traced.index.eq(issue.index.as_value())
        return m

    def _fields(self, name, word):
        ops = isa.KINDS[self._kind].ops
        return fields(self._cfg, self._kind, ops[name], word)

    def _memory(self, m):
        """The instruction memory; gives its read port."""
        bits = isa.word_bits(self._cfg, self._kind)
        m.submodules.words = words = Memory(shape=unsigned(bits), depth=self._cfg.icu_words,
                                            init=[])
        write = words.write_port()
        m.d.comb += [write.addr.eq(self.load.address), write.data.eq(self.load.data),
                     write.en.eq(self.load.word_en)]
        return words.read_port()

    def _fetch(self, m):
        """The fetch register, which is the memory's read port, and what is in it."""
        cfg, kind = self._cfg, self._kind
        self._read = self._memory(m)
        self._word = Signal(isa.word_bits(cfg, kind))
        m.d.comb += self._word.eq(self._read.data)
        self._active = Signal()     # the fetch register holds a word to execute
        self._first = Signal()      # ... in the first cycle of its duration
        self._pc = Signal(range(cfg.icu_words), reset_less=True)    # where it was
        op = self._word[:isa.OP_BITS]
        units = isa.formats(cfg, kind)
        self._is = {}
        for member in isa.opcodes(cfg, kind):
            if member not in units:
                self._is[member.name] = Signal(name=f"is_{member.name.lower()}")
                m.d.comb += self._is[member.name].eq(op == member.value)
        self._is["UNIT"] = Signal(name="is_unit")
        units = [op == member.value for member in units]
        m.d.comb += self._is["UNIT"].eq(Cat(units).any())

    def _duration(self, m):
        """When a word acts (issues, if it is one that does) and in which cycle it ends."""
        nop, repeat = self._fields("NOP", self._word), self._fields("REPEAT", self._word)
        wait = Signal(len(nop.wait) + len(nop.more))
        m.d.comb += wait.eq(Mux(self._is["NOP"], Cat(nop.wait, nop.more), nop.wait))
        rest = Signal(len(wait), reset_less=True)       # idle cycles to the next action
        left = Signal(len(repeat.count), reset_less=True)   # repetitions behind the idle cycles
        after = Signal(len(repeat.count))               # repetitions behind this action
        self._act = Signal()
        self._done = Signal()       # last cycle of the word's duration
        with m.If(self._first):
            m.d.comb += self._act.eq(1)
            with m.If(self._is["REPEAT"] & (repeat.count != 0)):
                m.d.comb += after.eq(repeat.count - 1)
        with m.Elif(rest == 0):
            m.d.comb += [self._act.eq(left != 0), self._done.eq(left == 0), after.eq(left - 1)]
        m.d.sync += rest.eq(rest - 1)
        with m.If(self._act):
            m.d.sync += left.eq(after)
            with m.If(after != 0):
                m.d.sync += rest.eq(Mux(repeat.interval == 0, 0, repeat.interval - 1))
            with m.Else():
                m.d.sync += rest.eq(wait - 1)
                m.d.comb += self._done.eq(wait == 0)

    def _loops(self, m):
        """The open LOOPs, and which of them continues behind this word."""
        cfg = self._cfg
        levels = range(cfg.loop_levels)
        loop = self._fields("LOOP", self._word)
        self._depth = depth = Signal(range(cfg.loop_levels + 1))
        self._index = [Signal(isa.COUNTER_BITS, name=f"index_{i}") for i in levels]
        left = [Signal(isa.COUNTER_BITS, name=f"left_{i}", reset_less=True) for i in levels]
        body = [Signal(range(cfg.icu_words), name=f"body_{i}", reset_less=True) for i in levels]
        goes_on = [Signal(name=f"goes_on_{i}") for i in levels]
        self._next = Signal(range(cfg.icu_words + 1))
        following = Signal(range(cfg.icu_words + 1))
        depth_next = Signal(range(cfg.loop_levels + 1))
        m.d.comb += [following.eq(self._pc + 1), self._next.eq(following),
                     depth_next.eq(depth - loop.ends)]
        found = Const(0, 1)
        for i in reversed(levels):
            m.d.comb += goes_on[i].eq((depth > i) & (depth <= loop.ends + i) & (left[i] != 0)
                                      & ~found)
            with m.If(goes_on[i]):
                m.d.comb += [self._next.eq(body[i]), depth_next.eq(i + 1)]
            found = found | goes_on[i]
        with m.If(self._is["LOOP"]):
            m.d.comb += depth_next.eq(depth + 1)
        self._depth_next = depth_next
        with m.If(self._active & self._done):
            for i in levels:
                with m.If(goes_on[i]):
                    m.d.sync += [self._index[i].eq(self._index[i] + 1), left[i].eq(left[i] - 1)]
                with m.Elif(self._is["LOOP"] & (depth == i)):
                    m.d.sync += [self._index[i].eq(self.first_step if i == 0 else 0),
                                 left[i].eq(Mux(loop.count == 0, self.steps, loop.count) - 1),
                                 body[i].eq(following)]
                with m.Elif(depth_next <= i):
                    m.d.sync += self._index[i].eq(0)

    def _sequence(self, m):
        """Start, advance, and everything that halts."""
        cfg = self._cfg
        ends = self._fields("LOOP", self._word).ends
        kind = self._is
        can_repeat = Signal()       # the word before was one that issues
        bad = Signal()
        past = Signal()
        self._bad = bad
        m.d.comb += bad.eq(
            ~reduce(or_, kind.values())
            | (ends > self._depth)
            | (kind["LOOP"] & ((self._depth == cfg.loop_levels) | (ends != 0)))
            | (kind["REPEAT"] & ~can_repeat))
        m.d.comb += [past.eq(self._next == cfg.icu_words), self._read.addr.eq(self._next),
                     self._read.en.eq(0)]
        self._issues = Signal()
        m.d.sync += [self.fault.eq(0), self._first.eq(0)]
        with m.If(self.go):
            m.d.comb += [self._read.addr.eq(0), self._read.en.eq(1)]
            m.d.sync += [self._active.eq(1), self._first.eq(1), self._pc.eq(0), can_repeat.eq(0),
                         self._depth.eq(0)]
            m.d.sync += [index.eq(0) for index in self._index]
        with m.Elif(self._active):
            with m.If(bad | kind["HALT"]):
                m.d.sync += [self._active.eq(0), self.fault.eq(bad)]
            with m.Else():
                m.d.comb += self._issues.eq(self._act & (kind["UNIT"] | kind["REPEAT"]))
                with m.If(self._done):
                    m.d.comb += self._read.en.eq(1)
                    m.d.sync += [self._first.eq(1), self._pc.eq(self._next),
                                 can_repeat.eq(kind["UNIT"] | kind["REPEAT"]),
                                 self._depth.eq(self._depth_next),
                                 self._active.eq(~past), self.fault.eq(past)]

    def _park(self, m):
        """Hold a SYNC in the first cycle of its duration, as often as it takes."""
        barrier = self.barrier
        links = self._fields("SYNC", self._word).links
        m.d.comb += [
            barrier.parked.eq(self._active & self._first & self._is["SYNC"] & ~self._bad),
            barrier.rests.eq(barrier.parked | ~self._active),
            barrier.asked.eq(Mux(barrier.parked, links, 0)),
        ]
        with m.If(barrier.parked & ~barrier.release):
            m.d.comb += [self._act.eq(0), self._done.eq(0)]
            m.d.sync += self._first.eq(1)
        with m.Elif(barrier.parked & (links != barrier.links)):
            m.d.sync += self.fault.eq(1)

    def _pipeline(self, m):
        """From the word in the fetch register to the issue."""
        valid_s1, valid_s2 = Signal(name="valid_s1"), Signal(name="valid_s2")
        m.d.comb += self.halted.eq(~(self._active | valid_s1 | valid_s2 | self.issue.valid))
        m.d.sync += [valid_s1.eq(self._issues), valid_s2.eq(valid_s1),
                     self.issue.valid.eq(valid_s2)]

        bits = len(self._word)
        held = Signal(bits, reset_less=True)
        word = Signal(bits)
        m.d.comb += word.eq(Mux(self._is["REPEAT"], held, self._word))
        m.d.sync += held.eq(word)
        self._delay(m, word, self.issue.word)
        self._delay(m, self._index[0], self.issue.step)
        table = TermTable(m, self._cfg, self._kind, self.load)
        spec = isa.KINDS[self._kind]
        view = fields(self._cfg, self._kind, next(iter(spec.formats)), word)
        for number, index in enumerate(spec.indices):
            self._index_pipeline(m, table, view, index.name, self._bits[number])
        if not spec.predicate:
            m.d.comb += self.issue.predicate.eq(1)
            return
        always_s1 = Signal(reset_less=True)
        term_s1, step_s1 = table.term(m, view.predicate, self._index[0], "predicate")
        holds_s2 = Signal(reset_less=True)
        holds_s3 = Signal(reset_less=True)
        m.d.sync += [always_s1.eq(view.predicate == 0),
                     holds_s2.eq(always_s1 | (term_s1 == step_s1)), holds_s3.eq(holds_s2)]
        m.d.comb += self.issue.predicate.eq(holds_s3)

    def _delay(self, m, source, target):
        """``source`` of the decode stage into ``target`` of the issue."""
        shape = target.shape()
        stages = [Signal(shape, name=f"{source.name}_s{stage}", reset_less=True)
                  for stage in (1, 2, 3)]
        for stage in stages:
            m.d.sync += stage.eq(source)
            source = stage
        m.d.comb += target.eq(source)

    def _index_pipeline(self, m, table, view, name, bits):
        """base + offset of the repetition + sum of the terms, modulo ``2 ** bits``."""
        repeat = self._fields("REPEAT", self._word)
        offset = Signal(bits, name=f"{name}_offset", reset_less=True)
        offset_now = Signal(bits, name=f"{name}_offset_now")
        with m.If(self._is["REPEAT"]):
            m.d.comb += offset_now.eq(Mux(self._first, 0, offset) + repeat[f"{name}_stride"])
        with m.If(self._act):
            m.d.sync += offset.eq(offset_now)
        base_s1 = Signal(bits, name=f"{name}_base_s1", reset_less=True)
        base_s2 = Signal(bits, name=f"{name}_base_s2", reset_less=True)
        sum_s3 = Signal(bits, name=f"{name}_sum_s3", reset_less=True)
        m.d.sync += [base_s1.eq(view[name] + offset_now), base_s2.eq(base_s1)]
        total = base_s2
        if isa.KINDS[self._kind].terms:
            for level, index in enumerate(self._index):
                selected = view[f"{name}_terms"][level]
                term_s1, step_s1 = table.term(m, selected, index, f"{name}_{level}", bits)
                product_s2 = Signal(bits, name=f"{name}_{level}_product_s2", reset_less=True)
                m.d.sync += product_s2.eq(term_s1 * step_s1)
                total = total + product_s2
        m.d.sync += sum_s3.eq(total)
        m.d.comb += self.issue.index[name].eq(sum_s3)
