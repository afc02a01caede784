"""The instruction set: queue kinds, opcodes and fields, declared once.

A tile has one instruction queue for every port of every unit (`hdl.arch.queues`).  Queues of one
kind share one format.  A word is, from bit 0::

    op | ends | wait | indices and their terms | predicate | fields of the opcode

``op``, ``ends`` and ``wait`` are in every word.  A word takes ``1 + wait`` cycles: it issues in the
first of them and the queue idles for the rest.  ``ends`` says how many LOOPs end behind this word,
innermost first; an ended LOOP continues at its body while iterations are left, at no cost.

Control words are the same in every queue:

``NOP more``
    Issues nothing for ``1 + wait + (more << WAIT_BITS)`` cycles.
``HALT``
    Stops the queue until the next start.
``LOOP count``
    Takes its own ``1 + wait`` cycles, once, then runs the words behind it ``count`` times.
    ``count`` 0 stands for the step count that the host wrote.  The outermost LOOP is the step
    level: its index counts from the first step that the host wrote, every other from 0.
``REPEAT count interval stride``
    In its first cycle issues the unit's previous word again, and ``count - 1`` times more at
    ``interval`` cycles; takes ``(count - 1) * interval + 1 + wait`` cycles.  Repetition ``r = 1, 2
    .. count`` adds ``r * stride`` to each index.
``SYNC links`` (tiles with `TileConfig.sync` only)
    Parks the queue.  When every queue of the tile is parked or has halted, and of each link in the
    mask at least one message has been notified and not been taken by a SYNC, all parked queues are
    released in one cycle and each of those links has one message less.  The SYNC then takes its
    ``1 + wait`` cycles; the time parked counts nowhere.  All queues carry equal masks in the same
    order; a queue whose mask lacks a link of another's is a fault, and the union counts.

An *index* (an SRAM address, a weight row, an accumulator, an activation) is computed by the ICU::

    index = base + r * stride + sum over LOOP levels l of ((i[l] >> shift) & mask) * step

modulo ``2 ** bits`` of the index field, where ``i[l]`` is the index of level ``l`` (0 is outermost)
and (shift, mask, step) is the entry of the queue's table that the word names for level ``l``.
Entry 0 adds nothing.  Levels that are not open add nothing.  A predicate is one more entry: it
holds while ``((i[0] >> shift) & mask) == step``; entry 0 always holds.
"""

from functools import cache
from typing import NamedTuple

from amaranth.hdl import Shape, signed, unsigned
from amaranth.lib import data
from amaranth.utils import bits_for

from .ops import (
    CONTROL,
    MEANING,
    OP_BITS,
    SYNC_OPS,
    AccMode,
    AluOp,
    MemReadOp,
    MemWriteOp,
    MxmActOp,
    MxmWeightOp,
    Operand,
    RecvOp,
    ReduceOp,
    SendOp,
    SxmOp,
)

__all__ = ["ALU_ENTRIES", "CONTROL", "COUNTER_BITS", "ENDS_BITS", "KINDS", "MEANING", "NOTIFY_BITS",
           "OP_BITS", "POST_BITS", "SXM_MAPS", "TABLE_ENTRIES", "WAIT_BITS", "AccMode", "AluOp",
           "Field", "Index", "MemReadOp", "MemWriteOp", "MxmActOp", "MxmWeightOp", "Operand",
           "QueueKind", "RecvOp", "ReduceOp", "SendOp", "SxmOp", "formats", "index_bits", "layout",
           "opcodes", "planes", "table_layout", "word_bits", "word_bytes"]

ENDS_BITS = 3
WAIT_BITS = 8
COUNTER_BITS = 20       #: of a LOOP index and of the absolute step
NOP_MORE_BITS = 20      #: one NOP lasts up to 2**28 cycles
REPEAT_COUNT_BITS = 12
REPEAT_INTERVAL_BITS = 8
TABLE_ENTRIES = 8
TABLE_BITS = 3
ALU_ENTRIES = 4         #: vectors in the accumulator file of an ALU
SXM_MAPS = 2            #: lane maps that an SXM holds
POST_BITS = 10          #: of the number of vectors in a message
NOTIFY_BITS = 10        #: of the number of messages of a link that no SYNC has taken yet


class Field(NamedTuple):
    """One field of an opcode: its name, its shape for a configuration, what it says."""
    name: str
    shape: object       #: function of `TileConfig` giving a shape
    meaning: str


class Index(NamedTuple):
    """One index of a queue kind: name and number of places it selects from."""
    name: str
    size: object        #: function of `TileConfig`


class QueueKind(NamedTuple):
    """Format of a kind of queue.

    ``indices`` are computed by the ICU for every unit opcode; ``terms`` says whether words name a
    table entry for each LOOP level; ``predicate`` whether they name one as predicate.
    """
    name: str
    ops: type
    indices: tuple = ()
    terms: bool = False
    predicate: bool = False
    formats: dict = {}


def _in_tile(cfg, op):
    return cfg.sync or op.name not in SYNC_OPS


def opcodes(cfg, kind):
    """Members of the ``ops`` of ``kind`` that queues of ``cfg`` have, in order."""
    return tuple(op for op in KINDS[kind].ops if _in_tile(cfg, op))


def formats(cfg, kind):
    """Fields by unit opcode (a member of the kind's ``ops``) of those that ``cfg`` has."""
    return {op: found for op, found in KINDS[kind].formats.items() if _in_tile(cfg, op)}


def _flag(name, meaning):
    return Field(name, lambda cfg: unsigned(1), meaning)


def _stream(name, meaning):
    return Field(name, lambda cfg: unsigned(bits_for(cfg.streams - 1)), meaning)


def _source(what):
    return (_stream("source", f"stream that carries {what}"),
            _flag("source_west", "the stream runs west"),
            _flag("source_last", "clear the value behind this read"))


def _targets(what):
    return (_flag("east_en", f"put {what} on an eastward stream"),
            _stream("east", "that stream"),
            _flag("west_en", f"put {what} on a westward stream"),
            _stream("west", "that stream"))


def _shared_targets(what):
    return (_flag("east_en", f"put {what} on the eastward stream(s)"),
            _flag("west_en", f"put {what} on the westward stream(s)"),
            _stream("target", "the (first) stream, in both directions"))


def _operand(name):
    def bits(cfg):
        return unsigned(max(bits_for(cfg.streams - 1), bits_for(len(cfg.alus)),
                            bits_for(ALU_ENTRIES - 1)))
    return (Field(name, lambda cfg: Operand, f"where operand {name} comes from"),
            Field(f"{name}_source", bits, "the (first) stream, or the ALU, or the entry"),
            _flag(f"{name}_source_west", "the stream runs west"),
            _flag(f"{name}_source_last", "clear the value behind this read"))


_QUAD = _flag("quad", "four aligned streams instead of one")
_ALU = (*_operand("a"), *_operand("b"),
        Field("immediate", lambda cfg: unsigned(32), "the bits of an IMMEDIATE operand"),
        *_shared_targets("the result"),
        _flag("keep", "write the result into an entry of the accumulator file"),
        Field("entry", lambda cfg: unsigned(bits_for(ALU_ENTRIES - 1)), "that entry"))
_MOVE = (_QUAD, Field("amount", lambda cfg: unsigned(bits_for(cfg.lanes - 1)), "number of lanes"),
         *_source("the (first) vector"), *_shared_targets("the result"))
_MAP = Field("map", lambda cfg: unsigned(bits_for(SXM_MAPS - 1)), "map register")
_LINKS = Field("links", lambda cfg: unsigned(len(cfg.ports) + 1),
               "bit k: leave on link k (the host is the last); all must be idle")
_POSTED = Field("links", lambda cfg: unsigned(len(cfg.ports)),
                "bit k: to link k (never the host, which takes no messages)")
_PASSED_ON = _LINKS._replace(meaning="bit k: pass on to link k too, as FORWARD does")

_ADDRESS = Index("address", lambda cfg: cfg.mem_words)

KINDS = {kind.name: kind for kind in (
    QueueKind("mem_read", MemReadOp, (_ADDRESS,), terms=True, formats={
        MemReadOp.READ: _targets("the word"),
        MemReadOp.GATHER: (*_source("the lowest byte of the int32 address, the first of four"),
                           *_targets("the word")),
    }),
    QueueKind("mem_write", MemWriteOp, (_ADDRESS,), terms=True, predicate=True, formats={
        MemWriteOp.WRITE: _source("the word"),
    }),
    QueueKind("mxm_weight", MxmWeightOp, (Index("row", lambda cfg: cfg.lanes),), formats={
        MxmWeightOp.LW: (
            _flag("columns", "each vector is a column of the block, not a row"),
            Field("count_log2", lambda cfg: unsigned(2),
                  "log2 of the aligned streams taken at once: 1, 2 or 4 vectors from `row` on"),
            *_source("the first vector")),
    }),
    QueueKind("mxm_act", MxmActOp, (Index("accumulator", lambda cfg: cfg.accumulators),
                                    Index("activation", lambda cfg: cfg.activations)),
              terms=True, formats={
        MxmActOp.ABC: (
            _flag("install", "first make the shadow weights the active ones"),
            _flag("buffered", "take the vector from the activation buffer, not from a stream"),
            _flag("keep", "store the vector in the activation buffer"),
            _flag("high", "multiply the products by 256"),
            _flag("clear", "start the sum anew"),
            *_source("the vector")),
        MxmActOp.ACC: (
            Field("mode", lambda cfg: AccMode, "fp32, or half of the raw sum"),
            *_targets("the quad of results")),
    }),
    QueueKind("alu", AluOp, formats={op: _ALU for op in AluOp if op.name not in CONTROL}),
    QueueKind("reduce", ReduceOp, formats={
        op: (*_operand("a"), *_shared_targets("the result"))
        for op in (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN)}),
    QueueKind("sxm", SxmOp, formats={
        **{op: _MOVE for op in (SxmOp.SHIFT, SxmOp.ROTATE, SxmOp.DISTRIBUTE)},
        SxmOp.MAP: (_MAP, *_source("the lane numbers")),
        SxmOp.PERMUTE: (_QUAD, _MAP, *_source("the (first) vector"),
                        *_shared_targets("the result")),
    }),
    QueueKind("send", SendOp, formats={
        SendOp.SEND: (_QUAD, _LINKS, *_source("the (first) vector")),
        SendOp.POST: (_POSTED, Field("vectors", lambda cfg: unsigned(POST_BITS),
                                     "vectors of the message; 0 announces nothing")),
    }),
    QueueKind("recv", RecvOp, formats={
        RecvOp.RECV: (_PASSED_ON, _QUAD, *_targets("the vector(s)")),
        RecvOp.FORWARD: (_LINKS,),
    }),
)}

def index_bits(cfg, kind):
    """Width in bits of each index of ``kind``."""
    return tuple(bits_for(index.size(cfg) - 1) for index in KINDS[kind].indices)


def _control_fields(cfg, kind, name):
    if name == "NOP":
        return {"more": unsigned(NOP_MORE_BITS)}
    if name == "LOOP":
        return {"count": unsigned(COUNTER_BITS)}
    if name == "REPEAT":
        strides = {f"{index.name}_stride": signed(bits + 1)
                   for index, bits in zip(KINDS[kind].indices, index_bits(cfg, kind),
                                          strict=True)}
        return {"count": unsigned(REPEAT_COUNT_BITS), "interval": unsigned(REPEAT_INTERVAL_BITS),
                **strides}
    if name == "SYNC":
        return {"links": unsigned(len(cfg.ports))}
    return {}


def layout(cfg, kind, op):
    """`StructLayout` of a word: ``kind`` is a name in `KINDS`, ``op`` a member of its ``ops``."""
    spec = KINDS[kind]
    members = {"op": spec.ops, "ends": unsigned(ENDS_BITS), "wait": unsigned(WAIT_BITS)}
    if op not in spec.formats:
        members.update(_control_fields(cfg, kind, op.name))
        return data.StructLayout(members)
    for index, bits in zip(spec.indices, index_bits(cfg, kind), strict=True):
        members[index.name] = unsigned(bits)
    if spec.terms:
        for index in spec.indices:
            members[f"{index.name}_terms"] = data.ArrayLayout(unsigned(TABLE_BITS), cfg.loop_levels)
    if spec.predicate:
        members["predicate"] = unsigned(TABLE_BITS)
    members.update((field.name, field.shape(cfg)) for field in spec.formats[op])
    return data.StructLayout(members)


@cache
def word_bits(cfg, kind):
    """Width in bits of the instruction words of ``kind``."""
    return max(Shape.cast(layout(cfg, kind, op)).width for op in opcodes(cfg, kind))


def word_bytes(cfg, kind):
    """Bytes of one instruction word of ``kind``, as stored and as loaded."""
    return -(-word_bits(cfg, kind) // 8)


def table_layout(cfg, kind):
    """`StructLayout` of a table entry of a queue: ``shift``, ``mask``, ``step`` (signed)."""
    bits = max(index_bits(cfg, kind), default=1)
    return data.StructLayout({"shift": unsigned(5), "mask": unsigned(COUNTER_BITS),
                              "step": signed(max(bits + 1, COUNTER_BITS + 1))})


def planes(op, fields, operand):
    """Aligned streams that an operand or a result of an instruction takes: 1, 2 or 4.

    Parameters
    ----------
    op : str
        Name of a unit opcode.
    fields : dict
        Its fields.
    operand : str
        ``"source"``, ``"a_source"``, ``"b_source"``, or ``"target"`` for the result.
    """
    if op == "LW":
        return 1 << fields["count_log2"]
    if operand == "target":
        if op == "TO_LIMBS":
            return 2
        if op == "TO_INT8":
            return 1
        if op in AluOp.__members__ or op in ReduceOp.__members__ or op == "ACC":
            return 4
    elif operand in ("a_source", "b_source"):
        return 1 if op == "FROM_INT8" else 4
    elif op == "GATHER":
        return 4
    return 4 if fields.get("quad") else 1
