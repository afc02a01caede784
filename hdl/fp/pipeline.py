"""What the pipelined units share: stage registers, shifters and a leading-zero count."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.utils import ceil_log2

__all__ = ["Pipeline", "add_carry", "check_depth", "leading_zeros", "shift_left", "shift_right"]

_MACHINE_BITS = 64      # wider intermediate values are slow in simulators


class Pipeline:
    """The stage registers of one unit.

    A unit is written as ``stages`` steps; step k ends in the registers named ``*_s<k>``.  A depth
    above ``stages`` adds registers at the output, a depth below drops registers, evenly spread
    (their names stay), so that a result always appears ``depth`` cycles after its operands.

    Parameters
    ----------
    m : Module
        The module under construction.
    stages : int
        Steps the unit is written in.
    depth : int
        Cycles from operands to result, at least 1.
    """

    def __init__(self, m: Module, *, stages: int, depth: int):
        self._m = m
        self._stages = stages
        self._depth = depth

    def domain(self, stage):
        """Clock domain that ends step ``stage`` (1 .. stages): ``comb`` if it has no register."""
        kept = min(self._depth, self._stages)
        registered = stage * kept // self._stages > (stage - 1) * kept // self._stages
        return "sync" if registered else "comb"

    def reg(self, stage, name, value):
        """Hold ``value`` at the end of step ``stage``; returns the register."""
        value = Value.cast(value)
        held = Signal(value.shape(), name=f"{name}_s{stage}", reset_less=True)
        self._m.d[self.domain(stage)] += held.eq(value)
        return held

    def carry(self, stage, **values):
        """Hold several values at the end of one step, each under its keyword; a list of them."""
        return [self.reg(stage, name, value) for name, value in values.items()]

    def output(self, port, value):
        """Drive ``port`` with the value of the last step, after any registers still missing."""
        for stage in range(self._stages + 1, self._depth + 1):
            held = Signal(len(port), name=f"r_s{stage}", reset_less=True)
            self._m.d.sync += held.eq(value)
            value = held
        self._m.d.comb += port.eq(value)


def check_depth(depth):
    """Refuse a pipeline depth that is not a positive integer."""
    if not isinstance(depth, int) or depth < 1:
        raise ValueError(f"Pipeline depth must be a positive integer, not {depth!r}")


def shift_left(m, name, value, amount):
    """``value << amount`` in the width of ``value``, as a signal called ``name``."""
    bits = len(value)
    steps = len(amount)
    while steps and bits + (1 << steps) - 1 > _MACHINE_BITS:
        steps -= 1
        coarse = Signal(bits, name=f"{name}_by{1 << steps}")
        m.d.comb += coarse.eq(Mux(amount[steps], Value.cast(value) << (1 << steps), value))
        value = coarse
    shifted = Signal(bits, name=name)
    m.d.comb += shifted.eq(Value.cast(value) << amount[:steps])
    return shifted


def shift_right(m, name, value, amount):
    """``value >> amount`` as a signal called ``name``, and whether a set bit fell out."""
    bits = len(value)
    kept = shift_left(m, f"{name}_kept", Const(-1, bits), amount)
    lost = Signal(name=f"{name}_lost")
    shifted = Signal(bits, name=name)
    m.d.comb += [
        shifted.eq(Value.cast(value) >> amount),
        lost.eq((value & ~kept).any()),
    ]
    return shifted, lost


def leading_zeros(m, name, value):
    """Number of zeros above the highest set bit, as a signal called ``name``.

    ``value`` must not be zero (of zero the result means nothing).
    """
    steps = ceil_log2(len(value))
    flags = []
    for step in reversed(range(steps)):
        half = 1 << step
        if len(value) < 2 * half:
            value = Cat(Const(0, 2 * half - len(value)), value)
        empty = Signal(name=f"{name}_empty{half}")
        rest = Signal(half, name=f"{name}_rest{half}")
        m.d.comb += [
            empty.eq(~value[half:].any()),
            rest.eq(Mux(empty, value[:half], value[half:])),
        ]
        flags.append(empty)
        value = rest
    count = Signal(steps, name=name)
    m.d.comb += count.eq(Cat(*reversed(flags)))
    return count


def add_carry(a, b, carry):
    """``a + b + carry`` of two unsigned values of one width as one adder, without carry out."""
    return (Cat(carry, a) + Cat(carry, b))[1:len(a) + 1]
