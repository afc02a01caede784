"""What is loaded into a machine: words, tables and SRAM contents of every tile.

The compiler writes it, the emulator and the loader read it; nothing in it says when anything
happens but the words themselves.
"""

from dataclasses import dataclass, field

from amaranth.hdl import Shape

from . import isa
from .queues import queues

__all__ = ["BinaryError", "TileBinary", "SystemBinary"]


class BinaryError(ValueError):
    """A binary that does not fit its configuration."""


@dataclass
class TileBinary:
    """Contents of one tile.

    Parameters
    ----------
    words : dict of str to list of int
        Instruction words by queue name; a queue without an entry halts at once.
    tables : dict of str to list of (shift, mask, step)
        Up to 8 entries by queue name; entry 0 is (0, 0, 0).
    sram : dict of str to dict of int to bytes
        By slice name: runs of SRAM words, ``lanes`` bytes each, by their first address.
    """

    words: dict = field(default_factory=dict)
    tables: dict = field(default_factory=dict)
    sram: dict = field(default_factory=dict)

    def check(self, cfg):
        """Raise BinaryError unless everything fits a tile of ``cfg``."""
        kinds = {queue.name: queue.kind for queue in queues(cfg)}
        for name, words in self.words.items():
            if name not in kinds:
                raise BinaryError(f"Program has words for queue {name}, which the tile lacks")
            if len(words) > cfg.icu_words:
                raise BinaryError(f"Queue {name} holds {cfg.icu_words} words, not {len(words)}: "
                                  "raise TileConfig.icu_words")
            bits = isa.word_bits(cfg, kinds[name])
            if any(word >> bits for word in words):
                raise BinaryError(f"Queue {name} has a word of more than {bits} bits")
        for name, table in self.tables.items():
            if name not in kinds or not 1 <= len(table) <= isa.TABLE_ENTRIES or \
                    tuple(table[0]) != (0, 0, 0):
                raise BinaryError(f"Table of queue {name} must have 1 to {isa.TABLE_ENTRIES} "
                                  "entries, the first (0, 0, 0)")
            for entry in table:
                if not _fits(isa.table_layout(cfg, kinds[name]), entry):
                    raise BinaryError(f"Table of queue {name} has the entry {tuple(entry)}, which "
                                      "is not a shift, a mask and a step of its width")
        for name, runs in self.sram.items():
            if name not in cfg.slices("mem"):
                raise BinaryError(f"Program has contents for slice {name}, which the tile lacks")
            for address, content in runs.items():
                if len(content) % cfg.lanes or \
                        not 0 <= address <= cfg.mem_words - len(content) // cfg.lanes:
                    raise BinaryError(f"Contents of {name} at word {address} leave its "
                                      f"{cfg.mem_words} words")


def _fits(layout, entry):
    """Whether an entry is a whole number for each field of ``layout``, in its range."""
    shapes = [Shape.cast(field.shape) for _, field in layout]
    return len(entry) == len(shapes) and all(
        isinstance(value, int) and -(1 << shape.width - 1) * shape.signed <= value
        < 1 << shape.width - shape.signed for value, shape in zip(entry, shapes, strict=True))


@dataclass
class SystemBinary:
    """One `TileBinary` for each tile, and how it is started.

    ``steps`` iterations of the step level run, the first with index ``first_step``.
    """

    tiles: list
    first_step: int = 0
    steps: int = 1

    def check(self, system):
        """Raise BinaryError unless everything fits ``system``."""
        if len(self.tiles) > system.tiles:
            raise BinaryError(f"Program needs {len(self.tiles)} tiles, the machine has "
                              f"{system.tiles}")
        if not 1 <= self.steps < 1 << isa.COUNTER_BITS or \
                not 0 <= self.first_step < (1 << isa.COUNTER_BITS) - self.steps:
            raise BinaryError(f"Steps must be 1 to {(1 << isa.COUNTER_BITS) - 1} and end below "
                              f"{1 << isa.COUNTER_BITS}, not {self.steps} from {self.first_step}")
        for tile in self.tiles:
            tile.check(system.tile)
