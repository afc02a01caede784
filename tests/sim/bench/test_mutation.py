import copy
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from hdl.arch.encoding import decode
from hdl.arch.errors import FAULT_MEANING, Fault
from sim.bench import mutation
from sim.bench.mutation import (
    EQUAL,
    KILLED,
    MASKED,
    MISSED,
    Bench,
    input_outcomes,
    netlist_outcomes,
)
from sim.bench.workloads import workloads
from sim.emulate import run_emulator

INPUTS = NETLIST = 20


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench(1, run_dir=tmp_path_factory.mktemp("mutation"))


@pytest.fixture(scope="module")
def inputs(bench):
    return input_outcomes(bench, np.random.default_rng(2), INPUTS)


@pytest.fixture(scope="module")
def netlist(bench):
    return netlist_outcomes(bench, bench.mutations[:NETLIST])


def test_no_mutant_of_the_inputs_is_missed(inputs):
    counts = Counter(outcome.verdict for outcome in inputs)
    assert len(inputs) == INPUTS
    assert counts[MISSED] == 0
    assert counts[KILLED] > INPUTS / 2


def test_a_decode_is_among_the_inputs_of_emulator_and_rtl(bench, inputs):
    mine = [outcome for outcome in inputs if outcome.what.startswith("decode: ")]
    assert {"emulator", "RTL"} <= {outcome.group for outcome in mine}
    assert len(bench.unmutated["decode"].rtl.host) == 2 * 4     # a token a step, four planes each


def test_killed_mutants_say_what_differs(inputs):
    for outcome in inputs:
        if outcome.verdict == KILLED and outcome.named:
            assert re.match(r"tile \d, [^,]+, cycle \d+, \w+: expected .*, observed .* "
                            r"\((missing|unplanned|off-cycle|wrong|sticky error)\)$", outcome.first)
        elif outcome.verdict == KILLED:
            assert re.match(r"final SRAM: .* word \d+: expected \S+, observed \S+$|"
                            r"\w+: tile \d, \S+ has not halted$", outcome.first)


def test_a_halt_that_is_left_out_is_named_by_queue_and_cycle(bench):
    base = bench.unmutated["copy"]
    binary = copy.deepcopy(base.workload.binary)
    words = binary.tiles[1].words["mem2.read"]
    assert decode(base.workload.system.tile, "mem_read", words.pop()).op == "HALT"
    mutant = replace(base.workload, binary=binary)
    result, = bench.run([mutation._task(mutant)])
    emulator, equal = base.emulate(mutant)
    assert not equal
    named = []
    for side, seen in (("RTL", {"rtl": result.runs[0]}), ("emulator", {"emulator": emulator})):
        report = base.check(**seen)
        assert all(found.ok for found in report.comparisons.values())
        named.append(str(report.first(side)))
    halt = base.workload.plan.cycles(2) + 1     # behind the LOOP word and the steps
    assert named == 2 * [f"tile 1, mem2.read, cycle {halt}, ICU_WORD: expected no error, observed "
                         f"{FAULT_MEANING[Fault.ICU_WORD]} (sticky error)"]


def test_no_mutation_of_the_netlist_is_missed(netlist):
    counts = Counter(outcome.verdict for outcome in netlist)
    assert len(netlist) == NETLIST
    assert counts[MISSED] == 0
    assert counts[KILLED] > 0


def blind(monkeypatch, bench):
    """A conformance check that never finds anything."""
    honest = mutation.check

    def check(system, binary, **sides):
        base = next(base for base in bench.unmutated.values() if base.workload.binary is binary)
        return honest(system, binary, plan=base.plan, emulator=base.emulator, rtl=base.rtl)

    monkeypatch.setattr(mutation, "check", check)


def test_a_blind_check_is_noticed(bench, inputs, monkeypatch):
    blind(monkeypatch, bench)
    some = inputs[:INPUTS // 2]
    found = input_outcomes(bench, np.random.default_rng(2), len(some))
    assert [outcome.what for outcome in found] == [outcome.what for outcome in some]
    pairs = Counter((old.verdict, new.verdict) for old, new in zip(some, found, strict=True))
    assert pairs[KILLED, MISSED] == sum(outcome.verdict == KILLED for outcome in some) > 0
    assert pairs[EQUAL, MISSED] == pairs[MASKED, MISSED] == 0


def test_a_blind_check_of_the_netlist_is_noticed(bench, netlist, monkeypatch):
    blind(monkeypatch, bench)
    killed = [change for change, outcome in zip(bench.mutations, netlist, strict=False)
              if outcome.verdict == KILLED]
    found = netlist_outcomes(bench, killed)
    assert {outcome.verdict for outcome in found} == {MISSED}


@pytest.fixture(scope="module")
def run():
    workload = workloads(1)[0]
    return run_emulator(workload.system, workload.binary, garbage=1)[0]


@pytest.mark.parametrize(("kind", "column"), [
    ("issues", "index"), ("issues", "cycle"), ("writes", "data"), ("writes", "address"),
    ("arrivals", "data"), ("arrivals", "cycle")])
def test_any_bit_of_an_event_makes_runs_differ(run, kind, column):
    table = getattr(run.events, kind).copy()
    table[column].reshape(len(table), -1)[-1, 0] ^= 1
    assert mutation.same(run, run)
    assert not mutation.same(run, replace(run, events=run.events._replace(**{kind: table})))


def test_contents_faults_and_running_queues_make_runs_differ(run):
    sram = [contents.copy() for contents in run.sram]
    sram[1][2, 3, 1] ^= 1
    for other in (replace(run, sram=sram), replace(run, sram=None),
                  replace(run, faults=(0, 1)), replace(run, running=((0, "mem0.read"),)),
                  replace(run, events=run.events._replace(writes=run.events.writes[:-1]))):
        assert not mutation.same(run, other)


def test_order_of_events_does_not_matter(run):
    turned = run.events._replace(issues=run.events.issues[::-1])
    assert mutation.same(run, replace(run, events=turned))


def test_summary_counts():
    outcomes = [mutation.Outcome("plan", "", verdict, "") for verdict in
                (KILLED, KILLED, KILLED, EQUAL, MISSED)]
    assert mutation.summary(outcomes, outcomes[:4]) == (
        "mutation: 3 of 5 inputs mutants killed (60.0%), 1 equal, 0 masked, 1 missed; "
        "3 of 4 netlist mutants killed (75.0%), 1 equal, 0 masked, 0 missed")
    assert "plan                 5       3       1       0       1" in mutation.table(
        outcomes, ["plan"])
