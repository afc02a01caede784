"""Running a program on the emulator, observed as `sim.rtl.run.run_rtl` observes the RTL."""

from dataclasses import replace

import numpy as np

from hdl.arch.timing import START_LEAD
from sim.emulator.machine import Machine
from sim.events import Events, FaultEvent, Observation
from sim.image import initial_sram

__all__ = ["LoadedEmulator", "run_emulator"]

#: Machine cycles between two runs, beyond `START_LEAD`: any number will do.
_PAUSE = 100


class LoadedEmulator:
    """An emulator with a program loaded, from one run to the next.

    Parameters
    ----------
    system, binary, garbage, latencies, offsets
        As of `run_emulator`.
    """

    def __init__(self, system, binary, *, garbage, latencies=None, offsets=None):
        if latencies is not None:
            links = tuple(replace(link, latency=latency)
                          for link, latency in zip(system.links, latencies, strict=True))
            system = replace(system, links=links)
        self._tiles = len(binary.tiles)
        self._machine = machine = Machine(system, garbage=garbage)
        machine.load(binary)
        for tile, contents in enumerate(initial_sram(system, binary, garbage)):
            for name, words in zip(system.tile.slices("mem"), contents, strict=True):
                machine.write_sram(tile, name, 0, words.tobytes())
        self._offsets = np.array([*(offsets or [0] * self._tiles),
                                  *[0] * (system.tiles - self._tiles)])

    def reload(self, binary):
        """Load the words and tables of another program; SRAM stays as it is."""
        tiles = [replace(tile, sram={}) for tile in binary.tiles]
        self._machine.load(replace(binary, tiles=tiles))

    def run(self, first_step, steps, patches=(), *, limit):
        """Write SRAM words, then run; gives the `sim.events.Observation`."""
        machine = self._machine
        for patch in patches:
            machine.write_sram(*patch)
        result = machine.start(first_step=first_step, steps=steps, max_cycles=limit,
                               at=machine.time + START_LEAD + _PAUSE + self._offsets)
        sram = [np.stack(list(machine.sram(tile).values())) for tile in range(self._tiles)]
        return Observation(
            events=Events(result.issues, result.writes, result.arrivals), host=result.host,
            sram=None if result.running else sram,
            faults=tuple(sum(1 << fault for fault in tile) for tile in result.faults),
            running=tuple(result.running),
            fault_events=tuple(FaultEvent(tile, fault, *place)
                               for tile, faults in enumerate(result.faults)
                               for fault, place in faults.items()))


def run_emulator(system, binary, *, garbage, runs=None, limit=1_000_000, latencies=None,
                 offsets=None, patches=(), reloads=None):
    """Load and run a program.

    Parameters
    ----------
    system : hdl.arch.config.SystemConfig
    binary : hdl.arch.binary.SystemBinary
    garbage : int
        Seed of everything that the binary leaves undefined; that of SRAM is `sim.image.garbage`.
    runs, limit, latencies, offsets, patches, reloads
        As of `sim.rtl.run.run_rtl`.

    Returns
    -------
    list of sim.events.Observation
        One for each run; fewer than asked for if one did not halt.
    """
    loaded = LoadedEmulator(system, binary, garbage=garbage, latencies=latencies,
                            offsets=offsets)
    observed = []
    for number, run in enumerate(runs or [(binary.first_step, binary.steps)]):
        if number in (reloads or {}):
            loaded.reload(reloads[number])
        observed.append(loaded.run(*run, patches[number] if number < len(patches) else (),
                                   limit=limit))
        if observed[-1].running:
            break
    return observed
