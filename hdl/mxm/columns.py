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

from amaranth import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

from hdl.arch.isa import AccMode
from hdl.arch.timing import ACC_STAGES, adder_stages
from hdl.emit import once
from hdl.fp.convert import IntToFp

__all__ = ["LOAD_VECTORS", "MxmColumns", "load_layout", "read_layout", "update_layout"]

LOAD_VECTORS = 4        #: vectors an LW can take at once
RADIX = 4               #: terms that one stage of the tree adds, as `adder_stages` counts them
PRODUCT_BITS = 16       #: int8 x int8; only -128 * -128 needs the last of them


def load_layout(rows, columns):
    """What an LW does to one superlane.

    ``rows`` and ``columns`` have a bit for every row or column that is written; one of them is 0.
    Row ``r`` takes vector ``r % 4`` of ``by_row``, a byte for each column.  Column ``c`` takes
    vector ``c % 4`` of ``by_column``, whose byte ``4 * r + q`` is row ``r`` of vector ``q``.  Both
    are flat, because a layout would name every element in the Verilog.
    """
    return data.StructLayout({
        "rows": unsigned(rows), "columns": unsigned(columns),
        "by_row": unsigned(LOAD_VECTORS * 8 * columns),
        "by_column": unsigned(LOAD_VECTORS * 8 * rows)})


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
        Size of this part of the weight block; ``columns`` is a multiple of 4.
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
        weights = self._hold_weights(m)
        sums = self._add(m, self._multiply(m, weights))
        self._read_out(m, self._accumulate(m, sums), platform)
        return m

    def _hold_weights(self, m):
        """Shadow and active weights; a register holds one row."""
        mask = Signal(8 * self._columns)
        m.d.comb += mask.eq(Cat(bit.replicate(8) for bit in self.load.columns))
        weights = []
        for r in range(self._rows):
            shadow = Signal(8 * self._columns, name=f"shadow_{r}", reset_less=True)
            active = Signal(8 * self._columns, name=f"weights_{r}", reset_less=True)
            down = self.load.by_row.word_select(r % LOAD_VECTORS, 8 * self._columns)
            across = self.load.by_column.word_select(r, 8 * LOAD_VECTORS) \
                .replicate(self._columns // LOAD_VECTORS)
            with m.If(self.load.rows[r]):
                m.d.sync += shadow.eq(down)
            with m.Elif(self.load.columns.any()):
                m.d.sync += shadow.eq((shadow & ~mask) | (across & mask))
            with m.If(self.install):
                m.d.sync += active.eq(shadow)
            weights.append(active)
        return weights

    def _multiply(self, m, weights):
        """Products; a register holds those of one row."""
        products = []
        with m.If(self.multiply):
            for r, row in enumerate(weights):
                product = Signal(PRODUCT_BITS * self._columns, name=f"products_{r}",
                                 reset_less=True)
                element = self.vector.word_select(r, 8).as_signed()
                m.d.sync += product.eq(Cat(element * weight for weight in self._split(row, 8)))
                products.append(product)
        return products

    def _add(self, m, terms):
        """Sums over the rows, a signed value for each column; a stage adds 4 terms to one."""
        width, valid = PRODUCT_BITS, self.multiply
        for stage in range(1, adder_stages(self._rows) + 1):
            valid_next = Signal(name=f"products_valid_{stage}")
            m.d.sync += valid_next.eq(valid)
            groups = [terms[i:i + RADIX] for i in range(0, len(terms), RADIX)]
            wider = width + ceil_log2(len(groups[0]))
            sums = []
            for i, group in enumerate(groups):
                total = Signal(wider * self._columns, name=f"sums_{stage}_{i}", reset_less=True)
                split = zip(*(self._split(term, width) for term in group), strict=True)
                with m.If(valid_next):
                    m.d.sync += total.eq(Cat(_tree(column, wider) for column in split))
                sums.append(total)
            terms, width, valid = sums, wider, valid_next
        return self._split(terms[0], width)

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


def _tree(terms, width):
    """Sum of signed terms in ``width`` bits, which hold it."""
    while len(terms) > 1:
        terms = [sum(terms[i + 1:i + 2], terms[i]) for i in range(0, len(terms), 2)]
    return (terms[0] | Const(0, signed(width)))[:width]
