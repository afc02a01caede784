"""cocotb testbench that does many jobs in one process, with a reset before each.

What the recorder writes goes on in one file for each kind of event: behind every job the C library
is told to write out what it holds back, and the job's part is copied into the job's directory.
"""

import ctypes
import os
from pathlib import Path

import cocotb

from sim.bench.registers import SUFFIX
from sim.rtl.job import load_job, save_records, save_sram
from sim.rtl.machine import RtlMachine
from sim.rtl.recorder import FILES, copy_records
from sim.rtl.tb_run import drain


class _Machine(RtlMachine):
    async def restart(self, latencies, knobs):
        """Reset everything while the clock runs on."""
        self._dut.rst.value = 1
        self.configure(latencies, knobs)
        await self._wait(4)
        self._dut.rst.value = 0
        await self._wait(2)


def _move_traces(source, target, offsets):
    """Copy the job's part of every register trace."""
    for path in source.glob(f"*{SUFFIX}"):
        with open(path, "rb") as whole:
            whole.seek(offsets.get(path.name, 0))
            (target / path.name).write_bytes(whole.read())
            offsets[path.name] = whole.tell()


@cocotb.test()
async def run_batch(dut):
    directory = Path(os.environ["ONCYCLE_EXCHANGE"])
    count = int(os.environ["ONCYCLE_JOBS"])
    selectors = [int(text) for text in os.environ["ONCYCLE_MUTANTS"].split()]
    machine, offsets, trace_offsets = None, dict.fromkeys(FILES, 0), {}
    held = None         # contents of SRAM; hardware that is mutated is not believed
    for number in range(count):
        job = load_job(directory / str(number))
        if selectors:
            dut.mutant.value = selectors[number]
        if machine is None:
            machine = _Machine(dut, job.system, directory)
            await machine.reset(job.latencies, job.knobs)
        else:
            await machine.restart(job.latencies, job.knobs)
        if held is not None and len(held) != len(job.sram):
            held = None
        loader = await machine.load(job.binary, job.sram, held)
        records, held = [], None
        for run, (first_step, steps) in enumerate(job.runs):
            records.append(await machine.run(loader, first_step, steps, limit=job.limit,
                                             drain=drain(job), offsets=job.offsets))
            if records[-1].running:     # what the host asks of a running tile is an error
                break
            if job.read_sram:
                sram = await machine.read_sram(loader)
                save_sram(sram, run, directory / str(number))
                held = None if selectors else sram
        save_records(records, directory / str(number))
        ctypes.CDLL(None).fflush(None)
        offsets = copy_records(directory, directory / str(number), job.system.tile, offsets)
        _move_traces(directory, directory / str(number), trace_offsets)
    await machine.finish()
