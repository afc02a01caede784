"""The weights of 16 rows and 16 columns of an MXM, and the sums of their products.

Timing of the sums, for an ABC issued in ``j`` (``s`` is `adder_stages(rows)`)::

    cycle     j         j+1       j+2  ..  j+1+s    j+2+s
    install   shadow    .         .                 .
    vector    .         product   radix-4 tree      sums
"""

from amaranth import Cat, Const, Module, Signal, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.arch.timing import adder_stages

__all__ = ["LOAD_VECTORS", "MxmArray", "add_stages", "load_layout"]

LOAD_VECTORS = 4        #: vectors an LW can take at once
RADIX = 4               #: terms that one stage of the tree adds, as `adder_stages` counts them
PRODUCT_BITS = 16       #: int8 x int8; only -128 * -128 needs the last of them


def load_layout(rows, columns):
    """What an LW does to some rows and columns.

    ``rows`` and ``columns`` have a bit for every row or column that is written; one of them is 0.
    Row ``r`` takes vector ``r % 4`` of ``by_row``, a byte for each column.  Column ``c`` takes
    vector ``c % 4`` of ``by_column``, whose byte ``4 * r + q`` is row ``r`` of vector ``q``.  Both
    are flat, because a layout would name every element in the Verilog.
    """
    return data.StructLayout({
        "rows": unsigned(rows), "columns": unsigned(columns),
        "by_row": unsigned(LOAD_VECTORS * 8 * columns),
        "by_column": unsigned(LOAD_VECTORS * 8 * rows)})


class MxmArray(wiring.Component):
    """Some rows of some columns of an MXM.

    Parameters
    ----------
    rows, columns : int
        Multiples of 4.

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
    sums : Out
        ``1 + adder_stages(rows)`` cycles behind ``multiply``: a signed sum for each column, in as
        many bits as it takes.
    """

    def __init__(self, *, rows, columns):
        self._rows = rows
        self._columns = columns
        width = PRODUCT_BITS + ceil_log2(rows)
        super().__init__({
            "load": In(load_layout(rows, columns)), "install": In(1), "vector": In(8 * rows),
            "multiply": In(1), "sums": Out(width * columns)})

    def elaborate(self, platform):
        m = Module()
        products = self._multiply(m, self._hold_weights(m))
        total, _ = add_stages(m, products, PRODUCT_BITS, self._columns, self.multiply,
                              range(1, 1 + adder_stages(self._rows)))
        m.d.comb += self.sums.eq(total)
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
                m.d.sync += product.eq(Cat(
                    element * row.word_select(c, 8).as_signed() for c in range(self._columns)))
                products.append(product)
        return products


def add_stages(m, terms, width, columns, valid, stages):
    """Sums of registers column by column; a stage adds 4 of them to one.

    Parameters
    ----------
    terms : list of values
        ``columns`` signed values of ``width`` bits each.
    valid : value
        1 in the cycle before that in which the terms are there.
    stages : range
        Numbers of the stages, as many as it takes to add all terms.

    Returns
    -------
    (value, int)
        The sums, a cycle for each stage later, and how wide each is.
    """
    for stage in stages:
        valid_next = Signal(name=f"valid_{stage}")
        m.d.sync += valid_next.eq(valid)
        groups = [terms[i:i + RADIX] for i in range(0, len(terms), RADIX)]
        wider = width + ceil_log2(len(groups[0]))
        sums = []
        for i, group in enumerate(groups):
            total = Signal(wider * columns, name=f"sums_{stage}_{i}", reset_less=True)
            with m.If(valid_next):
                m.d.sync += total.eq(Cat(
                    _tree([term.word_select(c, width).as_signed() for term in group], wider)
                    for c in range(columns)))
            sums.append(total)
        terms, width, valid = sums, wider, valid_next
    only, = terms
    return only, width


def _tree(terms, width):
    """Sum of signed terms in ``width`` bits, which hold it."""
    while len(terms) > 1:
        terms = [sum(terms[i + 1:i + 2], terms[i]) for i in range(0, len(terms), 2)]
    return (terms[0] | Const(0, signed(width)))[:width]
