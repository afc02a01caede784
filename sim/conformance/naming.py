"""Saying where two machines differ: tile, queue, cycle, mnemonic, expected, observed."""

from dataclasses import dataclass

from hdl.arch import isa
from hdl.arch.encoding import EncodingError, crc16, decode, to_text
from hdl.arch.queues import link_names, queues
from hdl.arch.timing import timing

__all__ = ["Difference", "Names"]

_UNKNOWN = "?"


@dataclass(frozen=True)
class Difference:
    """One event in which two tables differ.

    Attributes
    ----------
    category : str
        ``missing``, ``unplanned``, ``off-cycle`` or ``wrong``; or ``sticky error``.
    kind : str
        ``issues``, ``writes``, ``arrivals`` or ``host``; or ``errors``.
    tile : int
    queue : str
        Queue of an issue, write port of a slice, link of an arrival, place of an error.
    cycle : int or None
        Where it was expected; where it was observed if it was not expected at all; None: what is
        there after the run.
    mnemonic : str
        Opcode of the instruction that issues (or has written); ``arrival`` on a link; name of an
        error.
    expected, observed : str
        The event on either side in full, or ``nothing``.
    """

    category: str
    kind: str
    tile: int
    queue: str
    cycle: int | None
    mnemonic: str
    expected: str
    observed: str

    def __str__(self):
        time = "after the run" if self.cycle is None else f"cycle {self.cycle}"
        return (f"tile {self.tile}, {self.queue}, {time}, {self.mnemonic}: "
                f"expected {self.expected}, observed {self.observed} ({self.category})")


class Names:
    """Names of the queues and instructions of a machine.

    Parameters
    ----------
    cfg : hdl.arch.config.TileConfig
    binary : hdl.arch.binary.SystemBinary, optional
        Where instruction words are looked up by their CRC.
    """

    def __init__(self, cfg, binary=None):
        self._cfg = cfg
        self._binary = binary
        self._queues = queues(cfg)
        self._words = {}            # (tile, queue number) -> {crc: word}

    def queue(self, kind, unit):
        """Name of the place where events of ``kind`` with this ``unit`` happen."""
        places = {"issues": [queue.name for queue in self._queues],
                  "writes": [f"{name}.write" for name in self._cfg.slices("mem")],
                  "arrivals": link_names(self._cfg),
                  "host": [f"{name} out" for name in link_names(self._cfg)]}[kind]
        return places[unit] if unit < len(places) else f"{kind} port {unit}"

    def insn(self, tile, unit, crc):
        """The `Insn` of queue number ``unit`` whose word has this CRC; None if there is none."""
        if self._binary is None or tile >= len(self._binary.tiles) or unit >= len(self._queues):
            return None
        if (tile, unit) not in self._words:
            queue = self._queues[unit]
            count = isa.word_bytes(self._cfg, queue.kind)
            words = self._binary.tiles[tile].words.get(queue.name, ())
            self._words[tile, unit] = {crc16(word, count): word for word in reversed(words)}
        word = self._words[tile, unit].get(crc)
        try:
            return None if word is None else decode(self._cfg, self._queues[unit].kind, word)
        except EncodingError:
            return None

    def mnemonic(self, kind, event, issues):
        """Opcode behind ``event``, a row of a table of ``kind``; ``issues`` is the table in which
        the instruction of a write is looked for."""
        if kind in ("arrivals", "host"):
            return "arrival"
        crc, unit, tile = 0, int(event["unit"]), int(event["tile"])
        if kind == "issues":
            crc = int(event["crc"])
        else:
            name = self.queue(kind, unit)
            unit = next((i for i, queue in enumerate(self._queues) if queue.name == name), -1)
            cycle = int(event["cycle"]) - timing(self._cfg)["mem_write", "WRITE"].t_d
            found = issues[(issues["tile"] == tile) & (issues["unit"] == unit)
                           & (issues["cycle"] == cycle)]
            if unit < 0 or not len(found):
                return _UNKNOWN
            crc = int(found[0]["crc"])
        insn = self.insn(tile, unit, crc)
        return _UNKNOWN if insn is None else insn.op

    def event(self, kind, event):
        """``event`` in full, its cycle included."""
        return f"{self._payload(kind, event)} at cycle {int(event['cycle'])}"

    def _payload(self, kind, event):
        if kind == "issues":
            return self._issue(event)
        data = f"data {event['data'].tobytes().hex()}" if "data" in event.dtype.names else ""
        if kind == "writes":
            return f"word {int(event['address'])} {data}".strip()
        return data or "a vector"

    def _issue(self, event):
        tile, unit = int(event["tile"]), int(event["unit"])
        insn = self.insn(tile, unit, int(event["crc"]))
        text = f"`{to_text(insn)}`" if insn else f"a word with CRC {int(event['crc']):#06x}"
        if unit >= len(self._queues):
            return text
        kind = self._queues[unit].kind
        packed, parts = int(event["index"]), []
        for index, bits in zip(isa.KINDS[kind].indices, isa.index_bits(self._cfg, kind),
                               strict=True):
            parts.append(f"{index.name} {packed & (1 << bits) - 1}")
            packed >>= bits
        if packed:
            parts.append(f"further index bits {packed:#x}")
        return f"{text} with {' and '.join(parts)}" if parts else text
