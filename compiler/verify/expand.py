"""The issues of a binary, word by word: what each queue does and when.

Written from the definition of the words alone; it shares nothing with the assembler.
"""

from typing import NamedTuple

from hdl.arch import isa
from hdl.arch.ops import CONTROL

from ..errors import VerifyError
from .words import active_queues, read_words, table_of

__all__ = ["Event", "events"]

_COUNTER = 1 << isa.COUNTER_BITS

class Event(NamedTuple):
    """One issue: ``indices`` by name, ``writes`` false where a predicate suppresses the write."""
    cycle: int
    tile: int
    queue: object
    op: str
    fields: dict
    indices: dict
    writes: bool


def events(cfg, binary):
    """All issues of a `SystemBinary`, sorted by cycle.

    Raises
    ------
    VerifyError
        On a word that the instruction set does not have, or a queue that never halts.
    """
    found = []
    for tile, queue, content in active_queues(cfg, binary):
        found += _QueueRun(cfg, tile, queue, content, binary.first_step, binary.steps).run()
    return sorted(found, key=lambda event: (event.cycle, event.tile, event.queue))


class _QueueRun:
    def __init__(self, cfg, tile, queue, content, first_step, steps):
        self._cfg = cfg
        self._where = f"Tile {tile} {queue.name}"
        self._tile = tile
        self._queue = queue
        self._table = table_of(queue, content)
        self._first_step = first_step
        self._steps = steps
        self._bits = dict(zip((index.name for index in isa.KINDS[queue.kind].indices),
                              isa.index_bits(cfg, queue.kind), strict=True))
        self._words = read_words(cfg, tile, queue, content)

    def run(self):
        cycle, at, loops, unit, found = 0, 0, [], None, []
        while True:
            if at >= len(self._words):
                raise VerifyError(f"{self._where} runs past its last word without HALT")
            op, fields = self._words[at]
            length = 1 + fields["wait"]
            at += 1
            if op == "HALT":
                if loops:
                    raise VerifyError(f"{self._where} halts inside a LOOP")
                self._end_loops(fields["ends"], loops, at)
                return found
            if op == "NOP":
                length += fields["more"] << isa.WAIT_BITS
            elif op == "LOOP":
                if fields["ends"]:
                    raise VerifyError(f"{self._where} ends a LOOP with a LOOP")
                first = 0 if loops else self._first_step
                loops.append([at, first, first + (fields["count"] or self._steps)])
                if len(loops) > self._cfg.loop_levels:
                    raise VerifyError(f"{self._where} nests more than {self._cfg.loop_levels} "
                                      "LOOPs")
            elif op == "REPEAT":
                if unit is None:
                    raise VerifyError(f"{self._where} repeats nothing")
                count, interval = fields["count"] or 1, fields["interval"] or 1
                for r in range(1, count + 1):
                    found.append(self._event(cycle + (r - 1) * interval, unit, loops, r, fields))
                length += (count - 1) * interval
            else:
                found.append(self._event(cycle, (op, fields), loops, 0, None))
            unit = (op, fields) if op not in CONTROL else unit if op == "REPEAT" else None
            cycle += length
            at = self._end_loops(fields["ends"], loops, at)

    def _end_loops(self, ends, loops, at):
        if ends > len(loops):
            raise VerifyError(f"{self._where} ends more LOOPs than are open")
        for _ in range(ends):
            loops[-1][1] += 1
            if loops[-1][1] < loops[-1][2]:
                return loops[-1][0]
            loops.pop()
        return at

    def _event(self, cycle, unit, loops, r, repeat):
        op, fields = unit
        indices = {}
        for name, bits in self._bits.items():
            value = fields[name] + (r * repeat[f"{name}_stride"] if r else 0)
            for level, entry in enumerate(fields.get(f"{name}_terms", ())):
                if entry and level < len(loops):
                    shift, mask, step = self._table[entry]
                    value += (loops[level][1] % _COUNTER >> shift & mask) * step
            indices[name] = value % (1 << bits)
        writes = True
        if fields.get("predicate"):
            shift, mask, step = self._table[fields["predicate"]]
            writes = (loops[0][1] if loops else 0) % _COUNTER >> shift & mask == step
        return Event(cycle, self._tile, self._queue, op, fields, indices, writes)
