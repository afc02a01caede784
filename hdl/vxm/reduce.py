"""The tree of the lane reduction: neighbours in pairs, pairs of pairs, and so on.

Timing of one level of ``depth`` cycles; levels follow each other without a gap::

    cycle     k            k + depth
    op        MAX or MIN   .
    a, b      A, B         .
    total     .            whether it was a SUM
    r         .            R
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.arch.ops import ReduceOp
from hdl.emit import once
from hdl.fp.add import FpAdd
from hdl.fp.compare import CompareOp, FpCompare
from hdl.planes import VALUE_BITS

__all__ = ["ReduceNode", "levels", "reduce_controls", "reduce_op_layout", "reduce_tree"]

#: What the nodes are told of an instruction.
reduce_op_layout = data.StructLayout({"total": 1, "compare": CompareOp})


def levels(count):
    """Levels of the tree over ``count`` values."""
    return (count - 1).bit_length()


class ReduceNode(wiring.Component):
    """The sum or the larger or the smaller of two values, a new pair every cycle.

    Parameters
    ----------
    depth : int
        Cycles from operands to result.

    Members
    -------
    compare : In(CompareOp)
        MAX or MIN, with the operands.
    total : In(1)
        With the result: it is a sum.
    a, b : In(32)
        fp32 patterns; ``a`` is that of the lower lanes.
    r : Out(32)
        Result, ``depth`` cycles after its operands.
    """

    def __init__(self, *, depth):
        self._depth = depth
        super().__init__({"compare": In(CompareOp), "total": In(1), "a": In(VALUE_BITS),
                          "b": In(VALUE_BITS), "r": Out(VALUE_BITS)})

    def elaborate(self, platform):
        m = Module()
        depth, op, a, b = self._depth, self.compare, self.a, self.b
        if depth > FpAdd.steps:     # the way from the streams to the operands is long
            held = [Signal.like(value, name=f"{name}_held", reset_less=True)
                    for name, value in (("compare", op), ("a", a), ("b", b))]
            m.d.sync += [register.eq(value)
                         for register, value in zip(held, (op, a, b), strict=True)]
            depth, (op, a, b) = depth - 1, held
        m.submodules.add = add = once(platform, f"fp_add_{depth}", FpAdd, depth=depth)
        m.submodules.compare_ab = compare = once(platform, f"fp_compare_{depth}", FpCompare,
                                                 depth=depth)
        m.d.comb += [
            add.a.eq(a),
            add.b.eq(b),
            compare.op.eq(op),
            compare.a.eq(a),
            compare.b.eq(b),
            self.r.eq(Mux(self.total, add.r, compare.r)),
        ]
        return m


def reduce_controls(m, op, count, depth):
    """What the nodes of every level are told, in its first cycle and in that behind its last.

    Parameters
    ----------
    op : value
        Opcode of the reduction unit in its issue cycle.
    count : int
        Levels of the whole tree.

    Returns
    -------
    list of View of reduce_op_layout
        Elements 0 .. count: of the instruction that issued that many times ``depth`` cycles ago.
    """
    control = Signal(reduce_op_layout, name="reduce_op")
    m.d.comb += [control.total.eq(op == ReduceOp.SUM),
                 control.compare.eq(Mux(op == ReduceOp.MIN, CompareOp.MIN, CompareOp.MAX))]
    found = [control]
    for cycle in range(1, count * depth + 1):
        held = Signal(reduce_op_layout, name=f"reduce_op_{cycle}", reset_less=True)
        m.d.sync += held.eq(control)
        control = held
        if cycle % depth == 0:
            found.append(held)
    return found


def reduce_tree(m, platform, values, controls, depth):
    """The reduction of ``values`` to one, ``depth`` cycles a level, whatever their number.

    Parameters
    ----------
    values : list of 32-bit values
        By lane, or by group of lanes.
    controls : list of View of reduce_op_layout
        Element ``l``: for level ``l`` as `reduce_controls` gives them; the last is that behind the
        last level.

    Returns
    -------
    value
    """
    values = list(values)
    for level, (control, later) in enumerate(zip(controls, controls[1:], strict=False)):
        results = []
        for pair in range(0, len(values) - 1, 2):
            node = once(platform, f"reduce_{depth}", ReduceNode, depth=depth)
            m.submodules[f"level_{level}_node_{pair // 2}"] = node
            m.d.comb += [node.compare.eq(control.compare), node.total.eq(later.total),
                         node.a.eq(values[pair]), node.b.eq(values[pair + 1])]
            results.append(node.r)
        if len(values) % 2:
            passed = values[-1]
            for cycle in range(1, depth + 1):
                held = Signal(VALUE_BITS, name=f"level_{level}_passed_{cycle}", reset_less=True)
                m.d.sync += held.eq(passed)
                passed = held
            results.append(passed)
        values = results
    value, = values
    return value
