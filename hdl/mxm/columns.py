"""One superlane of an MXM: some columns of the weight block, their sums and their accumulators.

Timing (``s`` is `adder_stages(rows)``; an LW issues in ``k``, an ABC in ``j``, an ACC in ``i``)::

    cycle     k         k+1
    load      .         shadow written

    cycle     j         j+1       j+2  ..  j+1+s    j+2+s = j+t_d-1
    install   shadow    .         .        .        .
    vector    .         product   .        .        .
              .         .         radix-4 tree      .
    update    .         .         .        .        accumulator += sum

    cycle     i         i+1       i+2      i+3      i+4 = i+t_d
    read      entry     .         .        .        .
              .         sign      count    round    .
    result    .         .         .        .        fp32 or half of the sum
"""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hdl.arch.isa import AccMode
from hdl.arch.timing import ACC_STAGES, adder_stages
from hdl.emit import once
from hdl.fp.convert import IntToFp
from hdl.mxm.array import LOAD_VECTORS, MxmArray, add_stages, load_layout

__all__ = ["MxmColumns", "read_layout", "update_layout"]

ARRAY_ROWS = 16         #: rows of an array, unless there are fewer


def update_layout(accumulators):
    """What happens to the accumulator file when the sum of an ABC is there."""
    return data.StructLayout({"valid": unsigned(1), "high": unsigned(1), "clear": unsigned(1),
                              "accumulator": unsigned(bits_for(accumulators - 1))})


def read_layout(accumulators):
    """What an ACC reads; the fourth code of ``mode`` counts as F32."""
    return data.StructLayout({"valid": unsigned(1), "mode": AccMode,
                              "accumulator": unsigned(bits_for(accumulators - 1))})


class MxmColumns(wiring.Component):
    """Some columns of an MXM, all rows of each.

    Parameters
    ----------
    rows, columns : int
        Size of this part of the weight block; ``columns`` is a multiple of 4, and ``rows``, where
        there are more than 16 of them, one of 16.
    accumulators : int
        Entries of the accumulator file.
    accumulator_bits : int
        Bits of an accumulator, which wraps.

    Members
    -------
    load : In(load_layout)
        Shadow weights to write; the shadow has them from the next cycle on.
    install : In(1)
        The shadow weights of this cycle are the active ones from the next cycle on.
    vector : In(8 * rows)
        Activations: byte ``r`` is an int8, multiplied with row ``r`` of the active weights.
    multiply : In(1)
        ``vector`` is there.
    update : In(update_layout)
        ``1 + adder_stages(rows)`` cycles behind ``multiply``: what its sum does.
    read : In(read_layout)
        Accumulator to read in this cycle.
    result : Out(32 * columns)
        32 bits for each column, ``1 + ACC_STAGES`` cycles behind ``read``.
    """

    def __init__(self, *, rows, columns, accumulators, accumulator_bits):
        if columns < 1 or columns % LOAD_VECTORS:
            raise ValueError(f"Column count must be a positive multiple of {LOAD_VECTORS}, "
                             f"not {columns!r}")
        if rows > ARRAY_ROWS and rows % ARRAY_ROWS:
            raise ValueError(f"Row count must be at most {ARRAY_ROWS} or a multiple of it, "
                             f"not {rows!r}")
        self._rows = rows
        self._columns = columns
        self._bits = accumulator_bits
        self._file = memory.MemoryData(shape=unsigned(columns * accumulator_bits),
                                       depth=accumulators, init=[])
        super().__init__({
            "load": In(load_layout(rows, columns)),
            "install": In(1),
            "vector": In(8 * rows),
            "multiply": In(1),
            "update": In(update_layout(accumulators)),
            "read": In(read_layout(accumulators)),
            "result": Out(32 * columns),
        })

    @property
    def file(self):
        """`MemoryData` of the accumulators; an entry has column 0 in its lowest bits."""
        return self._file

    def elaborate(self, platform):
        m = Module()
        sums = self._add(m, platform)
        self._read_out(m, self._accumulate(m, sums), platform)
        return m

    def _add(self, m, platform):
        """Sums over all rows, a signed value for each column."""
        rows, sums = min(self._rows, ARRAY_ROWS), []
        for i in range(self._rows // rows):
            array = once(platform, "mxm_array", MxmArray, rows=rows, columns=self._columns)
            m.submodules[f"array_{i}"] = array
            m.d.comb += [
                array.load.rows.eq(self.load.rows.word_select(i, rows)),
                array.load.columns.eq(self.load.columns),
                array.load.by_row.eq(self.load.by_row),
                array.load.by_column.eq(
                    self.load.by_column.word_select(i, 8 * LOAD_VECTORS * rows)),
                array.install.eq(self.install),
                array.vector.eq(self.vector.word_select(i, 8 * rows)),
                array.multiply.eq(self.multiply),
            ]
            sums.append(array.sums)
        below, valid = adder_stages(rows), self.multiply
        if len(sums) > 1:
            for stage in range(1, 1 + below):       # as in the arrays
                later = Signal(name=f"valid_{stage}")
                m.d.sync += later.eq(valid)
                valid = later
        total, width = add_stages(m, sums, len(sums[0]) // self._columns, self._columns, valid,
                                  range(1 + below, 1 + adder_stages(self._rows)))
        return self._split(total, width)

    def _accumulate(self, m, sums):
        """Accumulator file; the register behind its second read port."""
        m.submodules.file = file = memory.Memory(self._file)
        write = file.write_port()
        old = file.read_port(domain="comb")
        read = file.read_port(domain="comb")
        m.d.comb += [
            old.addr.eq(self.update.accumulator),
            write.addr.eq(self.update.accumulator),
            write.en.eq(self.update.valid),
            read.addr.eq(self.read.accumulator),
        ]
        olds = self._split(old.data, self._bits)
        news = []
        for c, (value, term) in enumerate(zip(olds, sums, strict=True)):
            new = Signal(self._bits, name=f"new_{c}")
            m.d.comb += new.eq(Mux(self.update.clear, 0, value)
                               + Mux(self.update.high, term << 8, term))
            news.append(new)
        m.d.comb += write.data.eq(Cat(news))
        raw = Signal(self._columns * self._bits, reset_less=True)
        with m.If(self.read.valid):
            m.d.sync += raw.eq(read.data)
        return raw

    def _read_out(self, m, raw, platform):
        """fp32 of the register, or half of it, ``ACC_STAGES`` later."""
        modes = [self.read.mode]
        for stage in range(1 + ACC_STAGES):
            modes.append(Signal(AccMode, name=f"mode_{stage}", reset_less=True))
            m.d.sync += modes[-1].eq(modes[-2])
        results = []
        for c, value in enumerate(self._split(raw, self._bits)):
            to_fp = once(platform, f"int{self._bits}_to_fp_{ACC_STAGES}", IntToFp,
                         width=self._bits, depth=ACC_STAGES)
            m.submodules[f"to_fp_{c}"] = to_fp
            half = Mux(modes[1] == AccMode.RAW_HIGH, value >> 16, value[:16])
            for stage in range(1, ACC_STAGES + 1):
                held = Signal(32, name=f"half_{c}_{stage}", reset_less=True)
                m.d.sync += held.eq(half)
                half = held
            is_half = (modes[-1] == AccMode.RAW_HIGH) | (modes[-1] == AccMode.RAW_LOW)
            m.d.comb += to_fp.a.eq(value)
            results.append(Mux(is_half, half, to_fp.r))
        m.d.comb += self.result.eq(Cat(results))

    def _split(self, register, width):
        """The signed values, one for each column, that a register holds."""
        return [register.word_select(c, width).as_signed() for c in range(self._columns)]
