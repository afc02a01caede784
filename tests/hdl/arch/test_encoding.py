"""Encoding, decoding, text and hardware decode of instruction words."""

from dataclasses import replace

import pytest
from amaranth.hdl import Module, Shape, Signal, Value
from amaranth.lib import data
from amaranth.sim import Simulator

from hdl.arch import isa
from hdl.arch.docs import PAGE, page_with_tables
from hdl.arch.encoding import EncodingError, crc16, decode, encode, from_text
from hdl.arch.ops import ALU_FEATURE
from hdl.arch.presets import DEMO, NANO, PRESETS
from hdl.arch.queues import queues
from hdl.arch.timing import of, timing, unit_ops

SYNC = replace(DEMO, sync=True)
CONFIGS = {**PRESETS, "sync": SYNC}
EVERY_OP = [(kind, op) for kind, spec in isa.KINDS.items() for op in spec.ops]
EVERY_WORD = [(name, kind, op) for name, cfg in CONFIGS.items() for kind in isa.KINDS
              for op in isa.opcodes(cfg, kind)]


def _limits(shape):
    shape = Shape.cast(shape)
    if shape.signed:
        return -(1 << shape.width - 1), (1 << shape.width - 1) - 1
    return 0, (1 << shape.width) - 1


def _fields(cfg, kind, op, pick):
    """Field values of an opcode; ``pick(low, high)`` chooses each."""
    values = {}
    for name, field in isa.layout(cfg, kind, op):
        if name == "op":
            continue
        if isinstance(field.shape, data.ArrayLayout):
            values[name] = tuple(pick(*_limits(field.shape.elem_shape))
                                 for _ in range(field.shape.length))
        else:
            values[name] = pick(*_limits(field.shape))
    return values


@pytest.mark.parametrize("name,kind,op", EVERY_WORD)
def test_words_survive_decoding_and_text(name, kind, op, rng):
    cfg = CONFIGS[name]
    picks = [lambda low, high: low, lambda low, high: high, lambda low, high: 0]
    picks += [lambda low, high: int(rng.integers(low, high + 1))] * 20
    for pick in picks:
        fields = _fields(cfg, kind, op, pick)
        word = encode(cfg, kind, op.name, **fields)
        assert 0 <= word < 1 << isa.word_bits(cfg, kind)
        insn = decode(cfg, kind, word)
        assert insn == (op.name, fields)
        assert from_text(cfg, kind, str(insn)) == word


@pytest.mark.parametrize("kind,op", EVERY_OP)
def test_values_out_of_range_are_refused_by_name(kind, op):
    for name, field in isa.layout(SYNC, kind, op):
        if name == "op":
            continue
        array = isinstance(field.shape, data.ArrayLayout)
        low, high = _limits(field.shape.elem_shape if array else field.shape)
        for value in (low - 1, high + 1):
            with pytest.raises(EncodingError, match=rf"{kind} {op.name}\.{name} must be in"):
                encode(SYNC, kind, op.name, **{name: (value,) if array else value})


def test_unknown_names_are_refused():
    with pytest.raises(EncodingError, match="has no field 'adress'"):
        encode(DEMO, "mem_read", "READ", adress=1)
    with pytest.raises(EncodingError, match="mem_read has the opcodes NOP, HALT.*, not 'WRITE'"):
        encode(DEMO, "mem_read", "WRITE")
    with pytest.raises(EncodingError, match="Queue kind must be one of"):
        encode(DEMO, "mem", "READ")
    with pytest.raises(EncodingError, match="mem_read READ.address_terms has 4 entries, not 5"):
        encode(DEMO, "mem_read", "READ", address_terms=(0,) * 5)


@pytest.mark.parametrize("line", ["read address", "read address=x", "read address=1 address=2",
                                  "read address=1,2", "read =3"])
def test_malformed_text_is_refused(line):
    with pytest.raises(EncodingError):
        from_text(DEMO, "mem_read", line)


@pytest.mark.parametrize("cfg", [DEMO, SYNC], ids=["demo", "sync"])
@pytest.mark.parametrize("kind", isa.KINDS)
def test_words_with_unknown_codes_or_stray_bits_are_refused(kind, cfg):
    codes = {op.value for op in isa.opcodes(cfg, kind)}
    for code in set(range(1 << isa.OP_BITS)) - codes:
        with pytest.raises(EncodingError, match=f"{kind} has no opcode {code}"):
            decode(cfg, kind, code)
    with pytest.raises(EncodingError, match="bits outside its fields"):
        decode(cfg, kind, 1 << isa.word_bits(cfg, kind))


def test_sync_and_post_exist_with_sync_only():
    for kind in isa.KINDS:
        assert {op.name for op in isa.opcodes(SYNC, kind)} - \
            {op.name for op in isa.opcodes(DEMO, kind)} == \
            ({"SYNC", "POST"} if kind == "send" else {"SYNC"})
        with pytest.raises(EncodingError, match=f"{kind} has the opcodes .*, not 'SYNC'"):
            encode(DEMO, kind, "SYNC", links=1)
    with pytest.raises(EncodingError, match="send has the opcodes .*, not 'POST'"):
        encode(DEMO, "send", "POST", links=1)


@pytest.mark.parametrize("kind", isa.KINDS)
def test_hardware_view_decodes_as_software_does(kind, rng):
    for op in isa.opcodes(NANO, kind):
        layout = isa.layout(NANO, kind, op)
        word = Signal(isa.word_bits(NANO, kind))
        fields = {}
        for name, field in layout:
            if isinstance(field.shape, data.ArrayLayout):
                fields[name] = [Signal(Shape.cast(field.shape.elem_shape), name=f"{name}_{i}")
                                for i in range(field.shape.length)]
            else:
                fields[name] = Signal(Shape.cast(field.shape), name=name)
        module = Module()
        view = data.View(layout, word[:layout.size])
        for name, signal in fields.items():
            for i, part in enumerate(signal if isinstance(signal, list) else [signal]):
                source = view[name][i] if isinstance(signal, list) else view[name]
                module.d.comb += part.eq(Value.cast(source))
        simulator = Simulator(module)

        async def bench(ctx, op=op, word=word, fields=fields):
            for _ in range(10):
                values = _fields(NANO, kind, op, lambda low, high: int(rng.integers(low, high + 1)))
                ctx.set(word, encode(NANO, kind, op.name, **values))
                await ctx.delay(1e-9)
                for name, value in values.items():
                    signal = fields[name]
                    seen = tuple(ctx.get(part) for part in signal) if isinstance(signal, list) \
                        else ctx.get(signal)
                    assert seen == value, name

        simulator.add_testbench(bench)
        simulator.run()


def test_control_words_are_the_same_in_every_queue():
    for spec in isa.KINDS.values():
        assert [(op.name, op.value) for op in spec.ops][:4] == \
            [("NOP", 0), ("HALT", 1), ("LOOP", 2), ("REPEAT", 3)]
        assert spec.ops.SYNC.value == 31
        for op in spec.ops:
            fields = [(name, field.offset, Shape.cast(field.shape).width)
                      for name, field in isa.layout(DEMO, spec.name, op)]
            assert fields[:3] == [("op", 0, 5), ("ends", 5, 3), ("wait", 8, 8)]


def test_every_opcode_has_a_meaning_and_a_timing():
    names = {op.name for spec in isa.KINDS.values() for op in spec.ops}
    assert set(isa.MEANING) == names
    units = {op.name for op in isa.AluOp} - set(isa.CONTROL)
    assert set(ALU_FEATURE) == units - {"PASS"}
    for cfg in PRESETS.values():
        assert set(timing(cfg)) == {key for key in unit_ops() if key[0] != "alu"}
        assert all(cfg.alus[queue.unit].depth == of(cfg, queue, "ADD").t_d
                   for queue in queues(cfg) if queue.kind == "alu")
    for spec in isa.KINDS.values():
        units = {op.name for op in spec.ops} - {"NOP", "HALT", "LOOP", "REPEAT", "SYNC"}
        assert {op.name for op in spec.formats} == units


def test_encoding_is_frozen():
    # Worked out by hand from the field order; a moved bit must be a deliberate change here.
    assert encode(NANO, "mem_read", "READ", ends=1, wait=2, address=5, address_terms=(1, 2, 3),
                  east_en=1, east=6, west_en=1, west=7) == \
        4 | 1 << 5 | 2 << 8 | 5 << 16 | (1 | 2 << 3 | 3 << 6) << 22 | 1 << 31 | 6 << 32 | \
        1 << 35 | 7 << 36
    assert encode(DEMO, "recv", "FORWARD", links=5) == 5 | 5 << 16
    assert encode(DEMO, "send", "LOOP", count=9) == 2 | 9 << 16
    assert encode(SYNC, "alu", "SYNC", links=5, wait=3) == 31 | 3 << 8 | 5 << 16
    assert encode(SYNC, "send", "POST", links=4, vectors=9) == 5 | 4 << 16 | 9 << 19
    assert encode(DEMO, "mem_write", "REPEAT", count=3, interval=4, address_stride=-1) == \
        3 | 3 << 16 | 4 << 28 | ((1 << 15) - 1) << 36


def test_crc_is_the_published_one():
    # CRC-16/CCITT-FALSE of "123456789" is 0x29B1 in every catalogue of CRCs.
    assert crc16(int.from_bytes(b"123456789", "little"), 9) == 0x29B1


def test_documentation_tables_are_current():
    page = PAGE.read_text()
    assert page_with_tables(page) == page, "run `python -m hdl.arch.docs`"
