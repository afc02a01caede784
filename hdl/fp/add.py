"""fp32 addition and subtraction.

Timing (depth = 6)::

    cycle     k       k+1     k+2     k+3     k+4     k+5     k+6
    a, b      A,B
    step      order   align   add     count   shift   round   .
    r                                                         A+B
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.fp.format import EXPONENT_MAX, FRACTION_BITS, Float32
from hdl.fp.pipeline import Pipeline, add_carry, check_depth, leading_zeros, shift_left, shift_right

__all__ = ["FpAdd"]

_GUARD_BITS = 3                                 # guard, round and sticky bit
_SUM_BITS = 1 + 1 + FRACTION_BITS + _GUARD_BITS  # carry and hidden bit above the fraction
_ALIGN_MAX = 31                                 # moves every bit of the smaller one to sticky


class FpAdd(wiring.Component):
    """``a + b`` or ``a - b`` of one lane, a new pair every cycle.

    Parameters
    ----------
    depth : int
        Cycles from operands to result: beyond `steps` a result waits, below them they merge.

    Members
    -------
    a, b : In(32)
        fp32 patterns, sampled every cycle.
    subtract : In(1)
        With the operands: subtract ``b``.
    r : Out(32)
        fp32 result, ``depth`` cycles after its operands.
    """

    steps = 6       #: see `Pipeline`

    def __init__(self, *, depth=6):
        check_depth(depth)
        self._depth = depth
        super().__init__({"a": In(32), "b": In(32), "subtract": In(1), "r": Out(32)})

    @property
    def depth(self):
        return self._depth

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, stages=self.steps, depth=self._depth)
        ordered = self._order(m, pipe)
        aligned = self._align(m, pipe, *ordered)
        added = self._add(m, pipe, *aligned)
        counted = self._count(m, pipe, *added)
        shifted = self._shift(m, pipe, *counted)
        pipe.output(self.r, self._round(m, pipe, *shifted))
        return m

    def _order(self, m, pipe):
        a = Float32(self.a)
        b = Float32(self.b)
        exponent_a = Signal(8)      # subnormals have the exponent of the smallest normals
        exponent_b = Signal(8)
        swap = Signal()
        difference = Signal(8)
        m.d.comb += [
            exponent_a.eq(a.exponent | (a.exponent == 0)),
            exponent_b.eq(b.exponent | (b.exponent == 0)),
            swap.eq(self.a[:31] < self.b[:31]),
            difference.eq(Mux(swap, exponent_b - exponent_a, exponent_a - exponent_b)),
        ]
        sign_b = Signal()
        m.d.comb += sign_b.eq(b.sign ^ self.subtract)
        return pipe.carry(
            1,
            large=Mux(swap, self.b[:31], self.a[:31]),
            small=Mux(swap, self.a[:31], self.b[:31]),
            amount=Mux(difference > _ALIGN_MAX, _ALIGN_MAX, difference)[:5],
            sign=Mux(swap, sign_b, a.sign),
            opposite=a.sign ^ sign_b,
        )

    def _align(self, m, pipe, large, small, amount, sign, opposite):
        large = Float32(Cat(large, Const(0, 1)))
        small = Float32(Cat(small, Const(0, 1)))
        mantissa = Cat(Const(0, _GUARD_BITS), small.fraction, small.exponent != 0)
        aligned, lost = shift_right(m, "align", mantissa, amount)
        beyond = Signal()           # infinity or NaN: one that is NaN counts as the larger
        m.d.comb += beyond.eq(large.exponent == EXPONENT_MAX)
        return pipe.carry(
            2,
            large=Cat(large.fraction, large.exponent != 0),
            small=aligned | lost,
            exponent=large.exponent | (large.exponent == 0),
            beyond=beyond,
            nan=beyond & ((large.fraction != 0) | ((small.exponent == EXPONENT_MAX) & opposite)),
            sign=sign,
            opposite=opposite,
        )

    def _add(self, m, pipe, large, small, exponent, beyond, nan, sign, opposite):
        addend = Cat(small, Const(0, 1)) ^ opposite.replicate(_SUM_BITS)
        total = add_carry(Cat(Const(0, _GUARD_BITS), large, Const(0, 1)), addend, opposite)
        return pipe.carry(
            3,
            total=total,
            # normalisation stops where the exponent field is used up
            stop=Const(1 << (_SUM_BITS - 1), _SUM_BITS) >> exponent,
            exponent=exponent,
            beyond=beyond,
            nan=nan,
            sign=sign,
            opposite=opposite,
        )

    def _count(self, m, pipe, total, stop, exponent, beyond, nan, sign, opposite):
        amount = leading_zeros(m, "zeros", total | stop)
        return pipe.carry(
            4,
            total=total,
            amount=amount,
            exponent=exponent,
            beyond=beyond | (total[-1] & (exponent == EXPONENT_MAX - 1)),
            nan=nan,
            sign=sign & ~nan & ~(opposite & (total == 0)),
        )

    def _shift(self, m, pipe, total, amount, exponent, beyond, nan, sign):
        normal = shift_left(m, "normal", total, amount)
        field = Signal(8)
        m.d.comb += field.eq(exponent + 1 - amount)
        return pipe.carry(
            5,
            fraction=normal[_GUARD_BITS + 1:-1],
            field=field & normal[-1].replicate(8),
            up=normal[_GUARD_BITS] & (normal[:_GUARD_BITS].any() | normal[_GUARD_BITS + 1]),
            beyond=beyond,
            nan=nan,
            sign=sign,
        )

    def _round(self, m, pipe, fraction, field, up, beyond, nan, sign):
        rounded = Signal(31)
        m.d.comb += rounded.eq(Cat(fraction, field) + up)
        special = Cat(Const(0, FRACTION_BITS - 1), nan, Const(EXPONENT_MAX, 8))
        return pipe.reg(6, "r", Cat(Mux(beyond, special, rounded), sign))
