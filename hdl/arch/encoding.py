"""Instruction words: encode with range checks, decode, text, CRC.

A word is a Python int of `isa.word_bits` bits.  `Struct.const` wraps silently, so it is not used.
"""

from functools import cache, lru_cache
from typing import NamedTuple

from amaranth.hdl import Shape
from amaranth.lib import data

from . import isa

__all__ = ["EncodingError", "Insn", "encode", "decode", "to_text", "from_text", "crc16"]


class EncodingError(ValueError):
    """A field or a word that the instruction set does not have."""


class Insn(NamedTuple):
    """A decoded word: opcode name and its fields by name (array fields as tuples)."""
    op: str
    fields: dict

    def __str__(self):
        return to_text(self)


class _Slot(NamedTuple):
    offset: int
    width: int
    low: int
    high: int
    length: int         #: elements of an array field; 0 for a scalar


@cache
def _members(cfg, kind):
    return {op.value: op for op in isa.opcodes(cfg, kind)}


@cache
def _slots(cfg, kind, op):
    found = {}
    for name, field in isa.layout(cfg, kind, op):
        shape, length = field.shape, 0
        if isinstance(shape, data.ArrayLayout):
            shape, length = shape.elem_shape, shape.length
        shape = Shape.cast(shape)
        low, high = (-(1 << shape.width - 1), (1 << shape.width - 1) - 1) if shape.signed else \
                    (0, (1 << shape.width) - 1)
        found[name] = _Slot(field.offset, shape.width, low, high, length)
    return found


def _opcode(cfg, kind, name):
    if kind not in isa.KINDS:
        raise EncodingError(f"Queue kind must be one of {', '.join(isa.KINDS)}, not {kind!r}")
    ops = {op.name: op for op in isa.opcodes(cfg, kind)}
    if name not in ops:
        raise EncodingError(f"{kind} has the opcodes {', '.join(ops)}, not {name!r}")
    return ops[name]


def encode(cfg, kind, op, **fields):
    """Word of opcode ``op`` (its name) with ``fields``; those not given are 0.

    Raises
    ------
    EncodingError
        Naming the field that does not exist or the range that a value leaves.
    """
    member = _opcode(cfg, kind, op)
    slots = _slots(cfg, kind, member)
    word = member.value
    for name, value in fields.items():
        if name not in slots or name == "op":
            raise EncodingError(f"{kind} {op} has no field {name!r}; it has {', '.join(slots)}")
        slot = slots[name]
        values = tuple(value) if slot.length else (value,)
        if slot.length and len(values) > slot.length:
            raise EncodingError(f"{kind} {op}.{name} has {slot.length} entries, not {len(values)}")
        for i, item in enumerate(values):
            if not slot.low <= item <= slot.high:
                raise EncodingError(
                    f"{kind} {op}.{name} must be in {slot.low}..{slot.high}, not {item!r}")
            word |= (int(item) & (1 << slot.width) - 1) << slot.offset + i * slot.width
    return word


def decode(cfg, kind, word):
    """`Insn` of ``word``, with every field of its opcode.

    Raises
    ------
    EncodingError
        On an opcode the queue does not have, or bits outside the opcode's fields.
    """
    code = word & (1 << isa.OP_BITS) - 1
    member = _members(cfg, kind).get(code)
    if member is None:
        raise EncodingError(f"{kind} has no opcode {code} (word {word:#x})")
    fields = {}
    used = 0
    for name, slot in _slots(cfg, kind, member).items():
        items = []
        for i in range(slot.length or 1):
            at = slot.offset + i * slot.width
            used |= (1 << slot.width) - 1 << at
            item = word >> at & (1 << slot.width) - 1
            items.append(item - (1 << slot.width) if item > slot.high else item)
        fields[name] = tuple(items) if slot.length else items[0]
    if word & ~used:
        raise EncodingError(f"{kind} {member.name} word {word:#x} has bits outside its fields")
    del fields["op"]
    return Insn(member.name, fields)


def to_text(insn):
    """Assembler line of an `Insn`: the opcode in lower case and the fields that are not 0."""
    parts = [insn.op.lower()]
    for name, value in insn.fields.items():
        if isinstance(value, tuple):
            if any(value):
                parts.append(f"{name}={','.join(map(str, value))}")
        elif value:
            parts.append(f"{name}={int(value)}")
    return " ".join(parts)


def from_text(cfg, kind, line):
    """Word of an assembler line, the inverse of `to_text`.

    Raises
    ------
    EncodingError
        On a malformed line, or as `encode`.
    """
    op, *parts = line.split()
    fields = {}
    for part in parts:
        name, equals, value = part.partition("=")
        try:
            items = tuple(int(item, 0) for item in value.split(","))
        except ValueError:
            items = ()
        if not equals or not items or name in fields:
            raise EncodingError(f"Operand must be a new name=number, not {part!r}")
        array = name.endswith("_terms")
        fields[name] = items if array else items[0]
        if not array and len(items) > 1:
            raise EncodingError(f"Operand {name} takes one number, not {value!r}")
    return encode(cfg, kind, op.upper(), **fields)


_CRC_POLYNOMIAL = 0x1021


@cache
def _crc_table():
    table = []
    for byte in range(256):
        crc = byte << 8
        for _ in range(8):
            crc = crc << 1 ^ (_CRC_POLYNOMIAL if crc & 0x8000 else 0)
        table.append(crc & 0xFFFF)
    return table


@lru_cache(maxsize=1 << 16)
def crc16(word, count):
    """CRC-16/CCITT-FALSE (polynomial 0x1021, start 0xFFFF) of ``count`` bytes of ``word``, lowest
    byte first: what the trace port shows of an issued word."""
    table = _crc_table()
    crc = 0xFFFF
    for i in range(count):
        crc = (crc << 8 & 0xFFFF) ^ table[crc >> 8 ^ word >> 8 * i & 0xFF]
    return crc
