"""A superlane of the VXM: all ALUs on 16 lanes, the crossbar between them, and a subtree of the
reduction.

Within a cycle results go to operands without a register: the units of every lane have registers
between theirs.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from hdl.arch.isa import ALU_ENTRIES
from hdl.planes import VALUE_BITS, to_lanes, to_planes
from hdl.vxm.decode import Select, issue_layout, result_layout
from hdl.vxm.lane import alu_lane
from hdl.vxm.reduce import levels, reduce_op_layout, reduce_tree

__all__ = ["VxmSuperlane"]


class VxmSuperlane(wiring.Component):
    """ALUs on neighbouring lanes.

    Parameters
    ----------
    alus : tuple of AluConfig
    lanes : int
        A power of two.
    reduce_depth : int
        Cycles of a level of the reduction.

    Members
    -------
    quad_a<i>, quad_b<i> : In(32 * lanes)
        What the streams carry for the operands of ALU ``i``, as planes, plane 0 lowest.
    issue<i> : In(issue_layout)
        What ALU ``i`` is told in the issue cycle.
    late<i> : In(result_layout)
        What it is told later.
    result<i> : Out(32 * lanes)
        Its result, as planes, in the cycle in which it exists.
    reduce_quad : In(32 * lanes)
        Stream operand of the reduction unit, as planes.
    reduce_select : In
        `Select` of its operand; ENTRY and IMMEDIATE are as NONE.
    reduce_step : In
        The step for its operand.
    reduce_op : In(ArrayLayout(reduce_op_layout, levels + 1))
        Element ``l``: what issued ``l * reduce_depth`` cycles ago.
    partial : Out(32)
        Reduction of these lanes, ``levels * reduce_depth`` cycles after issue.
    reduced : In(32)
        Result of the reduction unit, in the cycle in which it exists.
    """

    def __init__(self, *, alus, lanes, reduce_depth):
        self._alus = alus
        self._lanes = lanes
        self._reduce_depth = reduce_depth
        self._layout = issue_layout(len(alus) + 1)
        members = {
            "reduce_quad": In(VALUE_BITS * lanes),
            "reduce_select": In(self._layout["a"].shape),
            "reduce_step": In(self._layout["step"].shape),
            "reduce_op": In(data.ArrayLayout(reduce_op_layout, levels(lanes) + 1)),
            "partial": Out(VALUE_BITS), "reduced": In(VALUE_BITS)}
        for i, alu in enumerate(alus):
            members |= {f"quad_a{i}": In(VALUE_BITS * lanes),
                        f"quad_b{i}": In(VALUE_BITS * lanes),
                        f"issue{i}": In(self._layout),
                        f"late{i}": In(result_layout(alu.depth)),
                        f"result{i}": Out(VALUE_BITS * lanes)}
        self.entries = [
            memory.MemoryData(shape=VALUE_BITS * lanes, depth=ALU_ENTRIES, init=[]) for _ in alus]
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        self._results = [Signal(VALUE_BITS * self._lanes, name=f"values_{i}")
                         for i in range(len(self._alus))]
        for i in range(len(self._alus)):
            self._alu(m, platform, i)
        operand = self._operand(m, "reduce", self.reduce_select, self.reduce_quad,
                                self.reduce_step)
        value = reduce_tree(m, platform,
                            [operand.word_select(lane, VALUE_BITS) for lane in range(self._lanes)],
                            [self.reduce_op[level] for level in range(levels(self._lanes) + 1)],
                            self._reduce_depth)
        m.d.comb += self.partial.eq(value)
        return m

    def _alu(self, m, platform, i):
        """ALU ``i``: its entries, its operands, its lanes."""
        issue, late = getattr(self, f"issue{i}"), getattr(self, f"late{i}")
        entries = memory.Memory(self.entries[i])
        m.submodules[f"entries_{i}"] = entries
        write = entries.write_port()
        m.d.comb += [write.en.eq(late.keep), write.addr.eq(late.entry),
                     write.data.eq(self._results[i])]
        operands = []
        for name in ("a", "b"):
            number = issue[f"{name}_entry"]
            read = entries.read_port(domain="comb")
            m.d.comb += read.addr.eq(number)
            entry = Mux(late.keep & (late.entry == number), self._results[i], read.data)
            operands.append(self._operand(m, f"{name}_{i}", issue[name],
                                          getattr(self, f"quad_{name}{i}"), issue.step,
                                          {Select.ENTRY: entry,
                                           Select.IMMEDIATE: self._everywhere(issue.immediate)}))
        predicates = Signal(self._lanes, name=f"predicates_{i}")
        with m.If(issue.lane.choose):
            before = self._results[i - 1]       # that of ALU 0 is the last one
            m.d.comb += predicates.eq(Cat(before.word_select(lane, VALUE_BITS)[:-1].any()
                                          for lane in range(self._lanes)))
        results = []
        for lane in range(self._lanes):
            alu = alu_lane(platform, self._alus[i].features, self._alus[i].depth)
            m.submodules[f"alu_{i}_lane_{lane}"] = alu
            m.d.comb += [alu.control.eq(issue.lane), alu.unit.eq(late.unit),
                         alu.a.eq(operands[0].word_select(lane, VALUE_BITS)),
                         alu.b.eq(operands[1].word_select(lane, VALUE_BITS)),
                         alu.predicate.eq(predicates[lane])]
            results.append(alu.r)
        m.d.comb += [self._results[i].eq(Cat(results)),
                     getattr(self, f"result{i}").eq(to_planes(self._results[i], self._lanes))]

    def _operand(self, m, name, select, quad, step, others=None):
        """The operand that ``select`` names, all lanes; ``others``: values by further `Select`."""
        operand = Signal(VALUE_BITS * self._lanes, name=f"operand_{name}")
        values = {Select.STREAM: to_lanes(quad, self._lanes), Select.STEP: self._everywhere(step),
                  **(others or {})}
        values |= {Select.RESULT + i: result for i, result in enumerate(self._results)}
        values[Select.RESULT + len(self._results)] = self._everywhere(self.reduced)
        with m.Switch(select):
            for number, value in values.items():
                with m.Case(number):
                    m.d.comb += operand.eq(value)
            with m.Default():
                m.d.comb += operand.eq(0)
        return operand

    def _everywhere(self, value):
        """One value of at most 32 bits on all lanes."""
        return Cat(value, Const(0, VALUE_BITS - len(value))).replicate(self._lanes)
