"""Instruction words as the hardware sees them: bits outside an opcode's fields have no effect."""

from functools import cache
from typing import NamedTuple

from amaranth.hdl import Shape
from amaranth.lib import data

from hdl.arch import isa

__all__ = ["Word", "decode"]


class Word(NamedTuple):
    """A decoded word: opcode name (None: the queue kind has no such opcode) and fields by name,
    array fields as tuples."""
    op: str | None
    fields: dict


class _Slot(NamedTuple):
    name: str
    offset: int
    width: int
    signed: bool
    length: int         #: elements of an array field; 0 for a scalar


@cache
def _formats(cfg, kind):
    """(opcode name, slots) by opcode number."""
    formats = {}
    for op in isa.opcodes(cfg, kind):
        slots = []
        for name, field in isa.layout(cfg, kind, op):
            shape, length = field.shape, 0
            if isinstance(shape, data.ArrayLayout):
                shape, length = shape.elem_shape, shape.length
            shape = Shape.cast(shape)
            slots.append(_Slot(name, field.offset, shape.width, shape.signed, length))
        formats[op.value] = (op.name, slots[1:])
    return formats


def _number(word, offset, slot):
    value = word >> offset & (1 << slot.width) - 1
    if slot.signed and value >> slot.width - 1:
        value -= 1 << slot.width
    return value


@cache
def decode(cfg, kind, word):
    """`Word` of the bits ``word`` in a queue of ``kind``."""
    name, slots = _formats(cfg, kind).get(word & (1 << isa.OP_BITS) - 1, (None, ()))
    return Word(name, {
        slot.name: tuple(_number(word, slot.offset + i * slot.width, slot)
                         for i in range(slot.length)) if slot.length
        else _number(word, slot.offset, slot)
        for slot in slots})
