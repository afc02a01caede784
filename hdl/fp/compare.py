"""fp32 maximum, minimum and compares.

Timing (depth = 6)::

    cycle     k       k+1     k+2     ..      k+6
    op, a, b  OP,A,B
    step      compare choose  .
    r                                         R

Maximum and minimum order -0 before +0 and return NaN if either operand is NaN; compares give 1.0
or 0.0, take -0 and +0 as equal and are false on NaN.
"""

from amaranth import Const, Module, Mux, Signal
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from hdl.fp.format import INFINITY, NAN, ONE
from hdl.fp.pipeline import Pipeline, check_depth

__all__ = ["CompareOp", "FpCompare"]


class CompareOp(enum.Enum, shape=3):
    """Operations of `FpCompare`."""

    MAX = 0     #: the larger one
    MIN = 1     #: the smaller one
    LT = 2      #: 1.0 if a < b
    LE = 3      #: 1.0 if a <= b
    EQ = 4      #: 1.0 if a = b


class FpCompare(wiring.Component):
    """Maximum, minimum or compare of one lane, a new pair every cycle.

    Parameters
    ----------
    depth : int
        Cycles from operands to result: beyond `steps` a result waits, below them they merge.

    Members
    -------
    op : In(CompareOp)
        With the operands; codes outside the enumeration give 0.0.
    a, b : In(32)
        fp32 patterns, sampled every cycle.
    r : Out(32)
        fp32 result, ``depth`` cycles after its operands.
    """

    steps = 2       #: see `Pipeline`

    def __init__(self, *, depth=6):
        check_depth(depth)
        self._depth = depth
        super().__init__({"op": In(CompareOp), "a": In(32), "b": In(32), "r": Out(32)})

    @property
    def depth(self):
        return self._depth

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, stages=self.steps, depth=self._depth)
        a, b = self.a, self.b
        a_key = Signal(32)          # orders like a signed integer, -0 before +0
        b_key = Signal(32)
        m.d.comb += [
            a_key.eq(a ^ a[-1].replicate(31)),
            b_key.eq(b ^ b[-1].replicate(31)),
        ]
        op, a, b, less, same, nan = pipe.carry(
            1,
            op=self.op,
            a=a,
            b=b,
            less=a_key.as_signed() < b_key.as_signed(),
            same=(a == b) | ~(a[:31] | b[:31]).any(),
            nan=(a[:31] > INFINITY) | (b[:31] > INFINITY),
        )
        result = Signal(32)
        with m.Switch(op):
            with m.Case(CompareOp.MAX):
                m.d.comb += result.eq(Mux(nan, NAN, Mux(less, b, a)))
            with m.Case(CompareOp.MIN):
                m.d.comb += result.eq(Mux(nan, NAN, Mux(less, a, b)))
            with m.Case(CompareOp.LT):
                m.d.comb += result.eq(Mux(less & ~same & ~nan, Const(ONE), 0))
            with m.Case(CompareOp.LE):
                m.d.comb += result.eq(Mux((less | same) & ~nan, Const(ONE), 0))
            with m.Case(CompareOp.EQ):
                m.d.comb += result.eq(Mux(same & ~nan, Const(ONE), 0))
            with m.Default():
                m.d.comb += result.eq(0)
        pipe.output(self.r, pipe.reg(2, "r", result))
        return m
