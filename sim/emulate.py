"""Running a program on the emulator, observed as `sim.rtl.run.run_rtl` observes the RTL."""

from dataclasses import replace

import numpy as np

from hdl.arch.timing import START_LEAD
from sim.emulator.machine import Machine
from sim.events import Events, FaultEvent, Observation
from sim.image import initial_sram

__all__ = ["run_emulator"]

#: Machine cycles between two runs, beyond `START_LEAD`: any number will do.
_PAUSE = 100


def run_emulator(system, binary, *, garbage, runs=None, limit=1_000_000, latencies=None,
                 offsets=None, patches=()):
    """Load and run a program.

    Parameters
    ----------
    system : hdl.arch.config.SystemConfig
    binary : hdl.arch.binary.SystemBinary
    garbage : int
        Seed of everything that the binary leaves undefined; that of SRAM is `sim.image.garbage`.
    runs, limit, latencies, offsets, patches
        As of `sim.rtl.run.run_rtl`.

    Returns
    -------
    list of sim.events.Observation
        One for each run; fewer than asked for if one did not halt.
    """
    if latencies is not None:
        links = tuple(replace(link, latency=latency)
                      for link, latency in zip(system.links, latencies, strict=True))
        system = replace(system, links=links)
    tiles = len(binary.tiles)
    machine = Machine(system, garbage=garbage)
    machine.load(binary)
    for tile, contents in enumerate(initial_sram(system, binary, garbage)):
        for name, words in zip(system.tile.slices("mem"), contents, strict=True):
            machine.write_sram(tile, name, 0, words.tobytes())
    offsets = np.array([*(offsets or [0] * tiles), *[0] * (system.tiles - tiles)])
    observed = []
    for number, (first_step, steps) in enumerate(runs or [(binary.first_step, binary.steps)]):
        for patch in patches[number] if number < len(patches) else ():
            machine.write_sram(*patch)
        result = machine.start(first_step=first_step, steps=steps, max_cycles=limit,
                               at=machine.time + START_LEAD + _PAUSE + offsets)
        sram = [np.stack(list(machine.sram(tile).values())) for tile in range(tiles)]
        observed.append(Observation(
            events=Events(result.issues, result.writes, result.arrivals), host=result.host,
            sram=None if result.running else sram,
            faults=tuple(sum(1 << fault for fault in tile) for tile in result.faults),
            running=tuple(result.running),
            fault_events=tuple(FaultEvent(tile, fault, *place)
                               for tile, faults in enumerate(result.faults)
                               for fault, place in faults.items())))
        if result.running:
            break
    return observed
