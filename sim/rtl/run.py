"""Running a program on RTL, from any Python process."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hdl.arch.errors import Fault
from hdl.arch.packets import NetworkFault
from hdl.arch.queues import queues
from hdl.arch.timing import ICU_LEAD
from hdl.arch.trace import fault_places
from sim.build import run_cocotb
from sim.events import Events, FaultEvent, Observation
from sim.image import initial_sram
from sim.rtl.fit import link_latencies
from sim.rtl.follow import PROGRESS, follow
from sim.rtl.job import Job, load_records, load_sram, save_job
from sim.rtl.recorder import read_events, read_faults, read_host

__all__ = ["GRACE", "VCD", "RtlResult", "read_result", "run_rtl"]

#: Cycles behind the planned end after which commands give a run up.
GRACE = 1000
#: Name of the file of waves in a run's directory.
VCD = "waves.vcd"


@dataclass(frozen=True)
class RtlResult:
    """What `run_rtl` observed.

    Attributes
    ----------
    runs : list of sim.events.Observation
        One for each run that was made; fewer than asked for if one did not halt.
    records : list of sim.rtl.records.RunRecord
        Start times, cycles and real time of each.
    """

    runs: list
    records: list

    @property
    def cycles_per_second(self):
        """Simulated cycles of all runs by their real time; loading and reading back not counted."""
        return self._rate("seconds")

    @property
    def cycles_per_cpu_second(self):
        """The same by processor time, which other processes on the machine disturb less."""
        return self._rate("cpu_seconds")

    def network_faults(self):
        """(run, tile, `hdl.arch.packets.NetworkFault`) of what the conventional network raised."""
        return [(number, tile, fault) for number, record in enumerate(self.records)
                for tile, bits in enumerate(record.network)
                for fault in NetworkFault if bits >> fault & 1]

    def _rate(self, name):
        seconds = sum(getattr(record, name) for record in self.records)
        return sum(record.cycles for record in self.records) / max(1e-9, seconds)


def run_rtl(model, system, binary, *, run_dir, seed=1, garbage=None, runs=None, limit=1_000_000,
            latencies=None, offsets=None, read_sram=True, live=False, timeout=None, waves=None,
            machine=None, report=None, patches=(), reloads=None, network=None, knobs=None):
    """Load and run a program.

    Parameters
    ----------
    model : sim.build.Model
        A build of ``machine`` (`sim.rtl.build.build_rtl`).
    system : hdl.arch.config.SystemConfig
        What the program was made for; it may have more tiles than the binary.
    binary : hdl.arch.binary.SystemBinary
    run_dir : path
        Where the simulation runs and leaves its files.
    seed : int
        Initial state of every register and memory.
    garbage : int, optional
        Seed of the SRAM contents where the binary has none; ``seed`` if not given.
    runs : list of (int, int), optional
        First step and steps of runs that follow each other without reset; by default the
        binary's.
    limit : int
        Watchdog: cycles behind the start at which a run is given up.
    latencies : list of int, optional
        Cycles, by link of the system; the system's if not given.
    offsets : list of int, optional
        By tile of the binary: cycles by which it starts later.
    read_sram : bool
        Read SRAM contents back behind every run.
    live : bool
        Show what the simulator prints.
    timeout : float, optional
        Real seconds after which the simulation is killed.
    waves : (int, int), optional
        First and last cycle of every run, counted from the start time, that are written to
        ``waves.vcd`` in ``run_dir``; the run with its last writes and arrivals may end before.
        ``model`` must be a ``waves`` build.
    machine : hdl.arch.config.SystemConfig, optional
        What was built, if that has more tiles or links than ``system``.
    report : callable, optional
        Called with a line of progress now and then, once a run has taken two seconds.
    patches : list of list of (int, str, int, bytes), optional
        For each run, SRAM words that the host writes before it: tile, slice, address, contents.
    reloads : dict of int to hdl.arch.binary.SystemBinary, optional
        By number of a run: a program of as many tiles, whose words and tables are loaded before it
        in place of those there; SRAM stays.
    network : hdl.arch.packets.PacketNetwork, optional
        What was built between the tiles, if that is the conventional network; ``latencies`` are
        then those of its physical links.
    knobs : hdl.arch.packets.Knobs, optional
        Its knobs, from ``network.knobs``.

    Returns
    -------
    RtlResult

    Raises
    ------
    hdl.arch.binary.BinaryError
        If a binary does not fit the system, or the system the machine.
    sim.build.SimulationFailed
        If the simulation breaks.
    """
    run_dir = Path(run_dir)
    plusargs = [f"+exchange={run_dir.resolve()}"]
    if waves is not None:
        _check_waves(model, waves)
        plusargs.append(f"+waves={(run_dir / VCD).resolve()}")
    run_dir.mkdir(parents=True, exist_ok=True)
    for pattern in ("*.bin", "*.npz", "result.json", VCD):
        for file in run_dir.glob(pattern):
            file.unlink()
    sram = initial_sram(system, binary, seed if garbage is None else garbage)
    for reload in (reloads or {}).values():
        reload.check(system)
    machine = machine or system
    if (network is None) != (knobs is None):
        raise ValueError("Network and its knobs must be given together")
    slices = system.tile.slices("mem")
    job = Job(system=machine, binary=binary, sram=sram, limit=limit, read_sram=read_sram,
              runs=[[binary.first_step, binary.steps]] if runs is None else [list(r) for r in runs],
              latencies=_latencies(machine, system, latencies, network),
              offsets=[0] * len(binary.tiles) if offsets is None else list(offsets),
              waves=None if waves is None else list(waves),
              patches=[[(tile, slices.index(name), address, content.hex())
                        for tile, name, address, content in some] for some in patches],
              reloads=reloads or {}, knobs=None if network is None else list(knobs))
    save_job(job, run_dir)
    with follow(run_dir / PROGRESS, report):
        run_cocotb(model, "sim.rtl.tb_run", 1, run_dir=run_dir, seed=seed, live=live,
                   timeout=timeout, env={"ONCYCLE_EXCHANGE": str(run_dir.resolve())},
                   plusargs=plusargs)
    return read_result(run_dir, machine, read_sram)


def _latencies(machine, system, latencies, network):
    """By link of the machine, or by physical link of the network."""
    if network is None:
        return link_latencies(machine, system, latencies)
    if latencies is None:
        return [link.latency for link in network.links]
    if len(latencies) != len(network.links):
        raise ValueError(f"Latencies must be given for the {len(network.links)} physical links, "
                         f"not for {len(latencies)}")
    return list(latencies)


def read_result(run_dir, system, read_sram=True):
    """`RtlResult` of the files that a simulation of a job left in ``run_dir``.

    Raises
    ------
    sim.rtl.recorder.TraceError
        If a file is missing or was cut off.
    """
    records = load_records(run_dir)
    tables = [*read_events(run_dir, system.tile), read_host(run_dir, system.tile),
              read_faults(run_dir, system.tile)]
    observed = []
    for number, (record, (*events, host, faults)) in enumerate(zip(
            records, _by_run(tables, records, system.tiles), strict=True)):
        contents = load_sram(number, run_dir) if read_sram and not record.running else None
        observed.append(Observation(Events(*events), host, contents, tuple(record.faults),
                                    tuple((tile, queue) for tile, queue in record.running),
                                    _fault_events(system.tile, faults)))
    return RtlResult(observed, records)


def _fault_events(cfg, table):
    """`FaultEvent`s of a table of `sim.rtl.recorder.FAULT`; a queue's are dated to the cycle in
    which the word at fault would have issued."""
    places, names = fault_places(cfg), {queue.name for queue in queues(cfg)}
    found = []
    for cycle, tile, unit, bits in table.tolist():
        late = ICU_LEAD - 1 if places[unit] in names else 0
        found += [FaultEvent(tile, fault, cycle + late, places[unit])
                  for fault in Fault if bits >> fault & 1]
    return tuple(found)


def _check_waves(model, waves):
    if not model.dump:
        raise ValueError(f'Model {model.name!r} must be built with kind="waves" to write waves')
    first, last = waves
    if not 0 <= first <= last < 1 << 31:
        raise ValueError(f"Waves must be from a cycle of at least 0 to a later one, not {waves!r}")


def _by_run(tables, records, tiles):
    """Split tables of recorded events by run, and count their cycles from the start time of their
    tile."""
    begins = np.array([record.begin for record in records[1:]], np.int64)
    starts = np.array([record.starts + [record.starts[0]] * (tiles - len(record.starts))
                       for record in records], np.int64)
    split = [[] for _ in records]
    for table in tables:
        run = np.searchsorted(begins, table["cycle"], "right")
        counted = table.copy()
        known = np.minimum(table["tile"], tiles - 1)
        counted["cycle"] -= starts[run, known]
        for number in range(len(records)):
            split[number].append(counted[run == number])
    return split
