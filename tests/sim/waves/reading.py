"""Reading the waves of a run back, cycle by cycle."""

from hdl.arch import isa
from hdl.arch.encoding import crc16
from hdl.arch.queues import queue_index, queues
from hdl.arch.trace import pack_index
from sim.rtl.run import VCD
from sim.rtl.top import TOP
from sim.waves.gtkw import tile_path
from sim.waves.vcd import Waves, number

CLK, CYCLE = f"{TOP}.clk", f"{TOP}.event_cycle"


def icu(tile, queue):
    """Path of the ICU of a queue."""
    return f"{tile_path(tile)}.icu_{queue.name.replace('.', '_')}"


def samples(directory, *names):
    """Event cycle and values, as numbers, in every cycle of the file."""
    waves = Waves(directory / VCD, [CLK, CYCLE, *names])
    for values in waves.sample(CLK, CYCLE, *names):
        numbers = [number(value) for value in values]
        assert None not in numbers      # Verilator knows no x and z
        yield numbers


def issues(directory, cfg, tile):
    """(cycle, queue number, CRC of the word, packed indices) of every issue of a tile, sorted."""
    found = []
    for queue in queues(cfg):
        part = f"{icu(tile, queue)}.issue__"
        indices = [f"{part}index__{index.name}" for index in isa.KINDS[queue.kind].indices]
        for cycle, valid, word, *index in samples(directory, f"{part}valid", f"{part}word",
                                                  *indices):
            if valid:
                found.append((cycle, queue_index(cfg)[queue.name],
                              crc16(word, isa.word_bytes(cfg, queue.kind)),
                              pack_index(cfg, queue.kind, index)))
    return sorted(found)


def recorded_issues(events, tile, first, last):
    """The same of the trace port's records, from cycle ``first`` to ``last``."""
    table = events.issues
    table = table[(table["tile"] == tile) & (table["cycle"] >= first) & (table["cycle"] <= last)]
    return sorted(table[["cycle", "unit", "crc", "index"]].tolist())
