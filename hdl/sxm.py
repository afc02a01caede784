"""SXM: lanes of one stream, or of four aligned ones alike, change places.

Timing (``t_d`` is 2)::

    cycle     k                k+1              k+2            k+3
    move      streams read     lanes moved      on streams     .
    MAP       stream read      .                .              a PERMUTE issued in k+2 or later
                                                               moves by the new map
"""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from .arch import isa
from .arch.isa import SxmOp
from .planes import VALUE_BITS, to_lanes, to_planes
from .signatures import FAULT_BITS, IssueSignature, ReadTap, WritePort, fields

__all__ = ["Sxm"]

_NUMBER_BITS = 8        # of a lane number in a map


class Sxm(wiring.Component):
    """One SXM of a tile.

    Parameters
    ----------
    cfg : TileConfig

    Members
    -------
    issue : In(IssueSignature)
        Issues of the queue.
    tap : Out(ReadTap)
        In the cycle of the issue.
    port : Out(WritePort)
        Two cycles after the issue of everything but MAP.
    faults : Out(FAULT_BITS)
        Always 0: an SXM has no fault of its own.

    Reset clears what is under way; maps are undefined until written.
    """

    def __init__(self, cfg):
        self._cfg = cfg
        super().__init__({"issue": In(IssueSignature(cfg, "sxm")), "tap": Out(ReadTap(cfg, 4)),
                          "port": Out(WritePort(cfg, 4)), "faults": Out(FAULT_BITS)})

    def elaborate(self, platform):
        m = Module()
        lanes, port = self._cfg.lanes, self.port
        told, values = self._take(m)
        moved = self._move(m, told, values)
        late = Signal.like(told, name="told_2")
        result = Signal(VALUE_BITS * lanes, reset_less=True)
        m.d.sync += late.eq(told)
        with m.If(told.valid):
            m.d.sync += result.eq(moved)
        planes = Signal(VALUE_BITS * lanes)
        m.d.comb += [
            planes.eq(to_planes(result, lanes)),
            Value.cast(port.data).eq(planes),
            port.count_log2.eq(Mux(late.quad, 2, 0)),
            port.east_en.eq(late.east_en), port.east.eq(late.target),
            port.west_en.eq(late.west_en), port.west.eq(late.target),
        ]
        for number, numbers in enumerate(self._maps):
            with m.If((late.op == SxmOp.MAP) & (late.map == number)):
                m.d.sync += numbers.eq(planes[:_NUMBER_BITS * lanes])
        return m

    def _take(self, m):
        """The instruction and its operand in the cycle behind the issue."""
        issue, tap = self.issue, self.tap
        formats = isa.formats(self._cfg, "sxm")
        number = tap.stream.shape()
        layout = data.StructLayout({
            "valid": 1, "op": SxmOp, "quad": 1, "map": bits_for(isa.SXM_MAPS - 1),
            "amount": bits_for(self._cfg.lanes - 1), "source": number, "source_west": 1,
            "source_last": 1, "east_en": 1, "west_en": 1, "target": number})
        now, told = Signal(layout, name="told"), Signal(layout, name="told_1")
        op = fields(self._cfg, "sxm", SxmOp.SHIFT, issue.word).op
        with m.If(issue.valid):
            m.d.comb += now.valid.eq(1)
            with m.Switch(op):
                for member in formats:
                    insn = fields(self._cfg, "sxm", member, issue.word)
                    with m.Case(member):
                        m.d.comb += [now[name].eq(insn[name]) for name, _ in layout
                                     if name != "valid" and name in insn.shape().members]
                with m.Default():
                    m.d.comb += now.op.eq(op)
        m.d.comb += [tap.en.eq(now.valid), tap.stream.eq(now.source), tap.west.eq(now.source_west),
                     tap.last.eq(now.source_last), tap.count_log2.eq(Mux(now.quad, 2, 0))]
        values = Signal(VALUE_BITS * self._cfg.lanes, reset_less=True)
        m.d.sync += told.eq(now)
        with m.If(issue.valid):
            m.d.sync += values.eq(to_lanes(tap.data, self._cfg.lanes))
        return told, values

    def _move(self, m, told, values):
        """The values on their new lanes."""
        lanes = self._cfg.lanes
        self._maps = [Signal(_NUMBER_BITS * lanes, name=f"map_{i}", reset_less=True)
                      for i in range(isa.SXM_MAPS)]
        moved = Signal(VALUE_BITS * lanes)
        turned = values
        for bit in range(len(told.amount)):
            low = VALUE_BITS * (lanes - (1 << bit))
            step = Signal(VALUE_BITS * lanes, name=f"turned_{bit}")
            m.d.comb += step.eq(Mux(told.amount[bit], Cat(turned[low:], turned[:low]), turned))
            turned = step
        kept = Signal(lanes)        # lanes that a SHIFT does not fill with zeros
        numbers = Signal(_NUMBER_BITS * lanes)
        m.d.comb += [kept.eq(((1 << lanes) - 1) << told.amount),
                     numbers.eq(Array(self._maps)[told.map])]
        with m.Switch(told.op):
            with m.Case(SxmOp.SHIFT):
                m.d.comb += moved.eq(turned & Cat(bit.replicate(VALUE_BITS) for bit in kept))
            with m.Case(SxmOp.ROTATE):
                m.d.comb += moved.eq(turned)
            with m.Case(SxmOp.DISTRIBUTE):
                m.d.comb += moved.eq(self._lane(values, told.amount).replicate(lanes))
            with m.Case(SxmOp.MAP):
                m.d.comb += moved.eq(values)
            with m.Case(SxmOp.PERMUTE):
                m.d.comb += moved.eq(Cat(
                    self._lane(values, numbers.word_select(lane, _NUMBER_BITS))
                    for lane in range(lanes)))
            with m.Default():
                m.d.comb += moved.eq(0)
        return moved

    def _lane(self, values, number):
        """The value on lane ``number``; zero if there is no such lane."""
        bits = min(len(number), bits_for(self._cfg.lanes - 1))
        return Mux(number < self._cfg.lanes, values.word_select(number[:bits], VALUE_BITS), 0)
