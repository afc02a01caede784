"""The emulator: runs the encoded program of every tile, cycle by cycle where anything happens."""

import numpy as np

from hdl.arch import isa
from hdl.arch.encoding import encode
from hdl.arch.errors import Fault
from hdl.arch.queues import queues
from hdl.arch.timing import START_LEAD

from .c2c import C2c, Links
from .calendar import Calendar
from .context import Context
from .faults import FaultLog
from .feed import Feed
from .mem import Mem
from .mxm import Mxm
from .program import parse
from .result import Result, arrival_table, issue_table, write_table
from .sequencer import FOREVER, Issues, Sequencer
from .streams import Streams
from .sxm import Sxm
from .vxm import vxm_units

__all__ = ["Machine"]

#: Cycles after which a run is given up, unless told otherwise.
MAX_CYCLES = 1 << 24
#: Cycles of issues sorted at once, times queues.
_WINDOW = 1 << 19


class Machine:
    """A system of tiles with everything they remember from one run to the next.

    Parameters
    ----------
    system : SystemConfig
    garbage : int or None
        Seed of what fills everything that has no defined contents: SRAM, weights, accumulators,
        activation buffers.  None: zeros.

    Raises
    ------
    ValueError
        If the tiles have `TileConfig.sync`.

    Attributes
    ----------
    time : int
        First machine cycle that has not been simulated.
    """

    def __init__(self, system, garbage=None):
        if system.tile.sync:
            raise ValueError("Emulator cannot run tiles with sync, whose arrivals are not planned: "
                             "run them at RTL")
        self.system = system
        self.time = 0
        self._cfg = cfg = system.tile
        self._queues = queues(cfg)
        self._faults = FaultLog(system.tiles)
        self._calendar = Calendar()
        self._streams = Streams(cfg, self._faults, self._calendar)
        self._links = Links(system, self._faults, self._calendar)
        self._writes = []
        rng = None if garbage is None else np.random.default_rng(garbage)
        self._mems, self._units = [], []
        for tile in range(system.tiles):
            context = Context(cfg, tile, self._streams, self._calendar, self._faults, self._writes)
            mems = [Mem(context, number, rng) for number in range(len(cfg.slices("mem")))]
            mxms = [Mxm(context, number, rng) for number in range(len(cfg.slices("mxm")))]
            alus, reduction = vxm_units(context, rng)
            sxms = [Sxm(context, number, rng) for number in range(len(cfg.slices("sxm")))]
            links = [C2c(context, link, self._links) for link in range(len(cfg.ports) + 1)]
            kinds = {"mem_read": mems, "mem_write": mems, "mxm_weight": mxms, "mxm_act": mxms,
                     "alu": alus, "reduce": [reduction], "sxm": sxms, "send": links, "recv": links}
            self._mems.append(dict(zip(cfg.slices("mem"), mems, strict=True)))
            self._units.append([kinds[queue.kind][queue.unit] for queue in self._queues])
        self._programs = []
        self._steps = (0, 1)
        self._busy = False

    def load(self, binary):
        """Load a `SystemBinary`: words, tables and SRAM contents.

        Raises
        ------
        BinaryError
            If it does not fit the system.
        """
        binary.check(self.system)
        self._steps = binary.first_step, binary.steps
        self._programs = [self._load_tile(number, tile) for number, tile in enumerate(binary.tiles)]
        for number, tile in enumerate(binary.tiles):
            for name, runs in tile.sram.items():
                for address, content in runs.items():
                    self.write_sram(number, name, address, content)

    def _load_tile(self, number, tile):
        """(program, table, bound operation of each source) of every queue."""
        loaded = []
        for queue, unit in zip(self._queues, self._units[number], strict=True):
            words = tile.words.get(queue.name) or [encode(self._cfg, queue.kind, "HALT")]
            program = parse(self._cfg, queue.kind, words)
            table = [tuple(entry) for entry in tile.tables.get(queue.name, ())]
            table += [(0, 0, 0)] * (isa.TABLE_ENTRIES - len(table))
            bound = {}
            for source in program.sources:
                if source.word not in bound:
                    bound[source.word] = unit.bind(queue.name, source.op, source.fields, table)
            loaded.append((program, table, [bound[source.word] for source in program.sources]))
        return loaded

    def write_sram(self, tile, name, address, content):
        """Write ``content`` (bytes, whole words) into slice ``name`` from word ``address`` on."""
        self._mems[tile][name].load(address, content)

    def sram(self, tile):
        """Contents of the SRAM by slice name, arrays (words, lanes) of uint8."""
        return {name: mem.words() for name, mem in self._mems[tile].items()}

    def defined(self, tile):
        """Which SRAM words were ever loaded or written, by slice name, arrays (words,) of bool."""
        return {name: mem.defined() for name, mem in self._mems[tile].items()}

    def clear_faults(self):
        """Clear the error registers of all tiles."""
        for tile in range(self.system.tiles):
            self._faults.clear(tile)

    def start(self, *, first_step=None, steps=None, at=None, host_input=(), host_commands=(),
              max_cycles=MAX_CYCLES, drain=True):
        """Run the loaded program until every queue has halted.

        Parameters
        ----------
        first_step, steps : int or None
            Of the step level; None: as the binary says.  ``steps`` of 0 counts as 1.
        at : int, sequence of int, or None
            Start time in machine cycles, of all tiles or of each; None: the earliest possible.
        host_input : iterable of (tile, cycle, vector)
            Vectors (bytes) that arrive at the host link of a tile in a cycle after its start.
        host_commands : iterable of (tile, cycle)
            Accesses of the host that the tile must refuse while it runs.
        max_cycles : int
            Cycles after the last start at which the run is given up.
        drain : bool
            Go on until nothing is under way.  Otherwise end one cycle behind the last HALT: what is
            under way then happens in the next run, in cycles below 0.

        Returns
        -------
        Result
        """
        if self._busy:
            raise RuntimeError("Machine is still running a program that was given up: make another")
        first_step = self._steps[0] if first_step is None else first_step
        steps = (self._steps[1] if steps is None else steps) or 1
        starts = self._start_times(at)
        for table in (self._writes, self._links.arrivals, self._links.host):
            table.clear()
        started = [tile for tile in range(len(self._programs))
                   if self._in_time(tile, starts[tile])]
        limit = int(starts.max()) + max_cycles
        halts, feeds, operations = self._prepare(started, starts, first_step, steps)
        for tile, cycle, vector in host_input:
            self._accept_input(tile, int(starts[tile]) + cycle, vector)
        issues = self._execute(feeds, operations, limit)
        running = [(tile, queue) for tile, queue, halt in halts if halt >= limit]
        self._busy = bool(running)
        self._end(limit if running else max((halt + 1 for *_, halt in halts), default=self.time),
                  drain and not running)
        self._note_commands(host_commands, starts, halts)
        return Result(
            issues=issue_table(issues), writes=write_table(self._cfg, self._writes, starts),
            arrivals=arrival_table(self._cfg, self._links.arrivals, starts),
            host=arrival_table(self._cfg, self._links.host, starts),
            cycles=max((min(halt, limit) - int(starts[tile]) for tile, _, halt in halts),
                       default=0),
            running=running,
            faults=[self._faults.since(tile, int(starts[tile]))
                    for tile in range(self.system.tiles)])

    def _start_times(self, at):
        starts = np.zeros(self.system.tiles, np.int64)
        starts[:] = self.time + START_LEAD if at is None else at
        return starts

    def _in_time(self, tile, start):
        if start - START_LEAD >= self.time:
            return True
        self._faults.note(tile, Fault.START_PAST, self.time, "host")
        return False

    def _accept_input(self, tile, cycle, vector):
        if len(vector) != self._cfg.lanes or cycle < self.time:
            raise ValueError(f"Host input must be {self._cfg.lanes} bytes at machine cycle "
                             f"{self.time} or later, not {len(vector)} at {cycle}")
        self._links.from_host(cycle, tile, bytes(vector))

    def _prepare(self, tiles, starts, first_step, steps):
        """(tile, queue, cycle of its HALT) of all queues, feeds by rank, bound operations."""
        halts, feeds, operations = [], [], []
        # senders before receivers, otherwise in the order of the queues
        order = sorted(range(len(self._queues)), key=lambda unit: self._queues[unit].kind == "recv")
        for tile in tiles:
            start = int(starts[tile])
            for unit in order:
                queue = self._queues[unit]
                program, table, bound = self._programs[tile][unit]
                sequencer = Sequencer(self._cfg, queue.kind, program, table, first_step, steps)
                halts.append((tile, queue.name, start + sequencer.halt))
                if not program.valid:
                    self._faults.note(tile, Fault.ICU_WORD, start + sequencer.halt, queue.name)
                if bound:
                    numbers = np.arange(len(operations), len(operations) + len(bound))
                    operations += bound
                    feeds.append(Feed(self._cfg, tile, unit, queue.kind, start, sequencer,
                                      program.sources, numbers))
        return halts, feeds, operations

    def _execute(self, feeds, operations, limit):
        """Run all issues before machine cycle ``limit``; gives their tables."""
        tables = []
        window = max(64, _WINDOW // max(1, len(feeds)))
        limit = min(limit, FOREVER)
        while (first := min((feed.next for feed in feeds), default=limit)) < limit:
            parts, numbers, ranks = [], [], []
            for rank, feed in enumerate(feeds):
                taken = feed.take(min(first + window, limit))
                if taken is not None:
                    issues, chosen = taken
                    tables.append(feed.table(issues))
                    parts.append(issues)
                    numbers.append(chosen)
                    ranks.append(np.full(len(chosen), rank))
            issues, numbers = Issues.concatenate(parts), np.concatenate(numbers)
            order = np.lexsort((np.concatenate(ranks), issues.cycle))
            self._run(issues.pick(order), [operations[i] for i in numbers[order].tolist()])
        return tables

    def _run(self, issues, operations):
        """Run ``issues``, in the order of cycle and rank."""
        streams, calendar = self._streams, self._calendar
        lasts, under_way = streams.lasts, calendar.cycles
        rows = list(zip(operations, *issues.indices.tolist(), issues.step.tolist(), strict=True))
        ends = np.flatnonzero(np.diff(issues.cycle, append=FOREVER)) + 1
        begin = 0
        for end, cycle in zip(ends.tolist(), issues.cycle[ends - 1].tolist(), strict=True):
            if under_way and under_way[0] < cycle:
                calendar.finish(cycle - 1, streams.write)
            for operation, first, second, step in rows[begin:end]:
                operation(cycle, first, second, step)
            if lasts:
                streams.clear(cycle)
            begin = end

    def _end(self, end, drain):
        """Let everything happen before machine cycle ``end``, or everything at all."""
        self._calendar.finish(FOREVER if drain else end - 1, self._streams.write)
        if drain:
            end = max(end, self._calendar.done + 1, self._streams.last_cycle() + 1)
        self._streams.sweep(end - 1)
        self.time = end

    def _note_commands(self, commands, starts, halts):
        last = {}
        for tile, _, halt in halts:
            last[tile] = max(halt, last.get(tile, halt))
        for tile, cycle in commands:
            cycle += int(starts[tile])
            if tile in last and cycle <= last[tile]:
                self._faults.note(tile, Fault.HOST_BUSY, cycle, "host")
