"""Programs to verify: compiled, written by hand, and changed by chance."""

import copy

import numpy as np

from compiler.assemble import assemble
from compiler.decoder.program import compile_decoder
from compiler.lower.copy import copy_program
from compiler.lower.matvec import matvec_program
from compiler.model.config import LayerConfig, ModelConfig
from compiler.model.weights import random_weights
from compiler.quantise import quantise
from hdl.arch import isa
from hdl.arch.binary import SystemBinary, TileBinary
from hdl.arch.config import single
from hdl.arch.encoding import EncodingError, decode, encode
from hdl.arch.presets import NANO
from hdl.arch.queues import queues


def matvec(system, k, n, rng, steps=1):
    plan, memory = matvec_program(system, rng.integers(-127, 128, (k, n), dtype=np.int8),
                                  rng.integers(-32639, 32640, k))
    binary, _ = assemble(plan)
    memory.fill(binary)
    binary.steps = steps
    return binary


def copies(rng, steps=5, first_step=3):
    """Three loops in each step, two chunks of four words in each."""
    system = single(NANO)
    plan, memory = copy_program(system, rng.integers(0, 256, (1, 4, 6, 4), dtype=np.uint8), 3, 2)
    binary, _ = assemble(plan)
    memory.fill(binary)
    binary.steps, binary.first_step = steps, first_step
    return binary


def decode_program(system, layers=5, heads=1, size=16, steps=4):
    """The whole decode of a small random model; ``size`` elements in the residual stream."""
    layer = LayerConfig(heads=heads, kv_heads=max(1, heads // 2), head_dim=16, window=16,
                        k_eq_v=False, rope_theta=1e4, rope_pairs=8)
    config = ModelConfig(vocab=size + 10, hidden=size, ffn=size, eps=1e-6, softcap=30.0,
                         max_position=40, bos=2, layers=(layer,) * layers)
    rng = np.random.default_rng(1)
    texts = [rng.integers(0, config.vocab, config.max_position) for _ in range(4)]
    program = compile_decoder(system, quantise(random_weights(config, 1), texts, late_norms=True),
                              config.max_position)
    program.binary.steps = steps
    return program.binary


def kinds(cfg):
    return {queue.name: queue.kind for queue in queues(cfg)}


def hand(system, *programs, tables=None, words=4):
    """Hand-written queues: each program is (tile, queue, [(op, fields), ...]); the first ``words``
    words of every slice are loaded."""
    binary = SystemBinary([TileBinary() for _ in range(system.tiles)])
    for tile, queue, code in programs:
        coded = [encode(system.tile, kinds(system.tile)[queue], op, **fields)
                 for op, fields in code]
        coded.append(encode(system.tile, kinds(system.tile)[queue], "HALT"))
        binary.tiles[tile].words[queue] = coded
        binary.tiles[tile].tables[queue] = [(0, 0, 0), *(tables or {}).get(queue, ())]
    for tile in binary.tiles:
        tile.sram = {name: {0: bytes(words * system.tile.lanes)}
                     for name in system.tile.slices("mem")}
    return binary


def after(cycles):
    """NOPs of ``cycles`` cycles, as one word."""
    more, wait = divmod(cycles - 1, 1 << isa.WAIT_BITS)
    return "NOP", {"wait": wait, "more": more}


def mutant(system, binary, rng):
    """A copy of ``binary`` with one or two changes."""
    binary = copy.deepcopy(binary)
    for _ in range(int(rng.choice([1, 1, 2]))):
        tile = binary.tiles[rng.integers(len(binary.tiles))]
        name = rng.choice(sorted(tile.words))
        change = _CHANGES[rng.integers(len(_CHANGES))]
        try:
            change(system.tile, binary, tile, name, tile.words[name], rng)
        except EncodingError:
            pass                    # a value that no field holds: nothing changes
    return binary


def _replace(cfg, name, words, at, change):
    kind = kinds(cfg)[name]
    op, fields = change(*decode(cfg, kind, words[at]))
    words[at] = encode(cfg, kind, op, **fields)


def _wait(cfg, binary, tile, name, words, rng):
    by = int(rng.choice([-1, 1, 2, 5]))
    _replace(cfg, name, words, rng.integers(len(words)),
             lambda op, fields: (op, {**fields, "wait": max(0, fields["wait"] + by)}))


def _shift(cfg, binary, tile, name, words, rng):
    """One word waits longer, another shorter: what is between moves."""
    for by in (1, -1):
        _replace(cfg, name, words, rng.integers(len(words)),
                 lambda op, fields, by=by: (op, {**fields, "wait": fields["wait"] + by}))


def _field(cfg, binary, tile, name, words, rng):
    draw, by = rng.random(2)

    def change(op, fields):
        field = list(fields)[int(draw * len(fields))]
        value = fields[field]
        if isinstance(value, tuple):
            value = tuple(int(by * 4) if i == int(by * 100) % len(value) else entry
                          for i, entry in enumerate(value))
        else:
            value = [value + 1, value - 1, value ^ 1, value ^ 2, 2 * value, 0][int(by * 6)]
        return op, {**fields, field: value}
    _replace(cfg, name, words, rng.integers(len(words)), change)


def _opcode(cfg, binary, tile, name, words, rng):
    kind = kinds(cfg)[name]
    ops = list(isa.formats(cfg, kind))
    new = ops[rng.integers(len(ops))]
    known = dict(isa.layout(cfg, kind, new))
    _replace(cfg, name, words, rng.integers(len(words)),
             lambda op, fields: (new.name, {key: value for key, value in fields.items()
                                            if key in known}))


def _drop(cfg, binary, tile, name, words, rng):
    del words[rng.integers(len(words))]


def _double(cfg, binary, tile, name, words, rng):
    at = rng.integers(len(words))
    words.insert(at, words[at])


def _swap(cfg, binary, tile, name, words, rng):
    at = rng.integers(len(words) - 1) if len(words) > 1 else 0
    words[at:at + 2] = words[at:at + 2][::-1]


def _loop(cfg, binary, tile, name, words, rng):
    """Repeat one word."""
    at = rng.integers(len(words))
    _replace(cfg, name, words, at,
             lambda op, fields: (op, {**fields, "ends": fields["ends"] + 1}))
    words.insert(at, encode(cfg, kinds(cfg)[name], "LOOP", count=int(rng.integers(0, 4))))


def _table(cfg, binary, tile, name, words, rng):
    table = tile.tables[name] = list(tile.tables[name])
    if len(table) > 1 and rng.random() < 0.7:
        at = rng.integers(1, len(table))
        entry = list(table[at])
        entry[rng.integers(3)] += int(rng.choice([-1, 1, 2]))
        table[at] = tuple(entry)
    elif len(table) < isa.TABLE_ENTRIES:
        table.append((int(rng.integers(3)), int(rng.integers(8)), int(rng.integers(-3, 4))))


def _contents(cfg, binary, tile, name, words, rng):
    slices = sorted(name for name, runs in tile.sram.items() if runs)
    if slices:
        runs = tile.sram[rng.choice(slices)]
        at = sorted(runs)[rng.integers(len(runs))]
        runs[at] = runs[at][:-cfg.lanes]


def _steps(cfg, binary, tile, name, words, rng):
    binary.steps, binary.first_step = int(rng.integers(1, 40)), int(rng.integers(0, 100))


_CHANGES = (_wait, _wait, _shift, _field, _field, _field, _opcode, _drop, _double, _swap, _loop,
            _table, _table, _contents, _steps)
