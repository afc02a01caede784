"""`bench mutation`: does the check bite?  Every mutant is one change on one side.

*Inputs*: plan, emulator input, RTL input or link latency of the RTL; all that one build runs, it
runs in one process.  *Netlist*: mutations of the tile's cells, chosen by an input.  One build of
two `nano` tiles serves both; the decode among the inputs runs on the build of ``make sim``.

A mutant is killed if the conformance check fails.  A survivor is *equal* if everything that can be
seen of its run equals the unmutated run's: events with their data, final SRAM, error registers,
halted queues, every stream value that is read, and, on the RTL, every register in every cycle.
One whose registers alone differ is *masked*: nothing came of it.  All other survivors are *missed*.
The build of ``make sim`` records no registers: of a decode that survives on the RTL, the stream
values are those that the emulator reads, which runs the same mutant.

Some mutants change no event and still fail, by the sticky error ``ICU_WORD``: words that issue
nothing are no events.  Most have lost their HALT (left out, or changed into what the queue does not
have), so that a queue whose work is done runs on into a word that it does not have.
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
from sim.bench.workloads import decode_workload, workloads
from sim.commands.options import RUN_ROOT, positive
from sim.conformance import check
from sim.emulate import run_emulator
from sim.events import Events
from sim.rtl.build import build_rtl
from sim.rtl.fit import link_latencies

#: What the figures must reach.
BARS = {"inputs": 200, "netlist": 200, "missed": 0}

_GRACE = 200        #: cycles behind the planned end after which a run is stopped


class _Unmutated:
    """A workload as it should run: on plan, emulator and RTL, which agree."""

    def __init__(self, workload, seed, rtl):
        self.workload = workload
        self._seed = seed
        self.plan = Events(**expand(workload.plan, workload.binary.steps))
        self.emulator, self._reads = self._emulate(workload.binary)
        self.rtl = rtl
        report = self.check()
        if not report.ok:
            raise RuntimeError(f"The unmutated {workload.name} fails: {report.lines()}")

    def _emulate(self, binary, latencies=None):
        with recorded_reads() as reads:
            observed, = run_emulator(self.workload.system, binary, garbage=self._seed,
                                     limit=_limit(self.workload), latencies=latencies)
        return observed, sorted(reads)

    def emulate(self, mutant):
        """What the emulator does with a mutant, and whether that is what it does without it, all
        stream values that it reads included."""
        observed, reads = self._emulate(mutant.binary, mutant.latencies)
        return observed, same(observed, self.emulator) and reads == self._reads

    def check(self, **mutated):
        """Conformance with one side replaced."""
        sides = {"plan": self.plan, "emulator": self.emulator, "rtl": self.rtl, **mutated}
        return check(self.workload.system, self.workload.binary, **sides)


def _limit(workload):
    return workload.plan.cycles(workload.binary.steps) + _GRACE


def _task(workload, mutant=None, number=0):
    """What runs a workload, with a mutant of its inputs or a mutation of the netlist."""
    source = workload if mutant is None else mutant
    latencies = link_latencies(workload.machine, workload.system, source.latencies)
    return Task(source.binary, _limit(workload), tuple(latencies), number)


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
    chosen = mutants(rng, [*bench.workloads, bench.decode], count)
    seen = {}
    for is_decode, run in ((False, bench.run), (True, bench.run_decode)):
        on_rtl = [one for one in chosen if one.side in ("RTL", "hardware")
                  and (one.workload is bench.decode) == is_decode]
        results = run([_task(one.workload, one) for one in on_rtl]) if on_rtl else []
        seen.update(zip(map(id, on_rtl), results, strict=True))
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
        emulator, equal = base.emulate(mutant)
        verdict, first, named = _verdict(base.check(emulator=emulator), "emulator", equal)
        return Outcome("emulator", what, verdict or EQUAL, first or "the same run", named)
    rtl = result.runs[0]
    verdict, first, named = _verdict(base.check(rtl=rtl), "RTL", same(rtl, base.rtl))
    if verdict is None and mutant.workload is bench.decode:
        verdict, first = (EQUAL, "the same run, and the emulator's too") \
            if base.emulate(mutant)[1] else (MISSED, "the emulator's run differs")
    elif verdict is None:
        verdict, first = bench.traced([_task(mutant.workload, mutant)], [_task(mutant.workload)],
                                      from_start=True)
    return Outcome(mutant.side, what, verdict, first, named)


def netlist_outcomes(bench, mutations):
    """Outcomes of some of the bench's mutations of the netlist: every mutant runs all workloads."""
    bases = [bench.unmutated[workload.name] for workload in bench.workloads]
    tasks = [_task(workload, number=mutation.number) for mutation in mutations
             for workload in bench.workloads]
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
            verdict, first = bench.traced(
                [_task(workload, number=mutation.number) for workload in bench.workloads],
                [_task(workload) for workload in bench.workloads])
        outcomes.append(Outcome(mutation.unit, str(mutation), verdict, first, named))
    return outcomes


class Bench:
    """One build with mutations of the netlist, the build of ``make sim``, and the unmutated runs.

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
        self.decode = decode_workload(seed)
        self._decode_model = build_rtl(self.decode.machine, report=report)
        results = [*self.run([_task(workload) for workload in self.workloads]),
                   *self.run_decode([_task(self.decode)])]
        self.unmutated = {
            workload.name: _Unmutated(workload, seed, result.runs[0])
            for workload, result in zip([*self.workloads, self.decode], results, strict=True)}

    def run_decode(self, tasks):
        """Results of tasks on the machine of the decode, all in one process."""
        return run_batch(self._decode_model, self.decode.machine, tasks, run_dir=self._run_dir,
                         seed=self.seed)

    def run(self, tasks, traced=False):
        """Results of tasks on two `nano` tiles, all in one process."""
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
    print(f"of the killed mutants of the inputs, {unnamed} are named without cycle and instruction")
    write_json(options.output, {
        "seed": options.seed, "bars": BARS, "missed": len(missed), "unnamed": unnamed,
        **{name: [vars(one) for one in outcomes]
           for name, outcomes in (("inputs", inputs), ("netlist", netlist))}})
    print(summary(inputs, netlist))
    return 1 if missed else 0
