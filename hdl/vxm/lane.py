"""One lane of an ALU: the arithmetic units of its features.

Timing::

    cycle     k               k + t                        k + depth
    control   CONTROL, A, B   .                            .
    unit      .               unit[t - 1] of what issued   unit[depth - 1]
    r         .               .                            R

Every unit is given only the depth that it is written in, at most that of the ALU.  A result that is
there earlier waits in registers that all units share: no more than one is under way for a cycle.
An ALU deeper than its deepest unit holds the operands for a cycle first: the way to them, from the
streams and through the crossbar, is long.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.arch.config import ALU_FEATURES
from hdl.emit import once
from hdl.fp.add import FpAdd
from hdl.fp.compare import FpCompare
from hdl.fp.convert import FpToInt, IntToFp
from hdl.fp.integer import IntAdd
from hdl.fp.mul import FpMul
from hdl.fp.special import FpSpecial
from hdl.planes import VALUE_BITS
from hdl.vxm.decode import UNIT_FEATURE, LaneControl, LaneUnit

__all__ = ["AluLane", "alu_lane"]

#: Module, class, greatest depth and further arguments of each unit.
_UNITS = {
    LaneUnit.INTEGER: ("int_add", IntAdd, 1, {}),
    LaneUnit.COMPARE: ("fp_compare", FpCompare, 2, {}),
    LaneUnit.TO_INT: ("fp_to_int", FpToInt, 4, {}),
    LaneUnit.FROM_INT: (f"int{VALUE_BITS}_to_fp", IntToFp, 4, {"width": VALUE_BITS}),
    LaneUnit.ADD: ("fp_add", FpAdd, 6, {}),
    LaneUnit.MUL: ("fp_mul", FpMul, 6, {}),
    LaneUnit.SPECIAL: ("fp_special", FpSpecial, 6, {}),
}


def alu_lane(platform, features, depth):
    """An `AluLane`, emitted once for all lanes of ALUs of equal features and depth."""
    features = tuple(feature for feature in ALU_FEATURES if feature in features)
    return once(platform, "_".join(["alu", *features, str(depth)]), AluLane, features=features,
                depth=depth)


class AluLane(wiring.Component):
    """One lane of one ALU, a new instruction every cycle.

    Parameters
    ----------
    features : tuple of str
        See `AluConfig`.
    depth : int
        Cycles from operands to result.

    Members
    -------
    control : In(LaneControl)
        With the operands.
    a, b : In(32)
        Operands; ``b`` counts for opcodes that have one.
    predicate : In(1)
        With the operands: what SELECT goes by.
    unit : In(ArrayLayout(one-hot LaneUnit, depth))
        Element ``t``: the unit of the instruction whose operands were there ``t + 1`` cycles ago.
    r : Out(32)
        Result, ``depth`` cycles after its operands; 0 if the unit is none that the ALU has.
    """

    def __init__(self, *, features, depth):
        self._features = features
        self._depth = depth
        super().__init__({
            "control": In(LaneControl), "a": In(VALUE_BITS), "b": In(VALUE_BITS),
            "predicate": In(1), "unit": In(data.ArrayLayout(len(LaneUnit), depth)),
            "r": Out(VALUE_BITS)})

    def elaborate(self, platform):
        m = Module()
        units = {unit: made for unit, made in _UNITS.items()
                 if UNIT_FEATURE.get(unit) in (None, *self._features)}
        held = int(self._depth > max(steps for _, _, steps, _ in units.values()))
        inputs = self._inputs(*self._operands(m, held))
        ready = {}      # what is there how many cycles after its operands
        for unit, (module, cls, steps, options) in units.items():
            depth = min(steps, self._depth)
            made = once(platform, f"{module}_{depth}", cls, depth=depth, **options)
            m.submodules[unit.name.lower()] = made
            m.d.comb += [getattr(made, port).eq(value) for port, value in inputs[unit].items()]
            cycles = held + depth
            selected = self.unit[cycles - 1][unit]
            ready.setdefault(cycles, []).append(made.r & selected.replicate(VALUE_BITS))
        result = Const(0, VALUE_BITS)
        for cycles in range(1, self._depth + 1):
            for term in ready.get(cycles, ()):
                result = result | term
            if cycles < self._depth:
                waiting = Signal(VALUE_BITS, name=f"r_{cycles + 1}", reset_less=True)
                m.d.sync += waiting.eq(result)
                result = waiting
        m.d.comb += self.r.eq(result)
        return m

    def _operands(self, m, held):
        """Control, operands and predicate, ``held`` cycles after their own."""
        taken = [self.control, self.a, self.b, self.predicate]
        if not held:
            return taken
        registers = [Signal.like(value, name=f"{name}_held", reset_less=True) for name, value in
                     zip(("control", "a", "b", "predicate"), taken, strict=True)]
        m.d.sync += [register.eq(value) for register, value in zip(registers, taken, strict=True)]
        return registers

    def _inputs(self, control, a, b, predicate):
        """By unit: what its ports get."""
        byte = Cat(a[:8], a[7].replicate(VALUE_BITS - 8))      # the lowest one, sign-extended
        inputs = {
            LaneUnit.COMPARE: {"op": control.compare, "a": a, "b": b},
            LaneUnit.TO_INT: {"format": control.to, "a": a},
            LaneUnit.FROM_INT: {"a": Mux(control.narrow, byte, a)},
            LaneUnit.ADD: {"subtract": control.subtract, "a": a, "b": b},
            LaneUnit.MUL: {"a": a, "b": b},
            LaneUnit.SPECIAL: {"op": control.special, "a": a},
            LaneUnit.INTEGER: {"subtract": Const(0, 1), "a": a, "b": Const(0, VALUE_BITS)},
        }
        if UNIT_FEATURE[LaneUnit.ADD] in self._features:
            inputs[LaneUnit.INTEGER] = {
                "subtract": control.subtract,
                "a": Mux(control.choose & ~predicate, b, a),
                "b": Mux(control.integer, b, 0)}
        return inputs
