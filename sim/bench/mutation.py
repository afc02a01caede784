"""`bench mutation`: does the check bite?  Every mutant is one change on one side.

*Inputs*: plan, emulator input, RTL input or link latency of the RTL, all in one simulator process.
*Netlist*: mutations of the tile's cells, chosen by an input.  One build serves both.

A mutant is killed if the conformance check fails.  A survivor is *equal* if everything that can be
seen of its run equals the unmutated run's: events with their data, final SRAM, error registers,
halted queues, every stream value that is read, and, on the RTL, every register in every cycle.
One whose registers alone differ is *masked*: nothing came of it.  All other survivors are *missed*.
"""

import argparse
import sys

import numpy as np

from compiler.plan import expand
from sim.bench.batch import Task, run_batch
from sim.bench.mutants import SIDES, mutants
from sim.bench.netlist import build_mutated, flat_tile, mutate
from sim.bench.reads import recorded_reads
from sim.bench.registers import compare_traces, read_traces
from sim.bench.report import OUTPUT, write_json
from sim.bench.verdicts import (
    EQUAL,
    KILLED,
    MASKED,
    MISSED,
    Outcome,
    first_difference,
    same,
    summary,
    table,
)
from sim.bench.workloads import workloads
from sim.commands.options import RUN_ROOT, positive
from sim.conformance import check
from sim.emulate import run_emulator
from sim.events import Events

#: What the figures must reach.
BARS = {"inputs": 200, "netlist": 200, "missed": 0}

_GRACE = 200        #: cycles behind the planned end after which a run is stopped


class _Unmutated:
    """A workload as it should run: on plan, emulator and RTL, which agree."""

    def __init__(self, workload, seed, rtl):
        self.workload = workload
        self.limit = _limit(workload)
        self.plan = Events(**expand(workload.plan, workload.binary.steps))
        with recorded_reads() as reads:
            self.emulator, = run_emulator(workload.system, workload.binary, garbage=seed,
                                          limit=self.limit)
        self.reads = sorted(reads)
        self.rtl = rtl
        report = self.check()
        if not report.ok:
            raise RuntimeError(f"The unmutated {workload.name} fails: {report.lines()}")

    def task(self, mutant=0):
        """What runs it, with a mutation of the netlist."""
        return Task(self.workload.binary, self.limit, mutant=mutant)

    def check(self, **mutated):
        """Conformance with one side replaced."""
        sides = {"plan": self.plan, "emulator": self.emulator, "rtl": self.rtl, **mutated}
        return check(self.workload.system, self.workload.binary, **sides)


def _limit(workload):
    return workload.plan.cycles(workload.binary.steps) + _GRACE


def _verdict(report, side, equal):
    """(verdict or None, first difference, named); None: a survivor to be looked into."""
    if not report.ok:
        return KILLED, *first_difference(report, side)
    return (None, "", True) if equal else (MISSED, "the runs differ, the check passes", True)


def input_outcomes(bench, rng, count):
    """Outcomes of ``count`` mutants of plan, emulator input, RTL input and links.

    Parameters
    ----------
    bench : Bench
    rng : numpy.random.Generator
    count : int

    Returns
    -------
    list of Outcome
    """
    chosen = mutants(rng, bench.workloads, count)
    on_rtl = [one for one in chosen if one.side in ("RTL", "hardware")]
    tasks = [Task(one.binary, _limit(one.workload), one.latencies) for one in on_rtl]
    seen = dict(zip(map(id, on_rtl), bench.run(tasks), strict=True))
    return [_input_outcome(bench, one, seen.get(id(one))) for one in chosen]


def _input_outcome(bench, mutant, result):
    base = bench.unmutated[mutant.workload.name]
    what = f"{mutant.workload.name}: {mutant.what}"
    if mutant.side == "plan":
        plan = Events(**expand(mutant.plan, mutant.binary.steps))
        equal = all(sorted(left.tolist()) == sorted(right.tolist())
                    for left, right in zip(plan, base.plan, strict=True))
        verdict, first, named = _verdict(base.check(plan=plan), "plan", equal)
        return Outcome("plan", what, verdict or EQUAL, first or "the same events", named)
    if mutant.side == "emulator":
        with recorded_reads() as reads:
            emulator, = run_emulator(mutant.workload.system, mutant.binary, garbage=bench.seed,
                                     limit=base.limit)
        equal = same(emulator, base.emulator) and sorted(reads) == base.reads
        verdict, first, named = _verdict(base.check(emulator=emulator), "emulator", equal)
        return Outcome("emulator", what, verdict or EQUAL, first or "the same run", named)
    rtl = result.runs[0]
    verdict, first, named = _verdict(base.check(rtl=rtl), "RTL", same(rtl, base.rtl))
    if verdict is None:
        verdict, first = bench.traced([Task(mutant.binary, base.limit, mutant.latencies)],
                                      [base.task()], from_start=True)
    return Outcome(mutant.side, what, verdict, first, named)


def netlist_outcomes(bench, mutations):
    """Outcomes of some of the bench's mutations of the netlist: every mutant runs all workloads."""
    bases = list(bench.unmutated.values())
    tasks = [base.task(mutation.number) for mutation in mutations for base in bases]
    results = iter(bench.run(tasks))
    outcomes = []
    for mutation in mutations:
        found = []
        for base in bases:
            rtl = next(results).runs[0]
            found.append(_verdict(base.check(rtl=rtl), "RTL", same(rtl, base.rtl)))
        decided = [one for one in found if one[0] == KILLED] or [one for one in found if one[0]]
        verdict, first, named = decided[0] if decided else (None, "", True)
        if verdict is None:
            verdict, first = bench.traced([base.task(mutation.number) for base in bases],
                                          [base.task() for base in bases])
        outcomes.append(Outcome(mutation.unit, str(mutation), verdict, first, named))
    return outcomes


class Bench:
    """One build with mutations of the netlist, and the unmutated runs.

    Parameters
    ----------
    seed : int
        Of operands, mutants, initial state.
    netlist : int
        Mutations in the netlist.
    report : callable, optional
        Called with lines of progress.
    run_dir : path, optional
        Where simulations run.
    """

    def __init__(self, seed, netlist=BARS["netlist"], report=None, run_dir=None):
        self.seed = seed
        self._run_dir = RUN_ROOT / "bench-mutation" if run_dir is None else run_dir
        self.workloads = workloads(seed)
        self._system = self.workloads[0].system
        rtlil, self.mutations = mutate(flat_tile(self._system), np.random.default_rng([seed, 1]),
                                       netlist)
        self._model = build_mutated(self._system, rtlil, report=report)
        self._expected = {}
        results = self.run([Task(workload.binary, _limit(workload))
                            for workload in self.workloads])
        self.unmutated = {workload.name: _Unmutated(workload, seed, result.runs[0])
                          for workload, result in zip(self.workloads, results, strict=True)}

    def run(self, tasks, traced=False):
        """Results of tasks, all in one process."""
        return run_batch(self._model, self._system, tasks, run_dir=self._run_dir, seed=self.seed,
                         mutants=True, traced=traced)

    def traced(self, tasks, unmutated, *, from_start=False):
        """Verdict on a survivor by its full trace, and what differs.

        Both run in processes of their own: registers that no reset touches hold what ran before.

        Parameters
        ----------
        tasks, unmutated : list of Task
            What the mutant ran, and the same without mutation.
        from_start : bool
            Loading differs: compare from the start time on.
        """
        key = tuple(id(task.binary) for task in unmutated)
        if key not in self._expected:
            self._expected[key] = self._traces(unmutated)
        found = [compare_traces(left[1], right[1],
                                starts=(left[0].starts, right[0].starts) if from_start else None)
                 for left, right in zip(self._expected[key], self._traces(tasks), strict=True)]
        for one in found:
            if one.reads is not None:
                return MISSED, f"a stream value that is read differs in cycle {one.reads}"
        for one in found:
            if one.registers is not None:
                return MASKED, f"registers differ from cycle {one.registers} on, without effect"
        return EQUAL, "every register is the same in every cycle"

    def _traces(self, tasks):
        """Record and traces of every task."""
        return [(result.records[0], read_traces(self._run_dir / str(number)))
                for number, result in enumerate(self.run(tasks, traced=True))]


def main(argv=None):
    """Print every mutant, the tables and the summary line, write the JSON file.

    Returns
    -------
    int
        0; 1 where a mutant is missed.
    """
    parser = argparse.ArgumentParser(prog="bench mutation", description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=positive, default=BARS["inputs"],
                        help="mutants of plan, inputs and links (default: %(default)s)")
    parser.add_argument("--netlist", type=positive, default=BARS["netlist"],
                        help="mutations of the netlist (default: %(default)s)")
    parser.add_argument("--seed", type=positive, default=1, help="default: 1")
    parser.add_argument("--output", default=OUTPUT / "mutation.json", help="JSON file to write")
    options = parser.parse_args(argv)
    bench = Bench(options.seed, max(options.netlist, BARS["netlist"]),
                  lambda text: print(text, file=sys.stderr))
    inputs = input_outcomes(bench, np.random.default_rng([options.seed, 2]), options.inputs)
    netlist = netlist_outcomes(bench, bench.mutations[:options.netlist])
    for one in inputs + netlist:
        print(f"{one.verdict:<7} {one.group}: {one.what}\n        {one.first}")
    print(table(inputs, SIDES))
    print(table(netlist, sorted({one.group for one in netlist})))
    missed = [one for one in inputs + netlist if one.verdict == MISSED]
    unnamed = sum(one.verdict == KILLED and not one.named for one in inputs)
    print(f"of the killed mutants of the inputs, {unnamed} are seen without an instruction's name")
    write_json(options.output, {
        "seed": options.seed, "bars": BARS, "missed": len(missed), "unnamed": unnamed,
        **{name: [vars(one) for one in outcomes]
           for name, outcomes in (("inputs", inputs), ("netlist", netlist))}})
    print(summary(inputs, netlist))
    return 1 if missed else 0
