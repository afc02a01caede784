"""cocotb testbench that does a `sim.rtl.job.Job`: loads a program, runs it, reads SRAM back."""

import os
from pathlib import Path

import cocotb

from sim.progress import Progress
from sim.rtl.follow import PROGRESS
from sim.rtl.job import load_job, save_records, save_sram
from sim.rtl.machine import RtlMachine


def drain(job):
    """Cycles until nothing is under way behind the last HALT: streams, pipelines, links."""
    cfg = job.system.tile
    flits = max(cfg.port(link).flits(cfg.lanes) for link in range(len(cfg.ports) + 1))
    longest = max([job.system.host_latency, *job.latencies])
    return 64 + 2 * len(cfg.floorplan) + 4 * flits + longest


@cocotb.test()
async def run_job(dut):
    directory = Path(os.environ["ONCYCLE_EXCHANGE"])
    job = load_job(directory)
    machine = RtlMachine(dut, job.system, directory)
    await machine.reset(job.latencies, job.knobs)
    loader = await machine.load(job.binary, job.sram)
    records = []
    for number, (first_step, steps) in enumerate(job.runs):
        if number in job.reloads:
            loader = await machine.reload(job.reloads[number])
        if number < len(job.patches) and job.patches[number]:
            await machine.play(loader.write_words([
                (tile, unit, address, bytes.fromhex(content))
                for tile, unit, address, content in job.patches[number]]))
        with open(directory / PROGRESS, "a", buffering=1) as stream:
            progress = Progress("RTL", stream=stream)
            record = await machine.run(loader, first_step, steps, limit=job.limit,
                                       drain=drain(job), offsets=job.offsets, progress=progress,
                                       waves=job.waves)
            progress.done(record.cycles)
        records.append(record)
        if record.running:      # what the host asks of a running tile is an error
            break
        if job.read_sram:
            save_sram(await machine.read_sram(loader), number, directory)
    await machine.finish()
    save_records(records, directory)
