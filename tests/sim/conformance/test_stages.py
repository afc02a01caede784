"""Everything at a fixed time behind a release: what that lets pass, and what it does not."""

from dataclasses import replace

import numpy as np
import pytest

from compiler.packets import packet_collective
from compiler.plan import expand
from compiler.program import from_plan
from hdl.arch.config import all_to_all
from hdl.arch.errors import Fault
from hdl.arch.presets import DEMO
from sim.collectives import operands
from sim.conformance.stages import check_stages
from sim.events import Events, Observation

STEPS = 2


@pytest.fixture(scope="module")
def program():
    tile = replace(DEMO, mem_words=256, sync=True,
                   ports=(replace(DEMO.ports[0], fifo=64),) * 2)
    system = all_to_all(tile, 3)
    data = operands(system, "all_reduce", 4, np.random.default_rng(1))
    plan, memory, stages = packet_collective(system, "all_reduce", "two_shot", data)
    return from_plan(plan, memory), stages.starts


def seen(program, starts, late, steps=STEPS):
    """What a machine shows that begins stage ``g`` of step ``s`` on tile ``t`` ``late[t][s][g]``
    cycles late."""
    period = program.plan.root.children[0].period
    planned, tables = expand(program.plan, steps), []
    for table in (planned["issues"], planned["writes"]):
        for tile, stages in enumerate(starts):
            mine = table["tile"] == tile
            step, within = np.divmod(table["cycle"][mine].astype(int), period)
            stage = np.searchsorted(stages, within, "right") - 1
            table["cycle"][mine] += np.array(late[tile])[step, stage].astype(table["cycle"].dtype)
        tables.append(table)
    return Observation(Events(*tables, planned["arrivals"]), faults=(0,) * len(starts))


def lateness(starts, rng, steps=STEPS):
    """By tile (steps, stages): 0 first, and never less than before."""
    waits = [rng.integers(0, 90, (steps, len(stages))) for stages in starts]
    for wait in waits:
        wait[0, 0] = 0
    return [wait.cumsum().reshape(wait.shape) for wait in waits]


def test_any_wait_between_stages_is_right(program, rng):
    program, starts = program
    assert all(len(stages) == 3 for stages in starts)
    late = lateness(starts, rng)
    found = check_stages(program.plan, starts, seen(program, starts, late), STEPS)
    assert found.ok, found.problems
    planned = expand(program.plan, STEPS)
    assert found.equal == {kind: len(planned[kind]) for kind in ("issues", "writes")}
    for mine, wanted in zip(found.late, late, strict=True):
        np.testing.assert_array_equal(mine, wanted)
    assert found.summary().endswith("from 18 releases, 0 problems")


def _moved(events, kind, number):
    table = getattr(events, kind)
    table["cycle"][number] += 1


def _lost(events, kind, number):
    return events._replace(**{kind: np.delete(getattr(events, kind), number)})


def _other(events, kind, number):
    getattr(events, kind)["index" if kind == "issues" else "address"][number] ^= 1


@pytest.mark.parametrize("kind", ["issues", "writes"])
@pytest.mark.parametrize(("change", "says"), [
    # where it meets another of its unit, the two may change places
    (_moved, ("are late by", "are not those planned")),
    (_lost, ("planned,",)), (_other, ("are not those planned",))])
def test_what_is_not_as_planned(program, rng, kind, change, says):
    program, starts = program
    observed = seen(program, starts, lateness(starts, rng))
    number = int(rng.integers(len(getattr(observed.events, kind))))
    events = change(observed.events, kind, number) or observed.events
    found = check_stages(program.plan, starts, replace(observed, events=events), STEPS)
    assert not found.ok and any(one in line for one in says for line in found.problems), \
        found.problems


def test_a_stage_cannot_begin_before_the_one_in_front_of_it_has_ended(program, rng):
    program, starts = program
    late = lateness(starts, rng)
    late[1][1, 1] = late[1][1, 0] - 1
    found = check_stages(program.plan, starts, seen(program, starts, late), STEPS)
    assert any("must begin with 0 and never fall" in line for line in found.problems)
    late = lateness(starts, rng)
    late[2] += 1
    found = check_stages(program.plan, starts, seen(program, starts, late), STEPS)
    assert any("must begin with 0" in line for line in found.problems)


def test_faults_and_queues_that_run_on(program, rng):
    program, starts = program
    observed = seen(program, starts, lateness(starts, rng))
    observed = replace(observed, faults=(0, 1 << Fault.FIFO_OVERFLOW, 0), running=((2, "alu0"),))
    found = check_stages(program.plan, starts, observed, STEPS)
    assert len(found.problems) == 2
    assert "FIFO_OVERFLOW" in found.problems[0] and "alu0 has not halted" in found.problems[1]
