"""Opcodes of every kind of queue, and what each means in one line.

Control opcodes (0 to 3, and SYNC) are the same in every queue; a unit's own begin at 4.  SYNC and
POST exist in tiles with `TileConfig.sync` only.
"""

from amaranth.hdl import unsigned
from amaranth.lib import enum

__all__ = ["ALU_FEATURE", "CONTROL", "MEANING", "OP_BITS", "SYNC_OPS", "TWO_OPERANDS", "AccMode",
           "AluOp", "MemReadOp", "MemWriteOp", "MxmActOp", "MxmWeightOp", "Operand", "RecvOp",
           "ReduceOp", "SendOp", "SxmOp"]

OP_BITS = 5


class MemReadOp(enum.Enum, shape=unsigned(OP_BITS)):
    """Read port of an SRAM slice."""
    NOP = 0
    HALT = 1
    LOOP = 2
    REPEAT = 3
    READ = 4
    GATHER = 5
    SYNC = 31


class MemWriteOp(enum.Enum, shape=unsigned(OP_BITS)):
    """Write port of an SRAM slice."""
    NOP = 0
    HALT = 1
    LOOP = 2
    REPEAT = 3
    WRITE = 4
    SYNC = 31


class MxmWeightOp(enum.Enum, shape=unsigned(OP_BITS)):
    """Weight side of an MXM."""
    NOP = 0
    HALT = 1
    LOOP = 2
    REPEAT = 3
    LW = 4
    SYNC = 31


class MxmActOp(enum.Enum, shape=unsigned(OP_BITS)):
    """Activation side of an MXM."""
    NOP = 0
    HALT = 1
    LOOP = 2
    REPEAT = 3
    ABC = 4
    ACC = 5
    SYNC = 31


class SendOp(enum.Enum, shape=unsigned(OP_BITS)):
    """Send side of a link."""
    NOP = 0
    HALT = 1
    LOOP = 2
    REPEAT = 3
    SEND = 4
    POST = 5
    SYNC = 31


class RecvOp(enum.Enum, shape=unsigned(OP_BITS)):
    """Receive side of a link."""
    NOP = 0
    HALT = 1
    LOOP = 2
    REPEAT = 3
    RECV = 4
    FORWARD = 5
    SYNC = 31


class AccMode(enum.Enum, shape=unsigned(2)):
    """What an ACC puts on its stream quad."""
    F32 = 0         #: the sum, rounded once to fp32
    RAW_HIGH = 1    #: int32: sum >> 16
    RAW_LOW = 2     #: int32: sum & 0xFFFF


class AluOp(enum.Enum, shape=unsigned(OP_BITS)):
    """One ALU of the VXM ring."""
    NOP = 0
    HALT = 1
    LOOP = 2
    REPEAT = 3
    PASS = 4
    ADD = 5
    SUB = 6
    MUL = 7
    MAX = 8
    MIN = 9
    CMP_LT = 10
    CMP_LE = 11
    CMP_EQ = 12
    SELECT = 13
    IADD = 14
    ISUB = 15
    FROM_INT32 = 16
    FROM_INT8 = 17
    TO_INT32 = 18
    TO_INT8 = 19
    TO_LIMBS = 20
    EXP2 = 21
    RECIP = 22
    RSQRT = 23
    SYNC = 31


class ReduceOp(enum.Enum, shape=unsigned(OP_BITS)):
    """Lane-reduction unit of the VXM."""
    NOP = 0
    HALT = 1
    LOOP = 2
    REPEAT = 3
    SUM = 4
    MAX = 5
    MIN = 6
    SYNC = 31


class SxmOp(enum.Enum, shape=unsigned(OP_BITS)):
    """Lane movement."""
    NOP = 0
    HALT = 1
    LOOP = 2
    REPEAT = 3
    SHIFT = 4
    ROTATE = 5
    DISTRIBUTE = 6
    MAP = 7
    PERMUTE = 8
    SYNC = 31


class Operand(enum.Enum, shape=unsigned(3)):
    """Where an operand of the VXM comes from."""
    STREAM = 0      #: a quad of streams, or one stream (FROM_INT8)
    RESULT = 1      #: what ALU number `source` gives in this cycle; the reduction unit is the last
    ENTRY = 2       #: entry `source` of the ALU's own accumulator file
    IMMEDIATE = 3   #: the 32 bits of the instruction, in every lane
    STEP = 4        #: the step as int32, in every lane


#: One line for every opcode, printed by the documentation and the disassembler's legend.
MEANING = {
    "NOP": "wait",
    "HALT": "stop until the next start",
    "LOOP": "run the words behind it several times",
    "REPEAT": "issue the previous word again, several times",
    "SYNC": "wait for all queues of the tile and for a message of each of some links",
    "READ": "SRAM word at `address` onto an eastward and/or a westward stream",
    "GATHER": "SRAM word at `address` + an int32 from lane 0 of four streams, zero outside the "
              "slice",
    "WRITE": "stream vector into the SRAM word at `address`, if the predicate holds",
    "LW": "1, 2 or 4 vectors into the shadow weights, as rows or columns from `row` on",
    "ABC": "accumulator[c] += sum over r of vector[r] * weight[r][c]",
    "ACC": "accumulator onto four aligned streams",
    "SEND": "1 or 4 aligned stream vectors onto one or more links",
    "POST": "announce a message of `vectors` vectors to one or more links",
    "RECV": "1 or 4 vectors from the link's FIFO onto streams, and onto other links",
    "FORWARD": "one vector from the link's FIFO onto other links",
    "PASS": "a",
    "ADD": "a + b (fp32)",
    "SUB": "a - b (fp32)",
    "MUL": "a * b (fp32)",
    "MAX": "the larger of a and b (fp32; of two lanes or vectors)",
    "MIN": "the smaller of a and b (fp32)",
    "CMP_LT": "1.0 where a < b, else 0.0",
    "CMP_LE": "1.0 where a <= b, else 0.0",
    "CMP_EQ": "1.0 where a = b, else 0.0",
    "SELECT": "a where the result of the ALU before it in the ring is not zero in this cycle, "
              "else b",
    "IADD": "a + b (int32, wraps)",
    "ISUB": "a - b (int32, wraps)",
    "FROM_INT32": "int32 a as fp32",
    "FROM_INT8": "int8 a, one stream, as fp32",
    "TO_INT32": "fp32 a as int32: nearest even, saturated",
    "TO_INT8": "fp32 a as int8 onto one stream: nearest even, saturated",
    "TO_LIMBS": "fp32 a as 16-bit integer onto two streams: nearest even, cut at +-32,639; low "
                "limb first",
    "EXP2": "2 ** a",
    "RECIP": "1 / a",
    "RSQRT": "1 / sqrt(a)",
    "SUM": "sum of all lanes (fp32, neighbours in pairs), in every lane",
    "SHIFT": "lane i takes lane i - amount; lanes below `amount` are zero",
    "ROTATE": "lane i takes lane i - amount, modulo the lanes",
    "DISTRIBUTE": "every lane takes lane `amount`",
    "MAP": "keep a vector of lane numbers in map register `map`",
    "PERMUTE": "lane i takes the lane that map register `map` names for i; none is zero",
}

#: Opcodes that every kind of queue has: they steer the queue and reach no unit.
CONTROL = ("NOP", "HALT", "LOOP", "REPEAT", "SYNC")

#: Opcodes that only a tile with `TileConfig.sync` has.
SYNC_OPS = ("SYNC", "POST")

#: ALU opcodes that have an operand b.
TWO_OPERANDS = ("ADD", "SUB", "MUL", "MAX", "MIN", "CMP_LT", "CMP_LE", "CMP_EQ", "SELECT", "IADD",
                "ISUB")

#: Feature (see `config.AluConfig`) that an ALU needs for an opcode; all others need none.
ALU_FEATURE = {
    **dict.fromkeys(("ADD", "SUB", "MAX", "MIN", "CMP_LT", "CMP_LE", "CMP_EQ", "SELECT", "IADD",
                     "ISUB", "FROM_INT32", "FROM_INT8", "TO_INT32", "TO_INT8", "TO_LIMBS"), "add"),
    "MUL": "mul",
    **dict.fromkeys(("EXP2", "RECIP", "RSQRT"), "special"),
}
