"""exp2, reciprocal and reciprocal square root: one table, one degree-2 polynomial.

Timing (depth = 6)::

    cycle     k       k+1     k+2     k+3     k+4     k+5     k+6
    op, a     OP,A
    step      unpack  reduce  table   t       u       pack    .
    r                                                         R

`hdl.arch.special` specifies every width and every corner; names are those of its steps.
"""

from amaranth import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import enum, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.arch import special
from hdl.arch.special import Segment
from hdl.fp.format import EXPONENT_MAX, FRACTION_BITS, Float32
from hdl.fp.pipeline import Pipeline, add_carry, check_depth

__all__ = ["FpSpecial", "SpecialOp"]

_A_BITS = 33
_BASE = signed(10)
_EXP2_LIMIT = 134               # exponent field of 128
_ROW_BITS = special.C0_BITS + special.C1_BITS + special.C2_BITS


class SpecialOp(enum.Enum, shape=2):
    """Functions of `FpSpecial`."""

    EXP2 = 0    #: 2**a
    RECIP = 1   #: 1 / a
    RSQRT = 2   #: 1 / sqrt(a)


class _Fixed(enum.Enum, shape=2):
    """Results that the operand alone decides."""

    NONE = 0
    ZERO = 1
    INFINITY = 2
    NAN = 3


def _rows():
    """Contents of the table, c0 lowest."""
    return [
        c.c0 | (c.c1 & (1 << special.C1_BITS) - 1) << special.C0_BITS
        | c.c2 << special.C0_BITS + special.C1_BITS
        for c in special.coefficients()]


class FpSpecial(wiring.Component):
    """One of three functions of one lane, a new operand every cycle.

    Parameters
    ----------
    depth : int
        Cycles from operand to result: beyond `steps` a result waits, below them they merge.

    Members
    -------
    op : In(SpecialOp)
        With the operand; the fourth code counts as RSQRT.
    a : In(32)
        fp32 pattern, sampled every cycle.
    r : Out(32)
        fp32 result, ``depth`` cycles after its operand.
    """

    steps = 6       #: see `Pipeline`

    def __init__(self, *, depth=6):
        check_depth(depth)
        self._depth = depth
        super().__init__({"op": In(SpecialOp), "a": In(32), "r": Out(32)})

    @property
    def depth(self):
        return self._depth

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, stages=self.steps, depth=self._depth)
        unpacked = self._unpack(m, pipe)
        reduced = self._reduce(m, pipe, *unpacked)
        row = self._look_up(m, pipe, *reduced)
        slope = self._curve(m, pipe, *row)
        value = self._slope(m, pipe, *slope)
        pipe.output(self.r, self._pack(m, pipe, *value))
        return m

    def _unpack(self, m, pipe):
        a = Float32(self.a)
        exp2 = Signal()
        recip = Signal()
        zero = Signal()
        infinite = Signal()         # or NaN
        nan = Signal()
        amount = Signal(8)
        fixed = Signal(_Fixed)
        sign = Signal()             # of the result
        m.d.comb += [
            exp2.eq(self.op == SpecialOp.EXP2),
            recip.eq(self.op == SpecialOp.RECIP),
            zero.eq(a.exponent == 0),
            infinite.eq(a.exponent == EXPONENT_MAX),
            nan.eq(infinite & (a.fraction != 0)),
            amount.eq(_EXP2_LIMIT - 1 - a.exponent),
            sign.eq(a.sign & ~nan & (recip | (zero & ~exp2))),
        ]
        with m.If(nan | (a.sign & ~zero & ~exp2 & ~recip)):
            m.d.comb += fixed.eq(_Fixed.NAN)
        with m.Elif(exp2):
            with m.If(a.exponent >= _EXP2_LIMIT):
                m.d.comb += fixed.eq(Mux(a.sign, _Fixed.ZERO, _Fixed.INFINITY))
        with m.Elif(zero):
            m.d.comb += fixed.eq(_Fixed.INFINITY)
        with m.Elif(infinite):
            m.d.comb += fixed.eq(_Fixed.ZERO)
        rsqrt_segment = Mux(a.exponent[0], Segment.RSQRT_EVEN, Segment.RSQRT_ODD)
        scaled = Cat(Const(0, _A_BITS - FRACTION_BITS - 1), a.fraction, Const(1, 1))
        return pipe.carry(
            1,
            magnitude=(scaled >> amount)[:_A_BITS],
            negative=a.sign,
            fraction=a.fraction,
            exp2=exp2,
            base=Mux(recip, 252 - a.exponent, 189 - ((a.exponent + 1) >> 1)),
            segment=Mux(exp2, Segment.EXP2, Mux(recip, Segment.RECIP, rsqrt_segment)),
            fixed=fixed,
            sign=sign,
        )

    def _reduce(self, m, pipe, magnitude, negative, fraction, exp2, base, segment, fixed, sign):
        # -(A / 2 + round) = ~(A / 2) + ~round
        half = Cat(magnitude[1:], Const(0, 1))
        x = Signal(_A_BITS)
        m.d.comb += x.eq(add_carry(Mux(negative, ~half, half), Const(0, _A_BITS),
                                 magnitude[0] ^ negative))
        g = Signal(special.G_BITS)
        m.d.comb += g.eq(Mux(exp2, x[:special.G_BITS],
                             Cat(Const(0, special.G_BITS - FRACTION_BITS), fraction)))
        # the address register is that of the block RAM: its slow output has a step for itself
        m.submodules.rom = rom = Memory(shape=_ROW_BITS, depth=special.ROWS, init=_rows())
        table = rom.read_port(domain=pipe.domain(2))
        m.d.comb += table.addr.eq(Cat(g[special.D_BITS:], segment))
        # the distance from the middle of the interval: the top bit of its field is inverted
        d = Cat(g[:special.D_BITS - 1], ~g[special.D_BITS - 1])
        d, n, exp2, base, fixed, sign = pipe.carry(
            2, d=d.as_signed(), n=x[special.G_BITS:].as_signed(), exp2=exp2, base=base,
            fixed=fixed, sign=sign)
        return table.data, d, n, exp2, base, fixed, sign

    def _look_up(self, m, pipe, row, d, n, exp2, base, fixed, sign):
        base_next = Signal(_BASE)
        m.d.comb += base_next.eq(Mux(exp2, n + 126, base))
        row, d, base, fixed, sign = pipe.carry(
            3, row=row, d=d, base=base_next, fixed=fixed, sign=sign)
        c1_end = special.C0_BITS + special.C1_BITS
        return (row[:special.C0_BITS], row[special.C0_BITS:c1_end].as_signed(), row[c1_end:],
                d, base, fixed, sign)

    def _curve(self, m, pipe, c0, c1, c2, d, base, fixed, sign):
        return pipe.carry(4, t=(c2 * d)[special.T_SHIFT:].as_signed(), c0=c0, c1=c1, d=d, base=base,
                          fixed=fixed, sign=sign)

    def _slope(self, m, pipe, t, c0, c1, d, base, fixed, sign):
        s = Signal(signed(special.S_BITS))
        m.d.comb += s.eq((c1 + t)[special.S_SHIFT:].as_signed())
        # p = 2**24 carries into the exponent: both exponents are ready for it
        exponent = Signal(_BASE)
        carried = Signal(_BASE)
        m.d.comb += [exponent.eq(base + 1), carried.eq(base + 2)]
        return pipe.carry(5, u=(s * d)[special.U_SHIFT:].as_signed(), c0=c0, exponent=exponent,
                          carried=carried, fixed=fixed, sign=sign)

    def _pack(self, m, pipe, u, c0, exponent, carried, fixed, sign):
        total = Signal(special.C0_BITS + 1)
        final = Signal(_BASE)
        m.d.comb += [
            total.eq(c0 + u),
            final.eq(Mux(total[-1], carried, exponent)),
        ]
        pattern = Signal(31)
        with m.If((fixed == _Fixed.ZERO) | ((fixed == _Fixed.NONE) & (final <= 0))):
            m.d.comb += pattern.eq(0)
        with m.Elif(fixed != _Fixed.NONE):      # no other result reaches infinity
            m.d.comb += pattern.eq(Cat(Const(0, FRACTION_BITS - 1), fixed == _Fixed.NAN,
                                       Const(EXPONENT_MAX, 8)))
        with m.Else():
            m.d.comb += pattern.eq(Cat(total[special.P_SHIFT:-2], final[:8]))
        return pipe.reg(6, "r", Cat(pattern, sign))
