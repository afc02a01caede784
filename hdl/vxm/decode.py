"""What the opcodes of an ALU mean for the units of a lane, and of what layout that is."""

from typing import NamedTuple

from amaranth.hdl import Signal, unsigned
from amaranth.lib import data, enum
from amaranth.utils import bits_for

from hdl.arch.isa import ALU_ENTRIES, COUNTER_BITS
from hdl.arch.ops import ALU_FEATURE, TWO_OPERANDS, AluOp
from hdl.fp.compare import CompareOp
from hdl.fp.convert import IntFormat
from hdl.fp.special import SpecialOp

__all__ = ["Decoded", "LaneControl", "LaneUnit", "ROWS", "Row", "Select", "UNIT_FEATURE", "decode",
           "issue_layout", "result_layout", "way_layout"]


class LaneUnit(enum.IntEnum):
    """What computes an opcode, in a lane; number of its bit in a one-hot vector."""
    INTEGER = 0     #: also what passes an operand on
    COMPARE = 1
    TO_INT = 2
    FROM_INT = 3
    ADD = 4
    MUL = 5
    SPECIAL = 6


class LaneControl(data.Struct):
    """What the units of a lane are told about an instruction, in its issue cycle."""
    subtract: 1         #: ADD, INTEGER: a - b
    integer: 1          #: INTEGER: add b, otherwise nothing
    choose: 1           #: INTEGER: b instead of a where the predicate is 0
    compare: CompareOp
    to: IntFormat
    narrow: 1           #: FROM_INT: the low 8 bits
    special: SpecialOp


class Row(NamedTuple):
    """One opcode.

    ``unit`` computes it, ``control``: fields of `LaneControl`, ``operand_log2``, ``result_log2``:
    of the number of streams of an operand, of the result.
    """
    unit: LaneUnit
    control: dict = {}
    operand_log2: int = 2
    result_log2: int = 2


class Decoded(data.Struct):
    """A `Row` in hardware: ``unit`` is one-hot, or 0 if the ALU lacks the opcode's feature, which
    ``lacking`` says; ``binary``: it has an operand b."""
    unit: len(LaneUnit)
    lacking: 1
    binary: 1
    operand_log2: 2
    result_log2: 2
    control: LaneControl


ROWS = {
    AluOp.PASS: Row(LaneUnit.INTEGER),
    AluOp.ADD: Row(LaneUnit.ADD),
    AluOp.SUB: Row(LaneUnit.ADD, {"subtract": 1}),
    AluOp.MUL: Row(LaneUnit.MUL),
    AluOp.MAX: Row(LaneUnit.COMPARE, {"compare": CompareOp.MAX}),
    AluOp.MIN: Row(LaneUnit.COMPARE, {"compare": CompareOp.MIN}),
    AluOp.CMP_LT: Row(LaneUnit.COMPARE, {"compare": CompareOp.LT}),
    AluOp.CMP_LE: Row(LaneUnit.COMPARE, {"compare": CompareOp.LE}),
    AluOp.CMP_EQ: Row(LaneUnit.COMPARE, {"compare": CompareOp.EQ}),
    AluOp.SELECT: Row(LaneUnit.INTEGER, {"choose": 1}),
    AluOp.IADD: Row(LaneUnit.INTEGER, {"integer": 1}),
    AluOp.ISUB: Row(LaneUnit.INTEGER, {"integer": 1, "subtract": 1}),
    AluOp.FROM_INT32: Row(LaneUnit.FROM_INT),
    AluOp.FROM_INT8: Row(LaneUnit.FROM_INT, {"narrow": 1}, operand_log2=0),
    AluOp.TO_INT32: Row(LaneUnit.TO_INT, {"to": IntFormat.INT32}),
    AluOp.TO_INT8: Row(LaneUnit.TO_INT, {"to": IntFormat.INT8}, result_log2=0),
    AluOp.TO_LIMBS: Row(LaneUnit.TO_INT, {"to": IntFormat.LIMBS}, result_log2=1),
    AluOp.EXP2: Row(LaneUnit.SPECIAL, {"special": SpecialOp.EXP2}),
    AluOp.RECIP: Row(LaneUnit.SPECIAL, {"special": SpecialOp.RECIP}),
    AluOp.RSQRT: Row(LaneUnit.SPECIAL, {"special": SpecialOp.RSQRT}),
}

#: Feature (see `AluConfig`) that an ALU has a unit for; INTEGER is in all, to pass operands on.
UNIT_FEATURE = {row.unit: ALU_FEATURE[op.name] for op, row in ROWS.items()
                if row.unit != LaneUnit.INTEGER}


class Select(enum.IntEnum):
    """Sources of an operand; from RESULT on the results of the ALUs, then of the reduction unit."""
    NONE = 0        #: zeros
    STREAM = 1
    ENTRY = 2
    IMMEDIATE = 3
    STEP = 4
    RESULT = 5


def issue_layout(results):
    """What an ALU, on all lanes, is told in the issue cycle; ``results``: those in the crossbar."""
    select = unsigned(bits_for(Select.RESULT + results - 1))
    entry = unsigned(bits_for(ALU_ENTRIES - 1))
    return data.StructLayout({
        "a": select, "a_entry": entry, "b": select, "b_entry": entry, "immediate": unsigned(32),
        "step": unsigned(COUNTER_BITS), "lane": LaneControl})


def result_layout(depth):
    """What an ALU of ``depth`` is told later: ``unit[t]``, the one-hot `LaneUnit` of what issued
    ``t + 1`` cycles ago, and whether what issued ``depth`` cycles ago goes to an entry."""
    return data.StructLayout({
        "unit": data.ArrayLayout(len(LaneUnit), depth), "keep": unsigned(1),
        "entry": unsigned(bits_for(ALU_ENTRIES - 1))})


def way_layout(cfg):
    """What an instruction of the VXM takes along from its issue to its result."""
    return data.StructLayout({
        "valid": unsigned(1), "east_en": unsigned(1), "west_en": unsigned(1),
        "target": unsigned(bits_for(cfg.streams - 1)), "result_log2": unsigned(2),
        "unit": unsigned(len(LaneUnit)), "keep": unsigned(1),
        "entry": unsigned(bits_for(ALU_ENTRIES - 1))})


def decode(m, op, features, name):
    """`Decoded` of opcode ``op`` of an ALU with ``features``, as a signal called ``name``."""
    decoded = Signal(Decoded, name=name)
    with m.Switch(op):
        for member, row in ROWS.items():
            lacking = ALU_FEATURE.get(member.name) not in (None, *features)
            with m.Case(member):
                m.d.comb += decoded.eq(Decoded.const({
                    **row._asdict(), "unit": 0 if lacking else 1 << row.unit, "lacking": lacking,
                    "binary": member.name in TWO_OPERANDS}))
        with m.Default():
            m.d.comb += decoded.lacking.eq(1)
    return decoded
