"""The machines that are compared, built once each: the same tiles and wires, planned or not."""

import sys
from dataclasses import dataclass, replace

from compiler.plan import expand
from hdl.arch.config import all_to_all
from hdl.arch.packets import around, direct
from sim.bench.batch import Task, run_batch
from sim.bench.builds import drop_older
from sim.bench.network.programs import PACKETS
from sim.bench.speedup import neighbours
from sim.commands.options import RUN_ROOT
from sim.compiling import machine
from sim.conformance import check
from sim.conformance.stages import check_stages
from sim.events import Events
from sim.rtl.build import build_rtl

__all__ = ["Machines", "Run"]

#: Flits of a router's input buffer and of a connection's outbox, which holds whole messages.
_DEPTH, _OUTBOX = 256, 2048
_GRACE = 20_000     #: cycles behind the planned end after which a run is stopped


@dataclass(frozen=True)
class Run:
    """What came of a case.

    Attributes
    ----------
    cycles : int
        From the start to the last SRAM write of its results.
    observed : Observation
    problems : list of str
        One line for everything that is not as it should be.
    released : Released or None
        Of a conventional network.
    """

    cycles: int
    observed: object
    problems: list
    released: object = None


class Machines:
    """Systems of up to ``tiles`` tiles, each built when it is first asked for."""

    def __init__(self, tiles):
        tile = machine().tile
        # messages of a layer wait whole in the FIFO of a link
        port = replace(tile.ports[0], fifo=1024)
        self._tile = replace(tile, ports=(port,) * max(1, tiles - 1), activations=128,
                             accumulators=64, mem_words=1 << 12, icu_words=1 << 12)
        self._tiles = tiles
        self._builds = {}

    def system(self, topology, tiles, kind):
        """What a program of ``kind`` is compiled for."""
        if kind == PACKETS:
            return self.network(topology, tiles).system.restrict(tiles)
        whole = self._planned.restrict(tiles)
        return neighbours(whole) if topology == "ring" else whole

    @property
    def _planned(self):
        return all_to_all(self._tile, self._tiles)

    def network(self, topology, tiles):
        """The `PacketNetwork` that joins ``tiles`` tiles: a ring of just these, or links between
        all tiles there are."""
        make, tiles = (around, tiles) if topology == "ring" else (direct, self._tiles)
        return make(all_to_all(replace(self._tile, sync=True), tiles), depth=_DEPTH,
                    outbox=_OUTBOX)

    def run(self, topology, cases, settings=None):
        """Run every case; list of `Run`.

        Parameters
        ----------
        topology : str
            ``"all_to_all"`` or ``"ring"``: links between all tiles, or between neighbours.
        cases : list of Case
            All for planned links or all for a conventional network, of as many tiles.
        settings : list of dict, optional
            Of a conventional network, by case: arguments of `PacketNetwork.knobs`.
        """
        packets = cases[0].kind == PACKETS
        network = self.network(topology, cases[0].program.system.tiles) if packets else None
        whole = network.system if packets else self._planned
        knobs = [network.knobs(**setting) for setting in settings] if packets \
            else [None] * len(cases)
        tasks = [Task(case.program.binary, case.program.plan.cycles(case.steps) + _GRACE,
                      knobs=one) for case, one in zip(cases, knobs, strict=True)]
        results = run_batch(self._build(topology, network, whole), whole, tasks, network=network,
                            run_dir=RUN_ROOT / f"bench-network-{topology}-{cases[0].kind[0]}")
        return [self._judge(case, result) for case, result in zip(cases, results, strict=True)]

    def _build(self, topology, network, whole):
        key = f"{topology if network else 'planned'}-{whole.tiles}"
        if key not in self._builds:
            self._builds[key] = build_rtl(whole, packets=network, report=_say,
                                          name=f"network-{key}")
            drop_older(self._builds[key])
        return self._builds[key]

    @staticmethod
    def _judge(case, result):
        observed, program = result.runs[0], case.program
        problems = [f"network of tile {tile}: {fault.name}"
                    for _, tile, fault in result.network_faults()]
        released = None
        if case.kind == PACKETS:
            released = check_stages(program.plan, case.starts, observed, case.steps)
            problems += released.problems
        else:
            found = check(program.system, program.binary, rtl=observed,
                          plan=Events(**expand(program.plan, case.steps)))
            problems += [] if found.ok else found.lines()
        if not problems and not case.agrees(observed):
            problems.append("results are not those that they should be")
        return Run(case.finish(observed), observed, problems, released)


def _say(text):
    print(f"  {text}", file=sys.stderr, flush=True)
