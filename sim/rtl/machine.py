"""A system under `sim.rtl.top`, driven from cocotb: the base of testbenches of one's own.

Rule of timing: behind ``RisingEdge(clk)`` outputs read as they were before the edge, and what is
written counts for the next one.
"""

import time

from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, First, RisingEdge, Timer

from hdl.arch.packets import Knobs, NetworkFault
from hdl.arch.queues import queues
from hdl.arch.timing import START_LEAD
from hdl.signatures import FAULT_BITS
from sim.rtl.loader import Transport
from sim.rtl.player import read_rows, write_batch
from sim.rtl.records import RunRecord
from sim.rtl.top import LATENCY_BITS

__all__ = ["RtlMachine"]

#: Clock period in time units.
_PERIOD = 2
#: Cycles from the writing of a START batch to the start time, beyond `START_LEAD`.
_MARGIN = 16
#: Cycles between two looks at a run that goes on.
_CHUNK = 20_000
#: A window without cycles.
_NO_WAVES = (1, 0)


class RtlMachine(Transport):
    """Drives the ports of the top.

    Parameters
    ----------
    dut : cocotb handle
    system : hdl.arch.config.SystemConfig
    directory : pathlib.Path
        Where files are exchanged with the simulation: what the plusarg ``exchange`` names.
    """

    def __init__(self, dut, system, directory):
        super().__init__(system)
        self._dut = dut
        self._directory = directory
        self.batches = 0        #: number of batches played

    @property
    def cycle(self):
        """Cycles since reset."""
        return int(self._dut.cycle.value)

    async def reset(self, latencies=None, knobs=None):
        """Start the clock and reset everything; ``latencies`` by link, instead of the system's,
        and where there is the conventional network its ``knobs``."""
        dut = self._dut
        if latencies is None:
            latencies = [link.latency for link in self._system.links]
        self.configure(latencies, knobs)
        dut.play.value = 0
        dut.batch.value = 0
        dut.finish.value = 0
        if hasattr(dut, "dumping"):
            dut.waves_start.value = 0
            dut.waves_first.value, dut.waves_last.value = _NO_WAVES
        dut.rst.value = 1
        Clock(dut.clk, _PERIOD, unit="ns").start()
        await self._wait(4)
        dut.rst.value = 0
        await self._wait(2)

    def configure(self, latencies, knobs=None):
        """Set what is stable from reset on."""
        self._dut.latencies.value = sum(latency << LATENCY_BITS * link
                                        for link, latency in enumerate(latencies))
        for name, value in zip(Knobs._fields if knobs else (), knobs or (), strict=True):
            getattr(self._dut, name).value = value

    async def _wait(self, cycles):
        """Let ``cycles`` clock edges pass."""
        if cycles > 1:      # to the falling edge before the last one
            await Timer(_PERIOD * cycles - _PERIOD // 2, unit="ns")
        await RisingEdge(self._dut.clk)

    async def play(self, batch):
        """See `sim.rtl.loader.Transport`."""
        number = self.batches
        self.batches += 1
        write_batch(self._directory, number, batch)
        return await self.replay(number, len(batch))

    async def replay(self, number, tiles):
        """Play the files of batch ``number``, which has commands for ``tiles`` tiles."""
        dut = self._dut
        dut.batch.value = number
        dut.play.value = 1
        await RisingEdge(dut.clk)
        dut.play.value = 0
        await RisingEdge(dut.clk)
        if not dut.playing.value:
            raise RuntimeError(f"Batch {number} in {self._directory} was not played")
        await FallingEdge(dut.playing)
        await RisingEdge(dut.clk)
        if dut.cut.value:
            raise RuntimeError(f"Batch {number} in {self._directory} ends within a command")
        return read_rows(self._directory, self._system.tile, number, tiles)

    async def run(self, loader, first_step, steps, *, limit, drain, offsets=None, progress=None,
                  waves=None):
        """Start what is loaded, and wait until it has halted.

        Parameters
        ----------
        loader : sim.rtl.loader.Loader
            From `load`.
        first_step, steps : int
        limit : int
            Cycles behind the last start time at which a run that goes on is given up.
        drain : int
            Cycles to wait behind the last HALT: until nothing is under way.
        offsets : list of int, optional
            By tile: cycles by which it starts later than planned.
        progress : callable, optional
            Called with the cycles done, now and then.
        waves : (int, int), optional
            First and last cycle, counted from the start time of tile 0, that the simulator of a
            ``waves`` build dumps, if the run (with ``drain``) lasts that long.

        Returns
        -------
        sim.rtl.records.RunRecord
        """
        begin = self.cycle
        offsets = [0] * loader.tiles if offsets is None else offsets
        starts = [begin + _MARGIN + START_LEAD + offset for offset in offsets]
        if waves is not None:
            self._dut.waves_start.value = starts[0]
            self._dut.waves_first.value, self._dut.waves_last.value = waves
        await self.play(loader.start(starts, first_step, steps))
        clock, cpu = time.monotonic(), time.process_time()
        await self._wait(max(starts) + 1 - self.cycle)
        while not self._dut.idle.value and (left := max(starts) + limit - self.cycle) > 0:
            await First(RisingEdge(self._dut.idle), Timer(_PERIOD * min(left, _CHUNK), "ns"))
            await RisingEdge(self._dut.clk)
            if progress is not None:
                progress(self.cycle - max(starts))
        cycles = self.cycle - max(starts)
        seconds, cpu = time.monotonic() - clock, time.process_time() - cpu
        running = self._running()
        await self._wait(drain)
        if waves is not None:
            self._dut.waves_first.value, self._dut.waves_last.value = _NO_WAVES
        return RunRecord(begin, starts, cycles, seconds, cpu, self.faults(), running,
                         self._network_faults())

    def _running(self):
        """Queues that have not halted."""
        names = [queue.name for queue in queues(self._system.tile)]
        bits = int(self._dut.halted.value)
        return [(tile, name) for tile in range(self._system.tiles)
                for unit, name in enumerate(names) if not bits >> tile * len(names) + unit & 1]

    def faults(self):
        """Sticky error register by tile."""
        return self._by_tile("errors", FAULT_BITS)

    def _network_faults(self):
        if not hasattr(self._dut, "network_faults"):
            return []
        return self._by_tile("network_faults", len(NetworkFault))

    def _by_tile(self, name, width):
        bits = int(getattr(self._dut, name).value)
        return [bits >> tile * width & (1 << width) - 1 for tile in range(self._system.tiles)]

    async def finish(self):
        """End the recording; the recorder's files are whole behind it."""
        self._dut.finish.value = 1
        await self._wait(4)
        if not self._dut.finished.value:
            raise RuntimeError("The recorder did not close its files")
