"""Benches of a queue's sequencer."""

from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import data

from hdl.arch import isa
from hdl.arch.presets import NANO
from hdl.arch.timing import ICU_LEAD
from sim.formal.open_icu import OpenIcu
from sim.formal.queue_spec import QueueSpec
from sim.formal.twins import twins, when

__all__ = ["DEPTH", "LONGEST", "durations", "other_data", "specified"]

#: In `durations`: bounds of ``wait``, of ``count`` and of ``interval``.
_WAIT, _COUNT, _INTERVAL = 1, 3, 2
#: Cycles of the longest word within them.
LONGEST = (_COUNT - 1) * _INTERVAL + 1 + _WAIT
#: Cycles of two of them, from reset to the last issue.
DEPTH = 2 * LONGEST + 6


def _fields(kind, name, word):
    """`View` of the fields of opcode ``name`` of a queue of ``kind`` in ``word``."""
    layout = isa.layout(NANO, kind, isa.KINDS[kind].ops[name])
    return data.View(layout, word[:layout.size])


def _driven_icu(bench, kind, mutation):
    """An `OpenIcu` that is started while it is halted; (ICU, its registers)."""
    icu = OpenIcu(NANO, kind)
    registers, _ = bench.place("icu", icu, mutation)
    go = bench.free(1, "go")
    bench.m.d.comb += [
        icu.go.eq(go), icu.fetched.eq(bench.free(len(icu.fetched), "word")),
        icu.first_step.eq(bench.constant(isa.COUNTER_BITS, "first_step")),
        icu.steps.eq(bench.constant(isa.COUNTER_BITS, "steps"))]
    bench.assume(icu.steps != 0)
    bench.assume(~go | icu.halted)
    return icu, registers


def _delayed(bench, value, name):
    """``value`` of 0, 1, .. `ICU_LEAD` cycles before."""
    stages = [value]
    for stage in range(1, ICU_LEAD + 1):
        stages.append(Signal(value.shape(), name=f"{name}_{stage}"))
        bench.m.d.sync += stages[-1].eq(stages[-2])
    return stages


def specified(bench, kind, mutation=None):
    """The ICU of ``kind`` beside `QueueSpec`, for any words, counts and steps."""
    icu, registers = _driven_icu(bench, kind, mutation)
    spec = QueueSpec(bench.m, NANO, kind, go=icu.go, first_step=icu.first_step, steps=icu.steps,
                     fetched=icu.fetched)
    bench.check("fetch", icu.memory.en == spec.fetch)
    bench.check("address", ~spec.fetch | spec.fault | (icu.memory.addr == spec.address))
    issue, word, step = (_delayed(bench, value, name) for value, name in (
        (spec.issue, "spec_issue"), (spec.word, "spec_word"), (spec.step, "spec_step")))
    bench.check("issue", icu.issue.valid == issue[-1])
    bench.check("word", ~icu.issue.valid | (icu.issue.word == word[-1]))
    bench.check("step", ~icu.issue.valid | (icu.issue.step == step[-1]))
    bench.check("halted", icu.halted == ~(spec.active | Cat(issue[1:]).any()))
    fault = Signal(name="spec_fault_1")
    bench.m.d.sync += fault.eq(spec.fault)
    bench.check("fault", icu.fault == fault)
    _relate(bench, registers, spec)
    for stage in range(1, ICU_LEAD):
        bench.check(f"pipeline_{stage}", registers[f"valid_s{stage}"] == issue[stage])
        for name, values in (("word", word), ("index_0", step)):
            bench.check(f"pipeline_{name}_{stage}", ~issue[stage] | (
                registers[f"{name}_s{stage}"] == values[stage]))
    bench.cover("issue", icu.issue.valid)
    bench.cover("fault", icu.fault)
    bench.cover("loop_ends", spec.active & spec.ends & (spec.depth == 2)
                & (spec.address != spec.place + 1))
    bench.cover("last_repetition", spec.issue & spec.is_op["REPEAT"] & (spec.count == 2)
                & (spec.interval == 3) & (spec.acted == 1))


def _relate(bench, registers, spec):
    """What the ICU's registers hold, told by those of the specification: the invariants."""
    repeats, inside = spec.is_op["REPEAT"], spec.active & ~spec.first

    def check(name, when, condition):
        bench.check(f"register_{name}", ~when | condition)

    check("active", 1, registers["_active"] == spec.active)
    check("first", spec.active, registers["_first"] == spec.first)
    check("place", spec.active, registers["_pc"] == spec.place)
    check("word", spec.active, registers["fetch_register"] == spec.register)
    check("holds", spec.active, registers["can_repeat"] == spec.holds)
    check("depth", spec.active, registers["_depth"] == spec.depth)
    check("held", spec.active & (spec.holds & spec.first | inside & (spec.is_op["unit"] | repeats)),
          registers["held"] == Mux(spec.first, spec.held, spec.word))
    # Repetitions and idle cycles: the ICU counts down, the specification up.
    check("left", inside, registers["left"] + spec.acted == spec.count)
    check("acted", inside, (spec.acted != 0) & (spec.acted <= spec.count))
    until = Mux(spec.acted == spec.count, spec.tail, spec.interval)
    check("rest", inside, registers["rest"] + spec.since == until)
    check("since", inside, (spec.since != 0) & (spec.since <= until))
    check("bounds", spec.active, (spec.place < NANO.icu_words)
          & (spec.depth <= NANO.loop_levels))
    for level in range(NANO.loop_levels):
        opened, index = spec.active & (spec.depth > level), registers[f"index_{level}"]
        iteration, total = spec.iteration[level], spec.total[level]
        check(f"iteration_{level}", opened, iteration < total)
        check(f"left_{level}", opened, registers[f"left_{level}"] + iteration + 1 == total)
        check(f"body_{level}", opened, registers[f"body_{level}"] == spec.start[level])
        first = spec.first_step if level == 0 else 0
        check(f"index_{level}", opened, index == (iteration + first)[:isa.COUNTER_BITS])
        check(f"no_index_{level}", spec.active & (spec.depth <= level), index == 0)


def durations(bench, kind, mutation=None):
    """The ICU of ``kind`` and the formulas of the documentation, for short words without faults.

    The only state besides the ICU's is the number of cycles since the word was fetched.
    """
    icu, registers = _driven_icu(bench, kind, mutation)
    word, active = registers["fetch_register"], registers["_active"]
    elapsed = Signal(8, name="elapsed")
    bench.m.d.sync += elapsed.eq(Mux(icu.memory.en, 0, elapsed + 1))
    ops = isa.KINDS[kind].ops
    repeat = _fields(kind, "REPEAT", word)
    op = Signal(isa.OP_BITS, name="opcode")
    unit = Signal(name="is_unit_word")
    count, interval = Signal(2, name="count"), Signal(2, name="interval")
    bench.m.d.comb += [
        op.eq(word[:isa.OP_BITS]),
        unit.eq(Cat(op == one.value for one in isa.formats(NANO, kind)).any()),
        count.eq(Mux((op == ops.REPEAT.value) & (repeat.count != 0), repeat.count, 1)),
        interval.eq(Mux(repeat.interval == 0, 1, repeat.interval))]
    known = unit | Cat(op == ops[name].value for name in ("NOP", "HALT", "LOOP", "REPEAT")).any()
    nop = _fields(kind, "NOP", word)
    bench.assume(~active | (known & (repeat.ends == 0) & (repeat.wait <= _WAIT)))
    bench.assume(~active | (op != ops.NOP.value) | (nop.more == 0))
    bench.assume(~active | (op != ops.LOOP.value) | (registers["_depth"] < NANO.loop_levels))
    bench.assume(~active | (op != ops.REPEAT.value) | (
        registers["can_repeat"] & (repeat.count <= _COUNT) & (repeat.interval <= _INTERVAL)))
    bench.assume(~active | (registers["_pc"] < NANO.icu_words - 1))
    duration = (count - 1) * interval + 1 + repeat.wait
    runs = active & (op != ops.HALT.value)
    bench.check("duration", ~runs | (icu.memory.en == (elapsed + 1 == duration)))
    hits = Cat((r < count) & (elapsed == r * interval) for r in range(_COUNT)).any()
    due = Signal(name="due")
    bench.m.d.comb += due.eq(runs & (unit | (op == ops.REPEAT.value)) & hits)
    bench.check("issue", icu.issue.valid == _delayed(bench, due, "due")[-1])
    bench.cover("longest", runs & (duration == LONGEST) & icu.memory.en)


def other_data(bench, kind, mutation=None):
    """Two ICUs of ``kind`` whose programs differ in what is no timing.

    Equal are: opcode, ``ends`` and ``wait`` of every word, ``more`` of a NOP, the count of a LOOP,
    count and interval of a REPEAT.  All other bits of words, and the tables, may differ.
    """
    timed = isa.OP_BITS + isa.ENDS_BITS + isa.WAIT_BITS
    ops = isa.KINDS[kind].ops

    def timing(word):
        op, rest = word[:isa.OP_BITS], word[timed:]
        repeat = _fields(kind, "REPEAT", word)
        counted = Mux(op == ops.REPEAT.value, Cat(repeat.count, repeat.interval), 0)
        told = (op == ops.NOP.value) | (op == ops.LOOP.value)
        return Cat(word[:timed], counted, Mux(told, rest, 0))

    active, inside = when("_active"), (lambda value, r: Mux(r["_active"] & ~r["_first"], value, 0))
    opened = {f"{name}_{i}": (lambda value, r, i=i: Mux(r["_active"] & (r["_depth"] > i), value, 0))
              for name in ("left", "body") for i in range(NANO.loop_levels)}
    partly = {
        "_pc": active, "_first": active, "_depth": active, "can_repeat": active,
        "rest": inside, "left": inside, **opened,
        "fetch_register": lambda word, r: Mux(r["_active"], timing(word), 0),
        "held": lambda word, r: Mux(r["_active"] & (~r["_first"] | r["can_repeat"]),
                                    word[:isa.OP_BITS], 0),
        **{f"word_s{i}": lambda word, r, i=i: Mux(
            r[f"valid_s{i}" if i < ICU_LEAD else "issue__valid"], word[:isa.OP_BITS], 0)
           for i in range(1, ICU_LEAD + 1)},
        **{f"index_0_s{i}": when(f"valid_s{i}" if i < ICU_LEAD else "issue__valid")
           for i in range(1, ICU_LEAD + 1)},
        "issue__word": lambda word, r: Mux(r["issue__valid"], word[:isa.OP_BITS], 0),
        "issue__step": when("issue__valid"),
    }
    copies, registers = twins(
        bench, lambda: OpenIcu(NANO, kind), mutation=mutation, partly=partly,
        data=("load__*", "issue__predicate", *_index_names(kind)))
    for side, held in zip("ab", registers, strict=True):
        repeats = held["fetch_register"][:isa.OP_BITS] == ops.REPEAT.value
        bench.check(f"no_repetition_{side}", ~held["_active"] | held["_first"] | repeats
                    | (held["left"] == 0))
    words = [bench.free(isa.word_bits(NANO, kind), f"word_{side}") for side in "ab"]
    bench.assume(timing(words[0]) == timing(words[1]))
    bench.assume(~copies[0].go | copies[0].halted)
    for copy, word in zip(copies, words, strict=True):
        bench.m.d.comb += copy.fetched.eq(word)
    bench.cover("differs", (copies[0].issue.word != copies[1].issue.word) & copies[0].issue.valid)


def _index_names(kind):
    """Patterns of what is computed from tables and strides."""
    spec = isa.KINDS[kind]
    found = ["issue__index"] * bool(spec.indices) + [f"{index.name}_*" for index in spec.indices]
    return (*found, "always_s1", "predicate_*", "holds_s*") if spec.predicate else found
