"""What a queue does, cycle after cycle, as docs/architecture.md tells it."""

from hdl.arch import isa
from hdl.arch.encoding import EncodingError, decode

__all__ = ["ICU_FAULT", "queue_cycles"]

ICU_FAULT = "fault"


def queue_cycles(cfg, kind, words, table, first_step, steps):
    """Generator of what a queue does in each cycle: None, ICU_FAULT (then it ends), or an issue
    (word, opcode, fields, indices, step, predicate)."""
    spec = isa.KINDS[kind]
    bits = isa.index_bits(cfg, kind)
    table = list(table) + [(0, 0, 0)] * 8
    loops = []          # [first word of the body, iterations left behind this one, index]
    unit = None
    pc = 0

    def issue(r, strides):
        word, op, fields = unit
        step = loops[0][2] if loops else 0
        indices = []
        for index, width in zip(spec.indices, bits, strict=True):
            value = fields[index.name] + r * strides.get(index.name + "_stride", 0)
            if spec.terms:
                for level, loop in enumerate(loops):
                    shift, mask, factor = table[fields[index.name + "_terms"][level]]
                    value += ((loop[2] >> shift) & mask) * factor
            indices.append(value % 2 ** width)
        shift, mask, match = table[fields.get("predicate", 0)]
        return word, op, fields, indices, step, ((step >> shift) & mask) == match

    while True:
        if pc == len(words):
            yield ICU_FAULT
            return
        word = words[pc]
        try:
            op, fields = decode(cfg, kind, word)
        except EncodingError:
            yield ICU_FAULT
            return
        pc += 1
        if fields["ends"] > len(loops) or op == "REPEAT" and unit is None or \
                op == "LOOP" and (fields["ends"] or len(loops) == cfg.loop_levels):
            yield ICU_FAULT
            return
        if op == "HALT":
            return
        idle = fields["wait"]
        if op == "NOP":
            unit = None
            idle += 256 * fields["more"]
            yield None
        elif op == "LOOP":
            unit = None
            yield None
        elif op == "REPEAT":
            count, interval = max(1, fields["count"]), max(1, fields["interval"])
            for r in range(1, count + 1):
                yield issue(r, fields)
                if r < count:
                    for _ in range(interval - 1):
                        yield None
        else:
            unit = word, op, fields
            yield issue(0, {})
        for _ in range(idle):
            yield None
        if op == "LOOP":
            loops.append([pc, (fields["count"] or steps) - 1,
                          first_step if not loops else 0])
        for _ in range(fields["ends"]):
            if loops[-1][1]:
                loops[-1][1] -= 1
                loops[-1][2] = (loops[-1][2] + 1) % 2 ** 20
                pc = loops[-1][0]
                break
            loops.pop()
