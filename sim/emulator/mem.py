"""SRAM slice: one read port, one write port."""

import numpy as np

from hdl.arch.errors import Fault

__all__ = ["Mem"]


class Mem:
    """One SRAM slice of one tile.

    Timing: READ accesses the SRAM in the cycle of its issue and is on the streams one cycle later.
    GATHER takes its operand at its issue, accesses the SRAM one cycle later and is on the streams
    two cycles later.  WRITE takes its operand at its issue and writes one cycle later.

    Parameters
    ----------
    context : Context
        The machine around it.
    number : int
        Which of the tile's mem slices this is.
    garbage : numpy.random.Generator or None
        What fills the SRAM; None: zeros.
    """

    def __init__(self, context, number, garbage):
        cfg = context.cfg
        self._context = context
        self._number = number
        self._name = cfg.slices("mem")[number]
        lanes, size = cfg.lanes, cfg.mem_words * cfg.lanes
        content = bytes(size) if garbage is None else garbage.bytes(size)
        self._words = [content[at:at + lanes] for at in range(0, size, lanes)]
        self._defined = bytearray(cfg.mem_words)
        # (cycle, address) of the two last writes, of which one may be still to come
        self._writing = (-1, -1), (-1, -1)
        self._gather_cycle = -1         # cycle of the last GATHER's access

    def load(self, address, content):
        """Write ``content`` (bytes, whole words) from word ``address`` on."""
        lanes = self._context.cfg.lanes
        words = [bytes(content[at:at + lanes]) for at in range(0, len(content), lanes)]
        self._words[address:address + len(words)] = words
        self._defined[address:address + len(words)] = b"\1" * len(words)

    def words(self):
        """Contents, an array (words, lanes) of uint8."""
        return np.frombuffer(b"".join(self._words), np.uint8).reshape(-1, self._context.cfg.lanes)

    def defined(self):
        """Which words were ever loaded or written, an array (words,) of bool."""
        return np.frombuffer(bytes(self._defined), np.uint8).astype(bool)

    def bind(self, queue, op, fields, table):
        """Function (cycle, address, 0, step) that does what an issue of the word does."""
        return {"READ": self._read, "GATHER": self._gather, "WRITE": self._write}[op](
            queue, fields, table)

    def _read(self, queue, fields, _table):
        context, words, size = self._context, self._words, len(self._words)
        put = context.streams.writer(context.tile, self._name, fields)
        zeros = bytes(context.cfg.lanes)

        def read(cycle, address, _, _step):
            if cycle == self._gather_cycle:
                context.fault(Fault.SRAM_COLLISION, cycle, queue)
            elif address >= size:
                context.fault(Fault.SRAM_ADDRESS, cycle, queue)
                put(cycle + 1, zeros)
            else:
                if (cycle, address) in self._writing:
                    context.fault(Fault.SRAM_COLLISION, cycle, queue)
                put(cycle + 1, words[address])
        return read

    def _gather(self, queue, fields, _table):
        context, words, size = self._context, self._words, len(self._words)
        take = context.streams.reader(context.tile, self._name, fields, 4)
        put = context.streams.writer(context.tile, self._name, fields)
        zeros = bytes(context.cfg.lanes)

        def access(cycle, address):
            # planned ahead of the write of this cycle, so it happens before
            if (cycle, address) in self._writing:
                context.fault(Fault.SRAM_COLLISION, cycle, queue)
            put(cycle + 1, words[address] if address < size else zeros)

        def gather(cycle, address, _, _step):
            lane_0 = int.from_bytes([plane[0] for plane in take(cycle)], "little")
            self._gather_cycle = cycle + 1
            context.calendar.act(cycle + 1, access, lane_0 + address & 0xFFFFFFFF)
        return gather

    def _write(self, queue, fields, table):
        context, size = self._context, len(self._words)
        take = context.streams.reader(context.tile, self._name, fields)
        shift, mask, match = table[fields["predicate"]]
        act = context.calendar.act

        def write(cycle, address, _, step):
            value = take(cycle)
            if (step >> shift & mask) != match:
                return
            if address >= size:
                context.fault(Fault.SRAM_ADDRESS, cycle, queue)
                return
            self._writing = self._writing[1], (cycle + 1, address)
            act(cycle + 1, self._store, address, value)
        return write

    def _store(self, cycle, address, value):
        self._words[address] = value
        self._defined[address] = 1
        self._context.writes.append((cycle, self._context.tile, self._number, address, value))
