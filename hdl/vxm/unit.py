"""VXM: a ring of ALUs on every lane, each with its queue, and a reduction over the lanes.

Timing, for an instruction of an ALU of ``depth`` cycles::

    cycle        k                                k + depth
    operands     streams, results, entries read   .
    result       .                                on the streams, in the crossbar, in its entry

The reduction unit alike, ``t_d`` cycles after its issue.  The arithmetic is in superlanes of 16
lanes (`VxmSuperlane`); here is what they share: decoding, the way of every instruction to its
result, the upper levels of the reduction.
"""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.arch.errors import Fault
from hdl.arch.isa import Operand
from hdl.arch.ops import AluOp, ReduceOp
from hdl.emit import once
from hdl.planes import PLANES
from hdl.signatures import FAULT_BITS, IssueSignature, ReadTap, WritePort, fields
from hdl.vxm.decode import Select, decode, issue_layout, result_layout, way_layout
from hdl.vxm.reduce import levels, reduce_controls, reduce_tree
from hdl.vxm.superlane import VxmSuperlane

__all__ = ["Vxm"]


class Vxm(wiring.Component):
    """The VXM of a tile.

    Parameters
    ----------
    cfg : TileConfig

    Members
    -------
    alu<i>, reduce : In(IssueSignature)
        Issues of ALU ``i`` and of the reduction unit.
    a_tap<i>, b_tap<i>, reduce_tap : Out(ReadTap)
        Streams that they take, in the cycle of the issue.
    port<i>, reduce_port : Out(WritePort)
        Their results, ``t_d`` cycles after the issue.
    faults : Out(FAULT_BITS)
        ``STREAM_INVALID`` for a result that does not exist in the cycle in which it is an operand
        or for a stream that no tile has, ``ICU_WORD`` for an opcode whose feature the ALU lacks:
        one cycle later.

    Operands that do not exist are zero, as are those of the reduction unit that only ALUs have
    (entries, immediates) and those of no `Operand` code.  Reset clears what is under way; entries
    are undefined until written.
    """

    def __init__(self, cfg):
        self._cfg = cfg
        self._results = len(cfg.alus) + 1
        members = {"reduce": In(IssueSignature(cfg, "reduce")), "reduce_tap": Out(ReadTap(cfg, 4)),
                   "reduce_port": Out(WritePort(cfg, 4)), "faults": Out(FAULT_BITS)}
        for i in range(len(cfg.alus)):
            members |= {f"alu{i}": In(IssueSignature(cfg, "alu")),
                        f"a_tap{i}": Out(ReadTap(cfg, 4)), f"b_tap{i}": Out(ReadTap(cfg, 4)),
                        f"port{i}": Out(WritePort(cfg, 4))}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        cfg = self._cfg
        self._invalid, self._lacking = [], []       # faults of this cycle
        self._there = Signal(self._results)         # which units have a result in this cycle
        self._lanes = cfg.superlane
        self._parts = []
        for s in range(cfg.lanes // self._lanes):
            part = once(platform, "vxm_superlane", VxmSuperlane, alus=cfg.alus, lanes=self._lanes,
                        reduce_depth=cfg.reduce_depth)
            m.submodules[f"superlane_{s}"] = part
            self._parts.append(part)
        for i in range(len(cfg.alus)):
            self._alu(m, i)
        self._reduce(m, platform)
        m.d.sync += [self.faults[Fault.STREAM_INVALID].eq(Cat(self._invalid).any()),
                     self.faults[Fault.ICU_WORD].eq(Cat(self._lacking).any())]
        return m

    def _alu(self, m, i):
        """Queue ``i``: its decoder, and what its results need later."""
        alu, issue, port = self._cfg.alus[i], getattr(self, f"alu{i}"), getattr(self, f"port{i}")
        taps = {name: getattr(self, f"{name}_tap{i}") for name in ("a", "b")}
        insn = fields(self._cfg, "alu", AluOp.PASS, issue.word)
        row = decode(m, insn.op, alu.features, f"row_{i}")
        told = Signal(issue_layout(self._results), name=f"told_{i}")
        with m.If(issue.valid):
            m.d.comb += told.lane.eq(row.control)
        used = {"a": issue.valid, "b": issue.valid & row.binary}
        for name, tap in taps.items():
            select = self._operand(m, f"{name}_{i}", insn, name, used[name], tap)
            m.d.comb += [told[name].eq(select), told[f"{name}_entry"].eq(insn[f"{name}_source"]),
                         tap.count_log2.eq(row.operand_log2)]
            self._give(m, f"quad_{name}{i}", tap)
        m.d.comb += [told.immediate.eq(insn.immediate), told.step.eq(issue.step)]
        self._invalid.append(told.lane.choose & ~self._there[(i - 1) % len(self._cfg.alus)])
        self._lacking.append(issue.valid & row.lacking)

        way = Signal(way_layout(self._cfg), name=f"way_{i}")
        with m.If(issue.valid):
            m.d.comb += [way.unit.eq(row.unit), way.keep.eq(insn.keep), way.entry.eq(insn.entry),
                         way.result_log2.eq(row.result_log2)]
        stages = self._travel(m, way, issue, insn, alu.depth)
        late, end = Signal(result_layout(alu.depth), name=f"late_{i}"), stages[-1]
        m.d.comb += [late.keep.eq(end.keep), late.entry.eq(end.entry),
                     *(late.unit[t].eq(stage.unit) for t, stage in enumerate(stages[1:]))]
        for part in self._parts:
            m.d.comb += [getattr(part, f"issue{i}").eq(told), getattr(part, f"late{i}").eq(late)]
        m.d.comb += self._there[i].eq(end.valid)
        self._put(m, port, end, end.result_log2, [getattr(part, f"result{i}")
                                                  for part in self._parts])

    def _reduce(self, m, platform):
        """The queue of the reduction unit, and what of the tree lies above the superlanes."""
        cfg, issue, tap = self._cfg, self.reduce, self.reduce_tap
        insn = fields(cfg, "reduce", ReduceOp.SUM, issue.word)
        m.d.comb += tap.count_log2.eq(2)
        self._give(m, "reduce_quad", tap)
        select = self._operand(m, "reduce", insn, "a", issue.valid, tap)
        depth, below, all_levels = cfg.reduce_depth, levels(self._lanes), levels(cfg.lanes)
        ops = reduce_controls(m, insn.op, all_levels, depth)
        for part in self._parts:
            m.d.comb += [part.reduce_select.eq(select), part.reduce_step.eq(issue.step),
                         *(part.reduce_op[level].eq(ops[level])
                           for level in range(below + 1))]
        top = reduce_tree(m, platform, [part.partial for part in self._parts],
                          ops[below:], depth)
        reduced = Signal.like(top, name="reduced")
        m.d.comb += reduced.eq(top)
        end = self._travel(m, Signal(way_layout(cfg), name="way_reduce"), issue, insn,
                           all_levels * depth)[-1]
        m.d.comb += self._there[-1].eq(end.valid)
        for part in self._parts:
            m.d.comb += part.reduced.eq(reduced)
        everywhere = Cat(reduced.word_select(plane, 8).replicate(self._lanes)
                         for plane in range(PLANES))
        self._put(m, self.reduce_port, end, 2, [everywhere for _ in self._parts])

    def _operand(self, m, name, insn, operand, used, tap):
        """`Select` of an operand, `NONE` unless it is ``used`` and exists; drives its tap."""
        source, kind = insn[f"{operand}_source"], insn[operand]
        select = Signal(issue_layout(self._results)["a"].shape, name=f"select_{name}")
        stream, result, exists = (Signal(name=f"{what}_{name}")
                                  for what in ("stream", "result", "exists"))
        m.d.comb += [
            stream.eq(kind == Operand.STREAM), result.eq(kind == Operand.RESULT),
            exists.eq(~(stream | result) | stream & (source < self._cfg.streams)
                      | result & self._there.bit_select(source, 1)),
            tap.en.eq(used & stream & exists), tap.stream.eq(source),
            tap.west.eq(insn[f"{operand}_source_west"]),
            tap.last.eq(insn[f"{operand}_source_last"]),
        ]
        self._invalid.append(used & ~exists)
        with m.If(used & exists):
            with m.Switch(kind):
                with m.Case(Operand.RESULT):
                    m.d.comb += select.eq(Select.RESULT + source)
                for other in (Operand.STREAM, Operand.ENTRY, Operand.IMMEDIATE, Operand.STEP):
                    with m.Case(other):
                        m.d.comb += select.eq(Select[other.name])
                with m.Default():
                    m.d.comb += select.eq(Select.NONE)
        return select

    def _travel(self, m, way, issue, insn, cycles):
        """``way`` with what all units need, in its issue cycle and in each of ``cycles`` behind."""
        with m.If(issue.valid):
            m.d.comb += [way.valid.eq(1), way.east_en.eq(insn.east_en),
                         way.west_en.eq(insn.west_en), way.target.eq(insn.target)]
        stages = [way.as_value()]
        for cycle in range(1, cycles + 1):
            late = Signal(way.shape().size, name=f"{stages[0].name}_{cycle}")   # plain: less text
            m.d.sync += late.eq(stages[-1])
            stages.append(late)
        return [data.View(way.shape(), stage) for stage in stages]

    def _give(self, m, member, tap):
        """Every superlane's part of the quad that ``tap`` reads."""
        quad = Value.cast(tap.data)
        for s, part in enumerate(self._parts):
            m.d.comb += getattr(part, member).eq(Cat(
                quad.word_select(plane * len(self._parts) + s, 8 * self._lanes)
                for plane in range(PLANES)))

    def _put(self, m, port, end, count_log2, results):
        """Drive ``port`` in the last cycle of the way; ``results``: planes by superlane."""
        m.d.comb += [
            port.east_en.eq(end.east_en), port.east.eq(end.target),
            port.west_en.eq(end.west_en), port.west.eq(end.target),
            port.count_log2.eq(count_log2),
            Value.cast(port.data).eq(Cat(
                result.word_select(plane, 8 * self._lanes)
                for plane in range(PLANES) for result in results)),
        ]
