"""What a queue does, word by word: an interpreter that shares nothing with the hardware's
sequencer, and a generator of random programs for it."""

from typing import NamedTuple

from hdl.arch import isa
from hdl.arch.encoding import EncodingError, decode, encode

__all__ = ["Issue", "Interpreted", "interpret", "random_program", "random_table"]


class Issue(NamedTuple):
    """One issue: cycle after the start, word, indices, step and predicate."""
    cycle: int
    word: int
    indices: tuple
    step: int
    predicate: bool


class Interpreted(NamedTuple):
    """``syncs``: cycle and links of every SYNC, as if none of them ever waited."""
    issues: list
    fault: bool
    syncs: list


def _terms(entry, indices):
    """Sum of one index's terms: ``entry[l]`` is the table entry for level ``l``."""
    return sum(((i >> shift) & mask) * step
               for (shift, mask, step), i in zip(entry, indices, strict=True))


def interpret(cfg, kind, words, table=(), first_step=0, steps=1, limit=100_000):
    """Issues of a queue from the start to its HALT, and whether it sets ICU_WORD."""
    spec = isa.KINDS[kind]
    bits = isa.index_bits(cfg, kind)
    table = [(0, 0, 0), *table[1:]] if table else [(0, 0, 0)] * isa.TABLE_ENTRIES
    issues, syncs, open_loops, held, pc, t = [], [], [], None, 0, 0

    def issue(at, word, fields, r, strides):
        levels = [loop["index"] for loop in open_loops]
        levels += [0] * (cfg.loop_levels - len(levels))
        found = []
        for index, width in zip(spec.indices, bits, strict=True):
            value = fields[index.name] + r * strides.get(f"{index.name}_stride", 0)
            if spec.terms:
                entry = [table[e] for e in fields[f"{index.name}_terms"]]
                value += _terms(entry, levels)
            found.append(value % (1 << width))
        predicate = True
        if spec.predicate and fields["predicate"]:
            shift, mask, step = table[fields["predicate"]]
            predicate = levels[0] >> shift & mask == step
        issues.append(Issue(at, word, tuple(found), levels[0], predicate))

    while len(issues) < limit:
        if pc >= cfg.icu_words:
            return Interpreted(issues, True, syncs)
        word = words[pc]
        try:
            op, fields = decode(cfg, kind, word)
        except EncodingError:
            return Interpreted(issues, True, syncs)
        if fields["ends"] > len(open_loops):
            return Interpreted(issues, True, syncs)
        duration = 1 + fields["wait"]
        if op == "HALT":
            return Interpreted(issues, False, syncs)
        if op == "LOOP":
            if len(open_loops) == cfg.loop_levels or fields["ends"]:
                return Interpreted(issues, True, syncs)
            open_loops.append({"body": pc + 1, "left": (fields["count"] or steps) - 1,
                               "index": 0 if open_loops else first_step})
            held = None
        elif op == "NOP":
            duration += fields["more"] << isa.WAIT_BITS
            held = None
        elif op == "SYNC":
            syncs.append((t, fields["links"]))
            held = None
        elif op == "REPEAT":
            if held is None:
                return Interpreted(issues, True, syncs)
            count, interval = max(fields["count"], 1), max(fields["interval"], 1)
            for r in range(1, count + 1):
                issue(t + (r - 1) * interval, *held, r, fields)
            duration += (count - 1) * interval
        else:
            held = word, fields
            issue(t, word, fields, 0, {})
        t += duration
        pc += 1
        for _ in range(fields["ends"]):
            if open_loops[-1]["left"]:
                open_loops[-1]["left"] -= 1
                open_loops[-1]["index"] += 1
                pc = open_loops[-1]["body"]
                break
            open_loops.pop()
    return Interpreted(issues, False, syncs)


def _random_fields(rng, cfg, kind, op):
    """Random values for every field of a unit opcode but `ends` and `wait`."""
    found = {}
    for name, field in isa.layout(cfg, kind, op):
        if name in ("op", "ends", "wait"):
            continue
        if name.endswith("_terms"):
            found[name] = [int(x) for x in rng.integers(0, isa.TABLE_ENTRIES, cfg.loop_levels)]
        elif name == "mode":
            found[name] = int(rng.integers(0, 3))
        else:
            found[name] = int(rng.integers(0, 1 << field.width))
    return found


def random_table(rng, cfg, kind):
    """A table whose entries make small steps, large steps and masks of every kind."""
    step_bits = isa.table_layout(cfg, kind)["step"].width
    table = [(0, 0, 0)]
    for _ in range(isa.TABLE_ENTRIES - 1):
        mask = int(rng.choice([1, 3, 7, (1 << isa.COUNTER_BITS) - 1]))
        if rng.random() < 0.5:      # as a predicate it holds now and then
            step = int(rng.integers(0, 4))
        else:
            step = int(rng.integers(-(1 << step_bits - 1), 1 << step_bits - 1))
        table.append((int(rng.integers(0, 4)), mask, step))
    return table


def random_program(rng, cfg, kind, length=10):
    """Words of a program of nested loops, repeats, waits and NOPs, with HALT at the end."""
    spec = isa.KINDS[kind]
    units = list(isa.formats(cfg, kind))

    def repeat():
        strides = {f"{index.name}_stride": int(rng.integers(-(1 << bits), 1 << bits))
                   for index, bits in zip(spec.indices, isa.index_bits(cfg, kind),
                                           strict=True)}
        return "REPEAT", {"count": int(rng.integers(0, 4)), "interval": int(rng.integers(0, 4)),
                          **strides}

    def unit():
        op = units[rng.integers(len(units))]
        return op.name, _random_fields(rng, cfg, kind, op)

    def body(depth, size):
        found = []
        while len(found) < size or not found:
            choice = rng.random()
            if choice < 0.35 and depth < cfg.loop_levels:
                inner = body(depth + 1, int(rng.integers(1, 4)))
                count = int(rng.integers(0 if rng.random() < 0.5 else 1, 4))
                inner[-1][1]["ends"] = inner[-1][1].get("ends", 0) + 1
                found += [("LOOP", {"count": count}), *inner]
            elif choice < 0.45:
                found.append(("NOP", {"more": int(rng.random() < 0.2)}))
            else:
                found.append(unit())
                while rng.random() < 0.3:
                    found.append(repeat())
        return found

    program = [*body(0, length), ("HALT", {})]
    for _, fields in program:
        fields["wait"] = int(rng.choice([0, 0, 0, 1, 2, 5]))
    return [encode(cfg, kind, op, **fields) for op, fields in program]
