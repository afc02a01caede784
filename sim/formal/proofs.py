"""The proofs: what is proved, how, and the broken variants that must not pass."""

from dataclasses import dataclass
from functools import partial

from hdl.arch import isa
from hdl.arch.presets import NANO
from sim.formal import broken, links, memory, queues, stage, units

__all__ = ["BOUNDED", "INDUCTION", "PROOFS", "Proof"]

INDUCTION, BOUNDED = "induction", "bounded"


@dataclass(frozen=True)
class Proof:
    """One statement about the hardware.

    Attributes
    ----------
    name : str
    says : str
        The statement, in one line.
    build : function of (Bench, mutation)
        Fills a bench.
    method : str
        `INDUCTION`: for ever; `BOUNDED`: for ``depth`` cycles.
    depth : int
        Cycles from the first, which is in reset.
    broken : tuple of function
        Mutations, each of which must give a counterexample.
    reach : int
        Cycles in which everything that is covered must be reached.
    """
    name: str
    says: str
    build: object
    method: str
    depth: int
    broken: tuple
    reach: int = 4


def _queues():
    for kind in isa.KINDS:
        yield Proof(
            f"icu-data-{kind}", "issues do not depend on tables, strides or fields of units",
            partial(queues.other_data, kind=kind), INDUCTION, 4, (broken.a_wait_from_data,), 10)
        yield Proof(
            f"icu-spec-{kind}", "every word takes the time, and issues when, the ISA says",
            partial(queues.specified, kind=kind), INDUCTION, 4,
            (broken.a_later_repetition, broken.a_loop_too_long), 20)
    yield Proof(
        "icu-durations", f"durations by formula, words of up to {queues.LONGEST} cycles",
        partial(queues.durations, kind="sxm"), BOUNDED, queues.DEPTH,
        (broken.a_later_repetition,), queues.DEPTH)


def _stages():
    """Stages that differ in the taps or ports they have, or in being last."""
    seen = set()
    for position, name in enumerate(NANO.floorplan):
        shape = str(stage.shape(position))
        if shape in seen:
            continue
        seen.add(shape)
        last = stage.last(position)
        moving = next(way for way in stage.DIRECTIONS if way != last)
        yield Proof(
            f"stream-data-{name}", "validity does not depend on what streams carry",
            partial(stage.other_data, position=position), INDUCTION, 3,
            (broken.valid_from_vector(moving),))
        for way in stage.DIRECTIONS:
            mutations = (broken.stays_when_cleared(way), broken.changed_on_the_way(way))
            yield Proof(
                f"stream-kept-{name}-{way}",
                "a value moves on unless cleared or replaced; nothing else does",
                partial(stage.kept, position=position, direction=way), INDUCTION, 2,
                (broken.lost_unseen,) if way == last else mutations)


def _units():
    for name, register in (("sxm", "values"), ("mxm", "vectors")):
        yield Proof(f"{name}-data", "when a unit reads and writes streams does not depend on what",
                    partial(units.other_data, name=name), INDUCTION, 4,
                    (broken.port_from(register, units.UNITS[name][1]),), 12)
    yield Proof("mem-data", "when a slice reads and writes does not depend on words and addresses",
                memory.other_data, INDUCTION, 4, (broken.valid_from_address,))
    yield Proof("c2c-data", "when links and streams carry something does not depend on what",
                links.other_data, INDUCTION, 4, (broken.valid_from_received,), 12)
    yield Proof("link-plan", "what is sent, from when on, and what is refused",
                links.planned, INDUCTION, 4, (broken.issues_while_busy,), 12)
    yield Proof("link-transmit", "every flit is sent once, in order, without a gap",
                links.transmitted, INDUCTION, 4, (broken.a_flit_twice,), 12)
    yield Proof("link-receive", "what arrives is given once, in order, or a fault is told",
                links.received, INDUCTION, 4, (broken.an_underflow_takes,), 24)


#: By name.
PROOFS = {proof.name: proof for proof in (*_queues(), *_stages(), *_units())}
