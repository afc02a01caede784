"""MXM: a block of int8 weights, a buffer of activations and a file of exact accumulators.

Timing, with ``d = t_d(ABC)``::

    LW at k    k: streams read     k+1: shadow written      k+2: an ABC may install it
    ABC at j   j: vector, shadow   j+1: products, then sum  j+d-1: accumulator    j+d: ACC sees it
    ACC at i   i: accumulator      i+1 .. i+3: fp32         i+4 = i+t_d(ACC): on the streams

The sums live in superlanes of 16 columns (`MxmColumns`); here is what they share: decoding, the
rotation of loaded vectors to their rows, the activation buffer.
"""

from types import SimpleNamespace

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from hdl.arch.isa import MxmActOp, MxmWeightOp
from hdl.arch.timing import timing
from hdl.emit import once
from hdl.mxm.array import LOAD_VECTORS
from hdl.mxm.columns import MxmColumns, read_layout, update_layout
from hdl.planes import to_planes
from hdl.rotate import rotate_left
from hdl.signatures import FAULT_BITS, IssueSignature, ReadTap, WritePort, fields

__all__ = ["Mxm"]


class Mxm(wiring.Component):
    """One MXM of a tile.

    Parameters
    ----------
    cfg : TileConfig

    Members
    -------
    weight, act : In(IssueSignature)
        Issues of the two queues.
    weight_tap : Out(ReadTap)
        Streams that an LW takes, in the cycle of its issue.  ``count_log2`` 3 is as 2.
    act_tap : Out(ReadTap)
        Stream that an ABC takes in the cycle of its issue, unless it is ``buffered``.
    port : Out(WritePort)
        Result of an ACC, ``t_d`` cycles after its issue.
    faults : Out(FAULT_BITS)
        Always 0: an MXM has no fault of its own.

    Reset clears what is under way; weights, buffer and accumulators are undefined until written.
    """

    def __init__(self, cfg):
        self._cfg = cfg
        self._timing = timing(cfg)
        self._buffer = memory.MemoryData(shape=8 * cfg.lanes, depth=cfg.activations, init=[])
        super().__init__({
            "weight": In(IssueSignature(cfg, "mxm_weight")),
            "act": In(IssueSignature(cfg, "mxm_act")),
            "weight_tap": Out(ReadTap(cfg, 4)),
            "act_tap": Out(ReadTap(cfg)),
            "port": Out(WritePort(cfg, 4)),
            "faults": Out(FAULT_BITS),
        })

    def elaborate(self, platform):
        cfg = self._cfg
        m = Module()
        load = self._load(m)
        abc = self._multiply(m)
        read = self._read_out(m)
        results, columns = [], cfg.superlane
        for i in range(cfg.lanes // columns):
            unit = once(platform, "mxm_columns", MxmColumns, rows=cfg.lanes, columns=columns,
                        accumulators=cfg.accumulators, accumulator_bits=cfg.accumulator_bits)
            m.submodules[f"columns_{i}"] = unit
            part = slice(i * columns, (i + 1) * columns)
            m.d.comb += [
                unit.load.rows.eq(load.rows),
                unit.load.columns.eq(load.columns[part]),
                unit.load.by_row.eq(Cat(vector.word_select(i, 8 * columns)
                                        for vector in load.vectors)),
                unit.load.by_column.eq(load.by_column),
                unit.install.eq(abc.install),
                unit.vector.eq(abc.vector),
                unit.multiply.eq(abc.multiply),
                unit.update.eq(abc.update),
                unit.read.eq(read),
            ]
            results.append(unit.result)
        m.d.comb += Value.cast(self.port.data).eq(to_planes(Cat(results), cfg.lanes))
        return m

    def _load(self, m):
        """What the LW of the cycle before writes: vector ``r % 4`` is for row or column ``r``."""
        issue, tap, lanes = self.weight, self.weight_tap, self._cfg.lanes
        lw = fields(self._cfg, "mxm_weight", MxmWeightOp.LW, issue.word)
        m.d.comb += [
            tap.en.eq(issue.valid),
            tap.stream.eq(lw.source),
            tap.west.eq(lw.source_west),
            tap.last.eq(lw.source_last),
            tap.count_log2.eq(lw.count_log2),
        ]
        valid = Signal()
        first = Signal.like(issue.index.row, reset_less=True)
        count_log2 = Signal.like(lw.count_log2, reset_less=True)
        by_column = Signal(reset_less=True)
        vectors = Signal(LOAD_VECTORS * 8 * lanes, reset_less=True)
        m.d.sync += valid.eq(issue.valid)
        with m.If(issue.valid):
            m.d.sync += [
                first.eq(issue.index.row),
                count_log2.eq(lw.count_log2),
                by_column.eq(lw.columns),
                vectors.eq(tap.data),
            ]
        vectors = [vectors.word_select(i, 8 * lanes) for i in range(LOAD_VECTORS)]
        turned = rotate_left(m, "rotated", vectors, first)
        load = SimpleNamespace(
            rows=Signal(lanes), columns=Signal(lanes), by_column=Signal(len(turned)),
            vectors=[turned.word_select(q, 8 * lanes) for q in range(LOAD_VECTORS)])
        m.d.comb += load.by_column.eq(Cat(vector.word_select(r, 8)
                                          for r in range(lanes) for vector in load.vectors))
        span = Signal(2 * lanes)        # rows from `first` on, before the wrap-around
        with m.If(valid):
            m.d.comb += span.eq(Cat(1, count_log2 >= 1, (count_log2 >= 2).replicate(2)) << first)
            target = span[:lanes] | span[lanes:]
            with m.If(by_column):
                m.d.comb += load.columns.eq(target)
            with m.Else():
                m.d.comb += load.rows.eq(target)
        return load

    def _multiply(self, m):
        """ABC: the shadow is installed in its cycle, the rest comes behind."""
        issue, tap = self.act, self.act_tap
        abc = fields(self._cfg, "mxm_act", MxmActOp.ABC, issue.word)
        valid = Signal(name="abc_valid")
        m.submodules.buffer = buffer = memory.Memory(self._buffer)
        write = buffer.write_port()
        read = buffer.read_port(domain="comb")
        taken = Signal(8 * self._cfg.lanes)
        now = SimpleNamespace(install=Signal(), multiply=Signal(),
                              vector=Signal(8 * self._cfg.lanes, reset_less=True))
        m.d.comb += [
            valid.eq(issue.valid & (abc.op == MxmActOp.ABC)),
            tap.en.eq(valid & ~abc.buffered),
            tap.stream.eq(abc.source),
            tap.west.eq(abc.source_west),
            tap.last.eq(abc.source_last),
            read.addr.eq(issue.index.activation),
            taken.eq(Mux(abc.buffered, read.data, Value.cast(tap.data))),
            write.addr.eq(issue.index.activation),
            write.data.eq(taken),
            write.en.eq(valid & abc.keep),
            now.install.eq(valid & abc.install),
        ]
        m.d.sync += now.multiply.eq(valid)
        with m.If(valid):
            m.d.sync += now.vector.eq(taken)
        update = Signal(update_layout(self._cfg.accumulators))
        m.d.comb += [
            update.valid.eq(valid),
            update.high.eq(abc.high),
            update.clear.eq(abc.clear),
            update.accumulator.eq(issue.index.accumulator),
        ]
        now.update = self._delayed(m, update, self._timing["mxm_act", "ABC"].t_d - 1)
        return now

    def _read_out(self, m):
        """ACC: reads in its cycle; its targets wait for the result."""
        issue, port = self.act, self.port
        acc = fields(self._cfg, "mxm_act", MxmActOp.ACC, issue.word)
        read = Signal(read_layout(self._cfg.accumulators))
        number = port.east.shape()
        targets = Signal(data.StructLayout({"east_en": 1, "west_en": 1, "east": number,
                                            "west": number}))
        m.d.comb += [
            read.valid.eq(issue.valid & (acc.op == MxmActOp.ACC)),
            read.mode.eq(acc.mode),
            read.accumulator.eq(issue.index.accumulator),
            targets.east_en.eq(read.valid & acc.east_en),
            targets.west_en.eq(read.valid & acc.west_en),
            targets.east.eq(acc.east),
            targets.west.eq(acc.west),
        ]
        late = self._delayed(m, targets, self._timing["mxm_act", "ACC"].t_d)
        m.d.comb += [
            port.count_log2.eq(2),
            port.east_en.eq(late.east_en),
            port.west_en.eq(late.west_en),
            port.east.eq(late.east),
            port.west.eq(late.west),
        ]
        return read

    @staticmethod
    def _delayed(m, value, cycles):
        """``value``, ``cycles`` later; 0 behind reset."""
        for stage in range(1, cycles + 1):
            late = Signal(value.shape(), name=f"{value.as_value().name}_{stage}")
            m.d.sync += late.eq(value)
            value = late
        return value
