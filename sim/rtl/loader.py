"""From a binary to host commands, whatever carries them to the machine.

Commands are tables (`command_record`), one for each tile: a *batch*.  A `Transport` plays a batch:
the port of a simulation (`sim.rtl.machine`) or a line to a board (`sim.bridge.board`).  Nothing
here knows how.
"""

from abc import ABC, abstractmethod

import numpy as np

from hdl.arch import isa
from hdl.arch.encoding import encode
from hdl.arch.host import HostOp, command_layout, start_layout
from hdl.arch.queues import queues

__all__ = ["Loader", "Transport", "command_record"]


def command_record(cfg):
    """Record format of a command: `hdl.arch.host.command_layout` with every field in whole bytes,
    lowest first.  Within a record ``op`` comes first."""
    fields = {name: field.width for name, field in command_layout(cfg)}
    return np.dtype([(name, "u1", (-(-width // 8),)) for name, width in fields.items()])


class Transport(ABC):
    """What carries commands to the tiles of a machine.

    Parameters
    ----------
    system : hdl.arch.config.SystemConfig
        The machine.
    """

    def __init__(self, system):
        self._system = system

    @abstractmethod
    async def play(self, batch):
        """Play a batch.

        Parameters
        ----------
        batch : list of array
            By tile: commands of `command_record`; tiles beyond the list get none.

        Returns
        -------
        list of array
            By tile: what its READ commands returned, uint8 of shape (commands, bytes of a row).
        """

    async def load(self, binary, sram, held=None):
        """Load SRAM contents (`sim.image.initial_sram`) and programs; gives the `Loader`.  ``held``
        is as of `Loader.load_sram`."""
        loader = Loader(self._system, binary, sram)
        await self.play(loader.load_sram(held))
        await self.play(loader.load_program())
        return loader

    async def reload(self, binary):
        """Load the words and tables of another program; SRAM stays.  Gives the `Loader`."""
        loader = Loader(self._system, binary, [])
        await self.play(loader.load_program())
        return loader

    async def read_sram(self, loader):
        """Contents of every SRAM, by tile: uint8 of shape (slices, words, lanes)."""
        return loader.rows_to_sram(await self.play(loader.read_sram()))


class Loader:
    """Commands that load, start and read back one binary.

    Parameters
    ----------
    system : hdl.arch.config.SystemConfig
    binary : hdl.arch.binary.SystemBinary
    sram : list of array
        By tile: contents to load, uint8 of shape (slices, words, lanes); see
        `sim.image.initial_sram`.

    Raises
    ------
    hdl.arch.binary.BinaryError
        If the binary does not fit the system.
    """

    def __init__(self, system, binary, sram):
        binary.check(system)
        self._cfg = system.tile
        self._binary = binary
        self._sram = sram
        self._record = command_record(self._cfg)

    @property
    def tiles(self):
        """Tiles of the binary."""
        return len(self._binary.tiles)

    def _commands(self, count, op, select=0, address=0, data=None):
        """``count`` commands; ``select`` and ``address`` are numbers or arrays, ``data`` bytes."""
        table = np.zeros(count, self._record)
        table["op"] = op.value
        for name, values in (("select", select), ("address", address)):
            values = np.broadcast_to(np.asarray(values, np.uint64), count)
            for i in range(table[name].shape[1]):
                table[name][:, i] = values >> np.uint64(8 * i) & np.uint64(255)
        if data is not None:
            table["data"][:, :data.shape[1]] = data
        return table

    def load_sram(self, held=None):
        """Batch that writes every SRAM word, all slices at once.

        Parameters
        ----------
        held : list of array, optional
            What the SRAM is known to hold, in the form of ``sram``: only addresses that differ in
            any slice are written.
        """
        every_slice = (1 << len(self._cfg.slices("mem"))) - 1
        batch = []
        for tile, rows in enumerate(self._sram):
            addresses = np.arange(self._cfg.mem_words) if held is None else \
                np.flatnonzero((rows != held[tile]).any(axis=(0, 2)))
            chosen = rows[:, addresses].transpose(1, 0, 2)
            data = chosen.reshape(len(addresses), len(rows) * rows.shape[2])
            batch.append(self._commands(len(addresses), HostOp.SRAM, every_slice, addresses, data))
        return batch

    def load_program(self):
        """Batch that writes the instruction words and tables of every queue.

        A queue without words gets a HALT.  Behind the last word goes one that no queue has, so that
        a program which runs past its end fails in the same way whatever the memory held before.
        """
        return [np.concatenate([part for number, queue in enumerate(queues(self._cfg))
                                for part in self._queue(tile, number, queue)])
                for tile in self._binary.tiles]

    def _queue(self, tile, number, queue):
        cfg = self._cfg
        words = list(tile.words.get(queue.name, ())) or [encode(cfg, queue.kind, "HALT")]
        if len(words) < cfg.icu_words:
            words.append(_undefined_word(cfg, queue.kind))
        yield self._numbers(HostOp.WORD, number, words, isa.word_bytes(cfg, queue.kind))
        layout = isa.table_layout(cfg, queue.kind)
        table = list(tile.tables.get(queue.name, ()))
        table += [(0, 0, 0)] * (isa.TABLE_ENTRIES - len(table))
        entries = [sum(value << field.offset for value, (_, field) in
                       zip((shift, mask, step & (1 << layout["step"].width) - 1), layout,
                           strict=True)) for shift, mask, step in table]
        yield self._numbers(HostOp.TABLE, number, entries, -(-layout.size // 8))

    def _numbers(self, op, select, numbers, size):
        data = b"".join(number.to_bytes(size, "little") for number in numbers)
        return self._commands(len(numbers), op, select, np.arange(len(numbers)),
                              np.frombuffer(data, np.uint8).reshape(-1, size))

    def write_words(self, patches):
        """Batch that writes single SRAM words.

        Parameters
        ----------
        patches : list of (int, int, int, bytes)
            Tile, number of the slice, address, and whole words from there on.
        """
        lanes = self._cfg.lanes
        batch = [[self._commands(0, HostOp.NONE)] for _ in self._binary.tiles]
        for tile, unit, address, content in patches:
            words = np.frombuffer(content, np.uint8).reshape(-1, lanes)
            rows = np.zeros((len(words), (unit + 1) * lanes), np.uint8)
            rows[:, unit * lanes:] = words
            batch[tile].append(self._commands(len(words), HostOp.SRAM, 1 << unit,
                                              address + np.arange(len(words)), rows))
        return [np.concatenate(parts) for parts in batch]

    def start(self, times, first_step, steps):
        """Batch of one START for each tile; ``times`` by tile are times of its cycle counter, or
        cycles from the START where a bridge is between."""
        batch = []
        for time in times:
            values = {"time": time, "first_step": first_step, "steps": steps}
            number = 0
            for name, field in start_layout:
                if not 0 <= values[name] < 1 << field.width:
                    raise ValueError(f"START.{name} must be in 0..{(1 << field.width) - 1}, "
                                     f"not {values[name]!r}")
                number |= values[name] << field.offset
            batch.append(self._numbers(HostOp.START, 0, [number], -(-start_layout.size // 8)))
        return batch

    def clear(self):
        """Batch that clears the sticky error registers."""
        return [self._commands(1, HostOp.CLEAR) for _ in self._binary.tiles]

    def read_sram(self):
        """Batch that reads every SRAM word back; `rows_to_sram` puts what it returns in form."""
        words = self._cfg.mem_words
        return [self._commands(words, HostOp.READ, address=np.arange(words))
                for _ in self._binary.tiles]

    def rows_to_sram(self, rows):
        """SRAM contents (see `sim.image.initial_sram`) from the rows that `read_sram` gave."""
        cfg = self._cfg
        slices = len(cfg.slices("mem"))
        return [tile.reshape(cfg.mem_words, slices, cfg.lanes).transpose(1, 0, 2) for tile in rows]


def _undefined_word(cfg, kind):
    """A word whose opcode the queue does not have."""
    used = {op.value for op in isa.opcodes(cfg, kind)}
    return next(code for code in reversed(range(1 << isa.OP_BITS)) if code not in used)
