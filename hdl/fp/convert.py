"""Conversions between fp32 and integers.

Timing (depth = 6)::

    cycle     k       k+1     k+2     k+3     k+4     ..  k+6
    a         A
    fp to int unpack  shift   round   clip    .
    int to fp sign    count   shift   round   .
    r                                                     R

To an integer: nearest even, saturating, NaN gives 0.  To fp32: rounded once, to nearest even.
"""

from amaranth import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from hdl.fp.format import BIAS, EXPONENT_MAX, FRACTION_BITS, Float32
from hdl.fp.pipeline import Pipeline, add_carry, check_depth, leading_zeros, shift_left, shift_right

__all__ = ["LIMBS_MAX", "FpToInt", "IntFormat", "IntToFp"]

LIMBS_MAX = 127 * 256 + 127     #: largest magnitude of two signed 8-bit limbs of equal range

_INT_BITS = 32
_SHIFT_MAX = 33                 # moves every bit below the rounding bit


class IntFormat(enum.Enum, shape=2):
    """Integer formats that `FpToInt` produces."""

    INT32 = 0   #: saturated to -2**31 .. 2**31 - 1
    INT8 = 1    #: saturated to -128 .. 127, sign-extended to 32 bits
    LIMBS = 2   #: clipped at +-32639 = high * 256 + low: low in bits 0-7, high in 8-15, rest 0


class FpToInt(wiring.Component):
    """fp32 to an integer of one lane, a new value every cycle.

    Parameters
    ----------
    depth : int
        Cycles from operand to result: beyond `steps` a result waits, below them they merge.

    Members
    -------
    format : In(IntFormat)
        With the operand; the fourth code counts as INT32.
    a : In(32)
        fp32 pattern, sampled every cycle.
    r : Out(32)
        Result, ``depth`` cycles after its operand.
    """

    steps = 4       #: see `Pipeline`

    def __init__(self, *, depth=6):
        check_depth(depth)
        self._depth = depth
        super().__init__({"format": In(IntFormat), "a": In(32), "r": Out(32)})

    @property
    def depth(self):
        return self._depth

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, stages=self.steps, depth=self._depth)
        unpacked = self._unpack(m, pipe)
        shifted = self._shift(m, pipe, *unpacked)
        rounded = self._round(m, pipe, *shifted)
        pipe.output(self.r, self._clip(m, pipe, *rounded))
        return m

    def _unpack(self, m, pipe):
        a = Float32(self.a)
        top = BIAS + _INT_BITS - 1          # exponent field of 2**31
        amount = Signal(8)
        m.d.comb += amount.eq(top - a.exponent)
        return pipe.carry(
            1,
            format=self.format,
            mantissa=Cat(a.fraction, a.exponent != 0),
            amount=Mux(amount > _SHIFT_MAX, _SHIFT_MAX, amount)[:6],
            beyond=a.exponent >= top,
            nan=(a.exponent == EXPONENT_MAX) & (a.fraction != 0),
            sign=a.sign,
        )

    def _shift(self, m, pipe, fmt, mantissa, amount, beyond, nan, sign):
        # bit 0 is the rounding bit
        aligned = Cat(Const(0, _INT_BITS - FRACTION_BITS), mantissa)
        shifted, lost = shift_right(m, "shifted", aligned, amount)
        return pipe.carry(
            2,
            format=fmt,
            magnitude=shifted[1:],
            up=shifted[0] & (lost | shifted[1]),
            beyond=beyond,
            nan=nan,
            sign=sign,
        )

    def _round(self, m, pipe, fmt, magnitude, up, beyond, nan, sign):
        # -(magnitude + up) = ~magnitude + ~up
        value = add_carry(magnitude ^ sign.replicate(_INT_BITS), Const(0, _INT_BITS), up ^ sign)
        return pipe.carry(3, format=fmt, value=value, beyond=beyond, nan=nan, sign=sign)

    def _clip(self, m, pipe, fmt, value, beyond, nan, sign):
        clip8 = Signal()
        clip16 = Signal()
        limbs = Signal(16)
        limbs_max = Mux(sign, Const(-LIMBS_MAX, signed(16)), LIMBS_MAX)
        m.d.comb += [
            clip8.eq(beyond | (value.as_signed() > 127) | (value.as_signed() < -128)),
            clip16.eq(beyond | (value.as_signed() > LIMBS_MAX) | (value.as_signed() < -LIMBS_MAX)),
            limbs.eq(Mux(clip16, limbs_max, value)),
        ]
        result = Signal(_INT_BITS)
        with m.Switch(fmt):
            with m.Case(IntFormat.INT8):
                m.d.comb += result.eq(Mux(clip8, Mux(sign, Const(-128, 32), 127), value))
            with m.Case(IntFormat.LIMBS):
                m.d.comb += result.eq(Cat(limbs[:8], (limbs[8:] + limbs[7])[:8]))
            with m.Default():
                m.d.comb += result.eq(Mux(beyond, Mux(sign, 1 << 31, 2**31 - 1), value))
        return pipe.reg(4, "r", Mux(nan, 0, result))


class IntToFp(wiring.Component):
    """Signed integer to fp32 of one lane, a new value every cycle.

    Parameters
    ----------
    width : int
        Bits of the integer, 2 to 127.
    depth : int
        Cycles from operand to result: beyond `steps` a result waits, below them they merge.

    Members
    -------
    a : In(signed(width))
        Integer, sampled every cycle.
    r : Out(32)
        fp32 result, rounded once, ``depth`` cycles after its operand.
    """

    steps = 4       #: see `Pipeline`

    def __init__(self, *, width=32, depth=6):
        check_depth(depth)
        if not isinstance(width, int) or not 2 <= width <= BIAS:
            raise ValueError(f"Integer width must be 2 to {BIAS} bits, not {width!r}")
        self._width = width
        self._depth = depth
        super().__init__({"a": In(signed(width)), "r": Out(32)})

    @property
    def width(self):
        return self._width

    @property
    def depth(self):
        return self._depth

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, stages=self.steps, depth=self._depth)
        bits = max(self._width, FRACTION_BITS + 3)      # room for a rounding and a sticky bit
        sign, magnitude = self._sign(m, pipe, bits)

        zeros = leading_zeros(m, "zeros", magnitude)
        sign, magnitude, zeros = pipe.carry(2, sign=sign, magnitude=magnitude, zeros=zeros)

        normal = shift_left(m, "normal", magnitude, zeros)
        exponent = Signal(8)
        m.d.comb += exponent.eq(BIAS + bits - 1 - zeros)
        below = normal[:-1 - FRACTION_BITS]
        sign, fraction, exponent, up = pipe.carry(
            3,
            sign=sign,
            fraction=normal[-1 - FRACTION_BITS:-1],
            exponent=exponent & normal[-1].replicate(8),
            up=below[-1] & (below[:-1].any() | normal[-1 - FRACTION_BITS]),
        )

        rounded = Signal(31)
        m.d.comb += rounded.eq(Cat(fraction, exponent) + up)
        pipe.output(self.r, pipe.reg(4, "r", Cat(rounded, sign)))
        return m

    def _sign(self, m, pipe, bits):
        negative = self.a[-1]
        extended = Signal(bits)
        m.d.comb += extended.eq(self.a)     # sign-extended
        magnitude = Mux(negative, -extended, extended)[:bits]
        return pipe.carry(1, sign=negative, magnitude=magnitude)
