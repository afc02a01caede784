"""ALUs, lane reduction and SXM for the naive machine, a lane at a time."""

import numpy as np

from hdl.arch.errors import Fault
from hdl.arch.ops import ALU_FEATURE
from sim.emulator import fp, fp_special

__all__ = ["VectorState", "Vectors"]

STREAM, RESULT, ENTRY, IMMEDIATE, STEP = range(5)
F32, I32 = np.float32, np.int32
BINARY = {"ADD": fp.add, "SUB": fp.sub, "MUL": fp.mul, "MAX": fp.max_, "MIN": fp.min_,
          "CMP_LT": fp.cmp_lt, "CMP_LE": fp.cmp_le, "CMP_EQ": fp.cmp_eq}
FLOATS = {"EXP2": fp_special.exp2, "RECIP": fp_special.recip, "RSQRT": fp_special.rsqrt}
TO_INTEGER = {"TO_INT32": fp.to_int32, "TO_INT8": fp.to_int8, "TO_LIMBS": fp.to_limbs}
#: Every other opcode takes whole vectors of arithmetic that has tests of its own.
OPS = ("PASS", *BINARY, "SELECT", "IADD", "ISUB", "FROM_INT32", "FROM_INT8", *TO_INTEGER, *FLOATS)


class VectorState:
    """What the VXM and the SXMs of a tile remember."""

    def __init__(self, cfg):
        zeros = [0] * cfg.lanes
        self.results = {}       # (cycle, unit) -> values; the reduction unit is number len(alus)
        self.entries = {(alu, entry): zeros for alu in range(len(cfg.alus)) for entry in range(4)}
        self.maps = {(name, number): bytes(cfg.lanes)
                     for name in cfg.slices("sxm") for number in range(2)}


def bits(array):
    """Patterns of an array of 32-bit values as ints."""
    return [int(value) for value in np.asarray(array).view(np.uint32)]


def ints(values):
    return np.array(values, np.uint32).view(I32)


def floats(values):
    return np.array(values, np.uint32).view(F32)


class Vectors:
    """Issues of ALUs (their opcodes name the methods), of the reduction unit and of the SXM."""

    def _operand(self, number, tile, queue, f, name, step, streams=4):
        kind, source, lanes = f[name], f[name + "_source"], self.cfg.lanes
        if kind == STREAM:
            planes = self._take(number, tile, "vxm", f, streams, name + "_source")
            return [sum(plane[lane] << 8 * i for i, plane in enumerate(planes))
                    for lane in range(lanes)]
        if kind == RESULT:
            return self._result(number, tile, source)
        if kind == ENTRY and queue.kind == "alu":
            return tile.vectors.entries[queue.unit, source % 4]
        if kind == IMMEDIATE and queue.kind == "alu":
            return [f["immediate"]] * lanes
        return [step if kind == STEP else 0] * lanes

    def _result(self, number, tile, unit):
        if (self.cycle, unit) in tile.vectors.results:
            return tile.vectors.results[self.cycle, unit]
        self._fault(number, Fault.STREAM_INVALID)
        return [0] * self.cfg.lanes

    def _exist(self, tile, unit, f, values, delay, streams=4):
        tile.vectors.results[self.cycle + delay, unit] = values
        planes = [bytes(value >> 8 * plane & 0xFF for value in values) for plane in range(streams)]
        self._put(tile, "vxm", f, planes, delay)

    def alu(self, op, number, tile, queue, f, step):
        """Issue of an ALU."""
        alu = self.cfg.alus[queue.unit]
        a = self._operand(number, tile, queue, f, "a", step, 1 if op == "FROM_INT8" else 4)
        binary = op in BINARY or op in ("SELECT", "IADD", "ISUB")
        b = self._operand(number, tile, queue, f, "b", step) if binary else None
        if op == "SELECT":
            p = self._result(number, tile, (queue.unit - 1) % len(self.cfg.alus))
            values = [x if v not in (0, 1 << 31) else y for v, x, y in zip(p, a, b, strict=True)]
        elif op in BINARY:
            values = bits(BINARY[op](floats(a), floats(b)))
        elif op in ("IADD", "ISUB"):
            sign = 1 if op == "IADD" else -1
            values = [(x + sign * y) % 2**32 for x, y in zip(a, b, strict=True)]
        elif op == "PASS":
            values = a
        elif op == "FROM_INT32":
            values = bits(fp.from_int32(ints(a)))
        elif op == "FROM_INT8":
            values = bits(np.array([(x & 0xFF ^ 0x80) - 0x80 for x in a], F32))
        elif op in FLOATS:
            values = bits(FLOATS[op](floats(a)))
        else:
            values = bits(TO_INTEGER[op](floats(a)))
        if ALU_FEATURE.get(op, alu.features[0]) not in alu.features:
            self._fault(number, Fault.ICU_WORD)
            values = [0] * self.cfg.lanes
        self._exist(tile, queue.unit, f, values, alu.depth,
                    {"TO_INT8": 1, "TO_LIMBS": 2}.get(op, 4))
        if f["keep"]:
            def store():
                tile.vectors.entries[queue.unit, f["entry"]] = values
            # there when the result is: at the end of the cycle before
            self._later(tile, alu.depth - 1, store)

    def reduction(self, op, number, tile, queue, f, step):
        """Issue of the reduction unit."""
        values = self._operand(number, tile, queue, f, "a", step)
        combine = {"SUM": fp.add, "MAX": fp.max_, "MIN": fp.min_}[op]
        levels = 0
        while len(values) > 1:
            levels += 1
            pairs = [values[i:i + 2] for i in range(0, len(values), 2)]
            values = [pair[0] if len(pair) == 1 else
                      bits(combine(floats(pair[:1]), floats(pair[1:])))[0] for pair in pairs]
        self._exist(tile, len(self.cfg.alus), f, values * self.cfg.lanes,
                    levels * self.cfg.reduce_depth)

    def _moved(self, number, tile, queue, f, choose):
        """Lane ``i`` takes lane ``choose(i)``; zero where that is no lane."""
        lanes, moved = self.cfg.lanes, []
        for vector in self._take(number, tile, queue.slice, f, 4 if f["quad"] else 1):
            sources = [choose(i) for i in range(lanes)]
            moved.append(bytes(vector[s] if 0 <= s < lanes else 0 for s in sources))
        self._put(tile, queue.slice, f, moved, 2)

    def _shift(self, number, tile, queue, f, *_):
        self._moved(number, tile, queue, f, lambda i: i - f["amount"])

    def _rotate(self, number, tile, queue, f, *_):
        self._moved(number, tile, queue, f, lambda i: (i - f["amount"]) % self.cfg.lanes)

    def _distribute(self, number, tile, queue, f, *_):
        self._moved(number, tile, queue, f, lambda i: f["amount"])

    def _permute(self, number, tile, queue, f, *_):
        numbers = tile.vectors.maps[queue.slice, f["map"]]
        self._moved(number, tile, queue, f, lambda i: numbers[i])

    def _map(self, number, tile, queue, f, *_):
        vector, = self._take(number, tile, queue.slice, f)

        def store():
            tile.vectors.maps[queue.slice, f["map"]] = vector
        self._later(tile, 1, store)


def _method(op):
    def issue(self, number, tile, queue, f, indices, step, predicate):
        run = self.alu if queue.kind == "alu" else self.reduction
        run(op, number, tile, queue, f, step)
    return issue


for _op in (*OPS, "SUM"):
    setattr(Vectors, f"_{_op.lower()}", _method(_op))
