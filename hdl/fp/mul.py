"""fp32 multiplication.

Timing (depth = 6)::

    cycle     k       k+1     k+2     k+3     k+4     k+5     k+6
    a, b      A,B
    step      count   shift   part    sum     shift   round   .
    r                                                         A*B

A subnormal operand is normalised before the product (of two subnormals only one: the product is
far below the smallest subnormal anyway), a subnormal result is shifted into place after it.
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.fp.format import BIAS, EXPONENT_MAX, FRACTION_BITS, Float32
from hdl.fp.pipeline import Pipeline, check_depth, leading_zeros, shift_left, shift_right

__all__ = ["FpMul"]

_MANTISSA_BITS = FRACTION_BITS + 1
_PART_BITS = _MANTISSA_BITS // 2
_SHIFT_MAX = 31                 # moves every bit of a product to sticky


class FpMul(wiring.Component):
    """``a * b`` of one lane, a new pair every cycle.

    Parameters
    ----------
    depth : int
        Cycles from operands to result: beyond `steps` a result waits, below them they merge.

    Members
    -------
    a, b : In(32)
        fp32 patterns, sampled every cycle.
    r : Out(32)
        fp32 result, ``depth`` cycles after its operands.
    """

    steps = 6       #: see `Pipeline`

    def __init__(self, *, depth=6):
        check_depth(depth)
        self._depth = depth
        super().__init__({"a": In(32), "b": In(32), "r": Out(32)})

    @property
    def depth(self):
        return self._depth

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, stages=self.steps, depth=self._depth)
        counted = self._count(m, pipe)
        shifted = self._shift_operand(m, pipe, *counted)
        parts = self._parts(m, pipe, *shifted)
        product = self._sum(m, pipe, *parts)
        placed = self._shift_product(m, pipe, *product)
        pipe.output(self.r, self._round(m, pipe, *placed))
        return m

    def _count(self, m, pipe):
        a = Float32(self.a)
        b = Float32(self.b)
        small_a = Signal()          # subnormal or zero
        small_b = Signal()
        infinite_a = Signal()       # infinity or NaN
        infinite_b = Signal()
        zero = Signal()
        m.d.comb += [
            small_a.eq(a.exponent == 0),
            small_b.eq(b.exponent == 0),
            infinite_a.eq(a.exponent == EXPONENT_MAX),
            infinite_b.eq(b.exponent == EXPONENT_MAX),
            zero.eq((small_a & (a.fraction == 0)) | (small_b & (b.fraction == 0))),
        ]
        # x is the operand that may need normalising
        x = Signal(_MANTISSA_BITS)
        m.d.comb += x.eq(Mux(small_b, Cat(b.fraction, Const(0, 1)), Cat(a.fraction, ~small_a)))
        beyond = Signal()
        m.d.comb += beyond.eq(infinite_a | infinite_b)
        return pipe.carry(
            1,
            x=x,
            y=Mux(small_b, Cat(a.fraction, ~small_a), Cat(b.fraction, Const(1, 1))),
            zeros=leading_zeros(m, "zeros", x),
            exponent=(a.exponent | small_a) + (b.exponent | small_b),
            zero=zero,
            beyond=beyond,
            nan=(beyond & zero) | (infinite_a & (a.fraction != 0))
                | (infinite_b & (b.fraction != 0)),
            sign=a.sign ^ b.sign,
        )

    def _shift_operand(self, m, pipe, x, y, zeros, exponent, zero, beyond, nan, sign):
        exponent_next = Signal(10)          # of bit 46 of the product; two's complement
        m.d.comb += exponent_next.eq(exponent - (zeros + BIAS))
        return pipe.carry(
            2,
            x=shift_left(m, "normal", x, zeros),
            y=y,
            exponent=exponent_next.as_signed(),
            zero=zero,
            beyond=beyond,
            nan=nan,
            sign=sign & ~nan,
        )

    def _parts(self, m, pipe, x, y, exponent, zero, beyond, nan, sign):
        normal = Signal()
        amount = Signal(10)
        m.d.comb += [
            normal.eq(exponent > 0),
            amount.eq(1 - exponent),
        ]
        return pipe.carry(
            3,
            low=x * y[:_PART_BITS],
            high=x * y[_PART_BITS:],
            amount=Mux(amount > _SHIFT_MAX, _SHIFT_MAX, amount)[:5],
            normal=normal,
            exponent=exponent[:9],
            zero=zero,
            beyond=beyond,
            nan=nan,
            sign=sign,
        )

    def _sum(self, m, pipe, low, high, amount, normal, exponent, zero, beyond, nan, sign):
        product = Signal(2 * _MANTISSA_BITS)
        m.d.comb += product.eq(low + Cat(Const(0, _PART_BITS), high))
        return pipe.carry(
            4, product=product, amount=amount, normal=normal, exponent=exponent, zero=zero,
            beyond=beyond, nan=nan, sign=sign)

    def _shift_product(self, m, pipe, product, amount, normal, exponent, zero, beyond, nan, sign):
        # placed: mantissa above one guard bit; everything below the guard bit is sticky
        amount_placed = Signal(5)
        m.d.comb += amount_placed.eq(Mux(normal, product[-1], amount))
        placed, lost = shift_right(m, "placed", product[FRACTION_BITS - 1:], amount_placed)
        field = Signal(9)
        m.d.comb += field.eq(exponent + product[-1])
        mantissa = placed[1:1 + _MANTISSA_BITS]
        sticky = lost | product[:FRACTION_BITS - 1].any()
        return pipe.carry(
            5,
            fraction=mantissa[:-1],
            field=Mux(normal & ~zero, field, mantissa[-1])[:8],
            up=placed[0] & (sticky | placed[1]),
            beyond=beyond | (normal & ~zero & (field >= EXPONENT_MAX)),
            nan=nan,
            sign=sign,
        )

    def _round(self, m, pipe, fraction, field, up, beyond, nan, sign):
        rounded = Signal(31)
        m.d.comb += rounded.eq(Cat(fraction, field) + up)
        special = Cat(Const(0, FRACTION_BITS - 1), nan, Const(EXPONENT_MAX, 8))
        return pipe.reg(6, "r", Cat(Mux(beyond, special, rounded), sign))
