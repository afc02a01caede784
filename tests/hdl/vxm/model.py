"""What the VXM does, as `docs/architecture.md` says it, by the list of its issues.

No pipeline is modelled: results are kept by unit and cycle.  Values are uint32 arrays by lane; None
is one that is undefined, as what an entry holds that nothing was written to.
"""

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

from hdl.arch.errors import Fault
from hdl.arch.ops import ALU_FEATURE
from hdl.arch.queues import Queue
from hdl.arch.timing import of
from sim.emulator import fp, fp_special

__all__ = ["BINARY", "ENTRY", "IMMEDIATE", "Issue", "RESULT", "STEP", "STREAM", "UNARY", "compute",
           "delay", "reduced", "results"]

STREAM, RESULT, ENTRY, IMMEDIATE, STEP = range(5)

_ON_FP = {"ADD": fp.add, "SUB": fp.sub, "MUL": fp.mul, "MAX": fp.max_, "MIN": fp.min_,
          "CMP_LT": fp.cmp_lt, "CMP_LE": fp.cmp_le, "CMP_EQ": fp.cmp_eq, "TO_INT32": fp.to_int32,
          "TO_INT8": fp.to_int8, "TO_LIMBS": fp.to_limbs, "EXP2": fp_special.exp2,
          "RECIP": fp_special.recip, "RSQRT": fp_special.rsqrt}
_ON_INT = {"PASS": lambda a: a, "IADD": fp.add_int32, "ISUB": fp.sub_int32,
           "FROM_INT32": fp.from_int32, "FROM_INT8": fp.from_int8}
BINARY = ("ADD", "SUB", "MUL", "MAX", "MIN", "CMP_LT", "CMP_LE", "CMP_EQ", "SELECT", "IADD", "ISUB")
UNARY = ("PASS", "FROM_INT32", "FROM_INT8", "TO_INT32", "TO_INT8", "TO_LIMBS", "EXP2", "RECIP",
         "RSQRT")
_PAIR = {"SUM": fp.add, "MAX": fp.max_, "MIN": fp.min_}


@dataclass
class Issue:
    """One issue of ALU ``unit`` or, with the number behind the last, of the reduction unit.

    ``quads``: what the streams carry for its operands ``a`` and ``b``: uint32 by lane.
    """
    cycle: int
    unit: int
    op: str
    fields: dict
    quads: dict = field(default_factory=dict)
    step: int = 0


def delay(cfg, unit, op):
    """Cycles from an issue of ``op`` on ``unit`` to its result, from the timing table."""
    kind = "reduce" if unit == len(cfg.alus) else "alu"
    return of(cfg, Queue(kind, kind, "vxm", unit), op).t_d


def compute(op, *operands):
    """Result of an opcode but SELECT, as patterns."""
    if op in _ON_FP:
        return _ON_FP[op](*(x.view(np.float32) for x in operands)).view(np.uint32)
    return _ON_INT[op](*(x.view(np.int32) for x in operands)).view(np.uint32)


def reduced(op, values):
    """Neighbours in pairs until one is left; the last of an odd number waits."""
    values = list(values.view(np.float32))
    while len(values) > 1:
        paired = [_PAIR[op](np.float32(a), np.float32(b))
                  for a, b in zip(values[::2], values[1::2], strict=False)]
        values = paired + values[len(values) & ~1:]
    return np.asarray(values[0], np.float32).view(np.uint32)


def results(cfg, issues):
    """Everything that is seen of ``issues``, in any order.

    Returns
    -------
    namespace of
        ``writes``: {(cycle, unit): (east, west, streams, patterns or None)}, ``taps``: {(cycle,
        unit, operand): (stream, west, last, streams)}, ``faults``: set of (cycle, Fault).
    """
    seen = SimpleNamespace(writes={}, taps={}, faults=set())
    exist = {}      # (unit, cycle) -> patterns
    kept = {}       # (unit, entry) -> [(cycle, patterns)]

    def result(issue, unit):
        if (unit, issue.cycle) not in exist:
            seen.faults.add((issue.cycle, Fault.STREAM_INVALID))
        return exist.get((unit, issue.cycle), np.zeros(cfg.lanes, np.uint32))

    def operand(issue, name):
        kind, source = issue.fields[name], issue.fields[f"{name}_source"]
        alu = issue.unit < len(cfg.alus)
        if kind == STREAM:
            if source >= cfg.streams:
                seen.faults.add((issue.cycle, Fault.STREAM_INVALID))
                return np.zeros(cfg.lanes, np.uint32)
            seen.taps[issue.cycle, issue.unit, name] = (
                source, issue.fields[f"{name}_source_west"], issue.fields[f"{name}_source_last"],
                1 if issue.op == "FROM_INT8" else 4)
            return issue.quads[name]
        if kind == RESULT:
            return result(issue, source)
        if kind == ENTRY and alu:
            values = [value for cycle, value in kept.get((issue.unit, source % 4), ())
                      if cycle <= issue.cycle]
            return values[-1] if values else None
        constant = {IMMEDIATE: issue.fields.get("immediate", 0), STEP: issue.step}.get(kind, 0)
        return np.full(cfg.lanes, constant, np.uint32)

    for issue in sorted(issues, key=lambda issue: issue.cycle):
        a = operand(issue, "a")
        if issue.unit == len(cfg.alus):
            value = None if a is None else np.full(cfg.lanes, reduced(issue.op, a))
        elif issue.op == "SELECT":
            b = operand(issue, "b")
            before = result(issue, (issue.unit - 1) % len(cfg.alus))
            value = None
            if a is not None and b is not None and before is not None:
                value = np.where(before << 1 != 0, a, b)
        else:
            operands = [a, operand(issue, "b")] if issue.op in BINARY else [a]
            undefined = any(x is None for x in operands)
            value = None if undefined else compute(issue.op, *operands)
        if issue.unit < len(cfg.alus) and \
                ALU_FEATURE.get(issue.op) not in (None, *cfg.alus[issue.unit].features):
            seen.faults.add((issue.cycle, Fault.ICU_WORD))
            value = np.zeros(cfg.lanes, np.uint32)
        end = issue.cycle + delay(cfg, issue.unit, issue.op)
        exist[issue.unit, end] = value
        if issue.fields.get("keep"):
            kept.setdefault((issue.unit, issue.fields["entry"]), []).append((end, value))
        targets = [issue.fields["target"] if issue.fields[f"{d}_en"] else None
                   for d in ("east", "west")]
        if targets != [None, None]:
            count = {"TO_INT8": 1, "TO_LIMBS": 2}.get(issue.op, 4)
            seen.writes[end, issue.unit] = (*targets, count, value)
    return seen
