"""VXM: the ring of ALUs and the lane-reduction unit.

Values are int32 arrays (lanes,), whatever their bits mean.  An instruction issued in ``k`` takes
its operands in ``k``; its result is computed at once and exists in cycle ``k + t_d``.
"""

import numpy as np

from hdl.arch.errors import Fault
from hdl.arch.isa import ALU_ENTRIES
from hdl.arch.ops import ALU_FEATURE, Operand
from hdl.arch.timing import timing

from . import fp, fp_special
from .planes import from_planes, to_planes

__all__ = ["Alu", "Reduction", "vxm_units"]


def _on_floats(function):
    """``function`` of float32 arrays as one of int32 arrays of the same bits."""
    return lambda *operands: function(*(a.view(np.float32) for a in operands)).view(np.int32)


_UNARY = {
    "PASS": lambda a: a,
    "FROM_INT32": lambda a: fp.from_int32(a).view(np.int32),
    "FROM_INT8": lambda a: fp.from_int8(a).view(np.int32),
    "TO_INT32": _on_floats(fp.to_int32),
    "TO_INT8": _on_floats(fp.to_int8),
    "TO_LIMBS": _on_floats(fp.to_limbs),
    "EXP2": _on_floats(fp_special.exp2),
    "RECIP": _on_floats(fp_special.recip),
    "RSQRT": _on_floats(fp_special.rsqrt),
}
_BINARY = {
    "ADD": _on_floats(fp.add),
    "SUB": _on_floats(fp.sub),
    "MUL": _on_floats(fp.mul),
    "MAX": _on_floats(fp.max_),
    "MIN": _on_floats(fp.min_),
    "CMP_LT": _on_floats(fp.cmp_lt),
    "CMP_LE": _on_floats(fp.cmp_le),
    "CMP_EQ": _on_floats(fp.cmp_eq),
    "IADD": fp.add_int32,
    "ISUB": fp.sub_int32,
}
#: Of two neighbours, the lower lane first.
_PAIRS = {"SUM": fp.add, "MAX": fp.max_, "MIN": fp.min_}
_MAGNITUDE = 0x7FFFFFFF


class _Results:
    """Results of one unit: each exists in one cycle."""

    def __init__(self, delay):
        self._slots = [(-1, None)] * (delay + 1)

    def put(self, cycle, value):
        """Let ``value`` exist in ``cycle``, that of the issue and the unit's ``t_d``."""
        self._slots[cycle % len(self._slots)] = cycle, value

    def get(self, cycle):
        """The result of ``cycle``, or None."""
        exists, value = self._slots[cycle % len(self._slots)]
        return value if exists == cycle else None


class _Entry:
    """One entry of an accumulator file."""

    def __init__(self, value):
        self._values = [(-1, value)]        # (cycle from which it can be read, value), in order

    def put(self, cycle, ready, value):
        """In ``cycle``: let ``value`` be there from ``ready`` on."""
        self.get(cycle)
        self._values.append((ready, value))

    def get(self, cycle):
        """What is there in ``cycle``; cycles never decrease."""
        while len(self._values) > 1 and self._values[1][0] <= cycle:
            del self._values[0]
        return self._values[0][1]


class _Unit:
    """What ALUs and the reduction unit share: operands and results."""

    def __init__(self, context, number, results, delay):
        self._context = context
        self._number = number
        self._results = results         # of all units, the reduction unit last
        self._delay = delay
        self._zeros = np.zeros(context.cfg.lanes, np.int32)
        self._entries = None

    def _operand(self, queue, fields, name, width=4):
        """Function (cycle, step) that takes operand ``name``; ``width``: streams of it."""
        context, source, lanes = self._context, fields[f"{name}_source"], self._context.cfg.lanes
        kind = fields[name]
        if kind == Operand.STREAM.value:
            take = context.streams.reader(context.tile, "vxm", fields, width, f"{name}_source")
            if width == 4:
                return lambda cycle, _: from_planes(take(cycle))
            return lambda cycle, _: np.frombuffer(take(cycle)[0], np.int8).astype(np.int32)
        if kind == Operand.RESULT.value:
            return lambda cycle, _: self._result(cycle, source, queue)
        if kind == Operand.STEP.value:
            return lambda _, step: np.full(lanes, step, np.int32)
        if kind == Operand.ENTRY.value and self._entries:
            entry = self._entries[source % ALU_ENTRIES]
            return lambda cycle, _: entry.get(cycle)
        if kind == Operand.IMMEDIATE.value and self._entries:
            constant = np.full(lanes, fields["immediate"], np.uint32).view(np.int32)
            return lambda _0, _1: constant
        return lambda _0, _1: self._zeros

    def _result(self, cycle, source, queue):
        """Result of unit ``source`` in ``cycle``."""
        value = self._results[source].get(cycle) if source < len(self._results) else None
        if value is None:
            self._context.fault(Fault.STREAM_INVALID, cycle, queue)
            return self._zeros
        return value

    def _target(self, fields, width=4):
        """Function (cycle of the issue, result) that lets a result exist."""
        exist, delay = self._results[self._number].put, self._delay
        if not fields["east_en"] and not fields["west_en"]:
            return lambda cycle, value: exist(cycle + delay, value)
        write = self._context.streams.writer(self._context.tile, "vxm", fields, width)

        def put(cycle, value):
            exist(cycle + delay, value)
            write(cycle + delay, to_planes(value))
        return put


class Alu(_Unit):
    """One ALU of one tile.

    Parameters
    ----------
    context : Context
        The machine around it.
    number : int
        Place in the ring.
    results : list of _Results
        Those of all ALUs and of the reduction unit.
    garbage : numpy.random.Generator or None
        What fills the accumulator file; None: zeros.
    """

    def __init__(self, context, number, results, garbage):
        super().__init__(context, number, results, context.cfg.alus[number].depth)
        size = 4 * context.cfg.lanes
        self._entries = [_Entry(np.frombuffer(bytes(size) if garbage is None
                                              else garbage.bytes(size), np.int32))
                         for _ in range(ALU_ENTRIES)]

    def bind(self, queue, op, fields, table):
        """Function (cycle, 0, 0, step) that does what an issue of the word does."""
        put = self._target(fields, {"TO_INT8": 1, "TO_LIMBS": 2}.get(op, 4))
        compute = self._computation(queue, op, fields)
        if fields["keep"]:
            entry, delay, write = self._entries[fields["entry"]], self._delay, put

            def put(cycle, value):
                entry.put(cycle, cycle + delay, value)
                write(cycle, value)

        if ALU_FEATURE.get(op) in (None, *self._context.cfg.alus[self._number].features):
            return lambda cycle, _0, _1, step: put(cycle, compute(cycle, step))

        def lacking(cycle, _0, _1, step):
            compute(cycle, step)            # the operands are taken all the same
            self._context.fault(Fault.ICU_WORD, cycle, queue)
            put(cycle, self._zeros)
        return lacking

    def _computation(self, queue, op, fields):
        """Function (cycle, step) that gives the result."""
        take_a = self._operand(queue, fields, "a", 1 if op == "FROM_INT8" else 4)
        if op in _UNARY:
            function = _UNARY[op]
            return lambda cycle, step: function(take_a(cycle, step))
        take_b = self._operand(queue, fields, "b")
        if op != "SELECT":
            function = _BINARY[op]
            return lambda cycle, step: function(take_a(cycle, step), take_b(cycle, step))
        before = (self._number - 1) % len(self._context.cfg.alus)

        def select(cycle, step):
            holds = self._result(cycle, before, queue) & _MAGNITUDE != 0
            return np.where(holds, take_a(cycle, step), take_b(cycle, step))
        return select


class Reduction(_Unit):
    """The lane-reduction unit of one tile.

    Parameters
    ----------
    context : Context
        The machine around it.
    results : list of _Results
        Those of all ALUs and of the reduction unit.
    """

    def __init__(self, context, results):
        super().__init__(context, len(results) - 1, results,
                         timing(context.cfg)["reduce", "SUM"].t_d)

    def bind(self, queue, op, fields, table):
        """Function (cycle, 0, 0, step) that does what an issue of the word does."""
        take, put, pair = self._operand(queue, fields, "a"), self._target(fields), _PAIRS[op]
        lanes = self._context.cfg.lanes

        def reduce(cycle, _0, _1, step):
            values = take(cycle, step).view(np.float32)
            while len(values) > 1:
                rest = values[len(values) & ~1:]
                values = np.concatenate([pair(values[:-1:2], values[1::2]), rest])
            put(cycle, np.full(lanes, values.view(np.int32)[0]))
        return reduce


def vxm_units(context, garbage):
    """(list of `Alu`, `Reduction`) of one tile; parameters as theirs."""
    cfg = context.cfg
    results = [*(_Results(alu.depth) for alu in cfg.alus),
               _Results(timing(cfg)["reduce", "SUM"].t_d)]
    return [Alu(context, number, results, garbage) for number in range(len(cfg.alus))], \
        Reduction(context, results)
