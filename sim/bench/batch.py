"""Many programs in one simulator process, each behind a reset of its own."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from sim.bench.registers import PLUSARG
from sim.build import run_cocotb
from sim.image import initial_sram
from sim.rtl.job import Job, save_job
from sim.rtl.run import read_result

__all__ = ["Task", "run_batch"]


@dataclass(frozen=True)
class Task:
    """One program of a batch; parameters as of `sim.rtl.run.run_rtl`.

    ``mutant`` is for a build with a mutated netlist (`sim.bench.netlist`): its number, 0 for none.
    """

    binary: object
    limit: int
    latencies: tuple | None = None
    mutant: int = 0
    knobs: tuple | None = None


def run_batch(model, system, tasks, *, run_dir, seed=1, mutants=False, traced=False,
              network=None):
    """Run every task, in order, in one process.

    Parameters
    ----------
    model : sim.build.Model
    system : hdl.arch.config.SystemConfig
    tasks : list of Task
    run_dir : path
        Emptied first.
    seed : int
        Of the initial state, and of the SRAM contents where a binary has none.
    mutants : bool
        Whether the model has the port ``mutant``.
    traced : bool
        Let it write the traces of `sim.bench.registers`, into directories of ``run_dir`` that are
        named after the numbers of the tasks.

    Returns
    -------
    list of sim.rtl.run.RtlResult
        One for each task, of one run.

    Raises
    ------
    sim.build.SimulationFailed
        If the simulation breaks.
    """
    run_dir = Path(run_dir).resolve()
    shutil.rmtree(run_dir, ignore_errors=True)
    for number, task in enumerate(tasks):
        directory = run_dir / str(number)
        directory.mkdir(parents=True)
        latencies = task.latencies or [link.latency for link in (network or system).links]
        save_job(Job(system=system, binary=task.binary, limit=task.limit,
                     sram=initial_sram(system, task.binary, seed),
                     runs=[[task.binary.first_step, task.binary.steps]],
                     latencies=list(latencies), offsets=[0] * len(task.binary.tiles),
                     knobs=None if network is None else list(task.knobs)), directory)
    run_cocotb(model, "sim.bench.tb_batch", 1, run_dir=run_dir, seed=seed,
               env={"ONCYCLE_EXCHANGE": str(run_dir), "ONCYCLE_JOBS": str(len(tasks)),
                    "ONCYCLE_MUTANTS": " ".join(str(task.mutant) for task in tasks)
                    if mutants else ""},
               plusargs=[f"+exchange={run_dir}",
                         *([f"+{PLUSARG}={run_dir}"] if traced else [])])
    return [read_result(run_dir / str(number), system) for number in range(len(tasks))]
