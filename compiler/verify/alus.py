"""VXM and SXM, issue by issue: a RESULT is read in the one cycle in which it exists, an entry and a
lane map once they hold a value."""

from bisect import bisect_left
from collections import defaultdict
from itertools import pairwise

from hdl.arch.isa import ALU_ENTRIES, Operand
from hdl.arch.ops import ALU_FEATURE, TWO_OPERANDS
from hdl.arch.timing import of, rules

from .faults import NEVER, fault

__all__ = ["check_alus", "check_maps"]


def check_alus(cfg, events):
    """Check RESULT and ENTRY operands, predicates and features of every ALU instruction.

    An entry counts as right from the cycle on in which any result kept there exists; which one the
    program means it does not say.  But an instruction that keeps a result there less than ``t_d``
    cycles behind another must leave it time to be read, and somebody must read it.

    Returns
    -------
    list of Fault
    """
    mine = [event for event in events if event.queue.kind in ("alu", "reduce")]
    results, kept, entries, faults = set(), {}, defaultdict(lambda: ([], [])), []
    for event in mine:
        unit = event.queue.unit if event.queue.kind == "alu" else len(cfg.alus)
        done = event.cycle + of(cfg, event.queue, event.op).t_d
        results.add((event.tile, unit, done))
        if event.fields.get("keep"):
            entry = event.tile, unit, event.fields["entry"]
            kept.setdefault(entry, done)
            entries[entry][0].append((done, event))
    for event in mine:
        faults += _operands(cfg, event, results, kept, entries)
    for keeps, reads in entries.values():
        faults += _lost(keeps, reads)
    return faults


def _fault(kind, event, cycle=None, **what):
    return fault(kind, event.cycle if cycle is None else cycle, tile=event.tile,
                 queue=event.queue.name, op=event.op, **what)


def _lost(keeps, reads):
    """Faults of one entry: keeps are (cycle from which it is there, event), reads are cycles, both
    in order of time."""
    for (before, earlier), (after, event) in pairwise(keeps):
        if event.cycle < before and bisect_left(reads, before) == bisect_left(reads, after):
            yield _fault("lost", event, after, at=event.cycle, entry=event.fields["entry"],
                         t_d=before - earlier.cycle)


def _operands(cfg, event, results, kept, entries):
    alu = event.queue.kind == "alu"
    if alu:
        feature = ALU_FEATURE.get(event.op)
        if feature and feature not in cfg.alus[event.queue.unit].features:
            yield _fault("feature", event, feature=feature)
    if event.op == "SELECT":
        before = (event.queue.unit - 1) % len(cfg.alus)
        if (event.tile, before, event.cycle) not in results:
            yield _fault("predicate", event, unit=before)
    for name in ("a", "b") if alu and event.op in TWO_OPERANDS else ("a",):
        source = event.fields[f"{name}_source"]
        if event.fields[name] == Operand.RESULT.value and \
                (event.tile, source, event.cycle) not in results:
            yield _fault("result", event, unit=source)
        entry = source % ALU_ENTRIES
        if alu and event.fields[name] == Operand.ENTRY.value:
            key = event.tile, event.queue.unit, entry
            entries[key][1].append(event.cycle)
            if kept.get(key, NEVER) > event.cycle:
                yield _fault("entry", event, entry=entry)


def check_maps(cfg, events):
    """Check that every PERMUTE finds a lane map; returns a list of `Fault`."""
    seen, faults = {}, []
    for event in events:
        if event.op == "MAP":
            seen.setdefault((event.tile, event.queue.name, event.fields["map"]),
                            event.cycle + rules(cfg).map_to_permute)
        elif event.op == "PERMUTE":
            key = event.tile, event.queue.name, event.fields["map"]
            if seen.get(key, event.cycle + 1) > event.cycle:
                faults.append(fault("map", event.cycle, tile=event.tile, queue=event.queue.name,
                                    number=event.fields["map"]))
    return faults
