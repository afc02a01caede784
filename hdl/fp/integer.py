"""int32 addition and subtraction, wrapping.

Timing: ``r`` is ``depth`` cycles after ``a`` and ``b``.
"""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.fp.pipeline import Pipeline, add_carry, check_depth

__all__ = ["IntAdd"]


class IntAdd(wiring.Component):
    """``a + b`` or ``a - b`` of one lane modulo 2**32, a new pair every cycle.

    Parameters
    ----------
    depth : int
        Cycles from operands to result: beyond `steps` a result waits, below them they merge.

    Members
    -------
    a, b : In(32)
        Integers, sampled every cycle.
    subtract : In(1)
        With the operands: subtract ``b``.
    r : Out(32)
        Result, ``depth`` cycles after its operands.
    """

    steps = 1       #: see `Pipeline`

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
        total = add_carry(self.a, self.b ^ self.subtract.replicate(32), self.subtract)
        pipe.output(self.r, pipe.reg(1, "r", total))
        return m
