"""ALUs: a RESULT is read in the one cycle in which it exists, an entry once it holds a value."""

from hdl.arch.isa import Operand
from hdl.arch.ops import ALU_FEATURE, TWO_OPERANDS
from hdl.arch.timing import of

from ..errors import VerifyError

__all__ = ["check_alus"]


def check_alus(cfg, events):
    """Check RESULT and ENTRY operands, predicates and features of every ALU instruction.

    Raises
    ------
    VerifyError
        Naming cycle, tile and ALU of the first fault.
    """
    mine = [event for event in events if event.queue.kind in ("alu", "reduce")]
    results, kept = set(), {}
    for event in mine:
        unit = event.queue.unit if event.queue.kind == "alu" else len(cfg.alus)
        done = event.cycle + of(cfg, event.queue, event.op).t_d
        results.add((event.tile, unit, done))
        if event.fields.get("keep"):
            kept.setdefault((event.tile, unit, event.fields["entry"]), []).append(done)
    for event in mine:
        where = f"Cycle {event.cycle}: tile {event.tile} {event.queue.name} {event.op}"
        alu = event.queue.kind == "alu"
        if alu:
            feature = ALU_FEATURE.get(event.op)
            if feature and feature not in cfg.alus[event.queue.unit].features:
                raise VerifyError(f"{where} needs the feature {feature!r}")
        if event.op == "SELECT":
            before = (event.queue.unit - 1) % len(cfg.alus)
            if (event.tile, before, event.cycle) not in results:
                raise VerifyError(f"{where} has no predicate: alu{before} gives no result")
        for name in ("a", "b") if alu and event.op in TWO_OPERANDS else ("a",):
            source = event.fields[f"{name}_source"]
            if event.fields[name] == Operand.RESULT.value and \
                    (event.tile, source, event.cycle) not in results:
                raise VerifyError(f"{where} reads a result of unit {source}, which gives none")
            if alu and event.fields[name] == Operand.ENTRY.value and not any(
                    done <= event.cycle
                    for done in kept.get((event.tile, event.queue.unit, source), ())):
                raise VerifyError(f"{where} reads entry {source}, which nobody has kept")
