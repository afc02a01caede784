"""A GTKWave view of the visible tile: instructions in words, streams, links, SRAM writes.

Beside ``waves.vcd`` come ``waves.gtkw``, the save file, and a directory ``waves-words`` with a
translate filter for each queue: what GTKWave shows instead of a word's hexadecimal digits.
"""

from pathlib import Path

from hdl.arch import isa
from hdl.arch.encoding import EncodingError, decode, to_text
from hdl.arch.queues import link_names, queues
from sim.rtl.probes import queue_signal, stream_signals
from sim.rtl.top import TOP
from sim.waves.header import read_header

__all__ = ["tile_path", "write_view"]

# Flags of a row or group, as GTKWave's save files have them.
_HEX, _DECIMAL, _BINARY, _FILTERED = 0x22, 0x24, 0x28, 0x2022
_OPEN, _CLOSED, _END = 0x800200, 0xC00200, 0x1000200

#: 200 pixels show 2 ** -_ZOOM time units: a cycle takes 140, most of an instruction's text.
_ZOOM = -1.5
#: Fields that say when the next word issues, not what this one does.
_SEQUENCING = ("wait", "ends")


def tile_path(tile):
    """Path of a tile in the VCD."""
    return f"{TOP}.system.tile{tile}"


def write_view(vcd, cfg, tile, words):
    """Write the save file and the filters of a VCD.

    Parameters
    ----------
    vcd : path
        Of a ``waves`` build (`sim.rtl.build.build_rtl`).
    cfg : hdl.arch.config.TileConfig
    tile : int
        The visible tile.
    words : dict of str to list of int
        Its instruction words by queue (`hdl.arch.binary.TileBinary`); only these queues are shown.

    Returns
    -------
    Path
        The save file.

    Raises
    ------
    KeyError
        If a signal is not in the VCD.
    """
    vcd = Path(vcd).resolve()
    header = read_header(vcd)
    save = vcd.with_suffix(".gtkw")
    shown = [queue for queue in queues(cfg) if words.get(queue.name)]
    view = _View(header.names)
    view.row(_DECIMAL, f"{TOP}.event_cycle")
    filters = _write_filters(vcd.with_name(f"{vcd.stem}-words"), cfg, shown, words)
    view.begin("instructions")
    for queue in shown:
        view.row(_FILTERED, f"{TOP}.{queue_signal(queue.name)}", filters[queue.name])
    view.end("instructions")
    _links(view, cfg, tile_path(tile))
    _writes(view, cfg, tile_path(tile))
    _streams(view, cfg, tile_path(tile))
    for queue in shown:
        _issue(view, queue, tile_path(tile), filters[queue.name])
    save.write_text("\n".join([
        "[*] events of one tile: `issue.*` shows a word in the cycle in which it issues",
        f'[dumpfile] "{vcd}"', f"[dumpfile_size] {vcd.stat().st_size}", f'[savefile] "{save}"',
        f"[timestart] {header.begin}", "[size] 1600 900", "[pos] -1 -1",
        f"*{_ZOOM:.6f} {header.begin}" + " -1" * 26,        # behind it the marker, and named ones
        f"[treeopen] {TOP}.", "[signals_width] 260", "[sst_expanded] 1", *view.lines,
        "[pattern_trace] 1", "[pattern_trace] 0", ""]))
    return save


class _View:
    """Rows and groups of a save file.

    Parameters
    ----------
    names : dict of str to str
        Of `read_header`.
    """

    def __init__(self, names):
        self._names = names
        self._filters = {}
        self.lines = []

    def row(self, flags, name, words=None):
        """A signal; ``words`` is the file of its filter."""
        self.lines.append(f"@{flags:x}")
        if words is not None:
            self.lines.append(f"^{self._filters.setdefault(words, len(self._filters) + 1)} {words}")
        self.lines.append(self._names[name])

    def begin(self, title, *, closed=False):
        self.lines += [f"@{_CLOSED if closed else _OPEN:x}", f"-{title}"]

    def end(self, title):
        self.lines += [f"@{_END:x}", f"-{title}"]


def _write_filters(directory, cfg, shown, words):
    """One file for each queue: by its name."""
    directory.mkdir(exist_ok=True)
    files = {}
    for queue in shown:
        digits = -(-isa.word_bits(cfg, queue.kind) // 4)
        lines = [f"{0:0{digits}x} -"]
        lines += [f"{word:0{digits}x} {_mnemonic(cfg, queue.kind, word)}"
                  for word in sorted(set(words[queue.name]) - {0})]
        files[queue.name] = directory / f"{queue.name}.txt"
        files[queue.name].write_text("\n".join([*lines, ""]))
    return files


def _mnemonic(cfg, kind, word):
    """Assembler text of a word, without the fields that only its queue looks at."""
    try:
        insn = decode(cfg, kind, word)
    except EncodingError:
        return f"? {word:#x}"
    kept = {name: value for name, value in insn.fields.items() if name not in _SEQUENCING}
    return to_text(insn._replace(fields=kept))


def _links(view, cfg, tile):
    for k, link in enumerate(link_names(cfg)):
        view.begin(link)
        for port in (f"tx{k}", f"rx{k}"):
            view.row(_BINARY, f"{tile}.{port}__valid")
            view.row(_HEX, f"{tile}.{port}__data")
        view.row(_BINARY, f"{tile}.arrivals_{k}__valid")
        view.row(_HEX, f"{tile}.arrivals_{k}__data")
        view.end(link)


def _writes(view, cfg, tile):
    for name in cfg.slices("mem"):
        view.begin(f"{name} writes", closed=True)
        view.row(_BINARY, f"{tile}.{name}.written__valid")
        view.row(_DECIMAL, f"{tile}.{name}.written__address")
        view.row(_HEX, f"{tile}.{name}.written__data")
        view.end(f"{name} writes")


def _streams(view, cfg, tile):
    """What arrives at every slice that computes or sends."""
    for name in cfg.floorplan:
        if name in cfg.slices("mem"):
            continue
        view.begin(f"streams at {name}", closed=True)
        signals = stream_signals(cfg, name)
        for direction in sorted({direction for direction, _ in signals.values()}):
            view.row(_BINARY, f"{tile}.stream_{name}.in_{direction}__valid")
        for path in signals:
            view.row(_HEX, f"{TOP}.{path}")
        view.end(f"streams at {name}")


def _issue(view, queue, tile, words):
    """Everything about the issues of one queue."""
    issue = f"{tile}.icu_{queue.name.replace('.', '_')}.issue__"
    spec = isa.KINDS[queue.kind]
    view.begin(queue.name, closed=True)
    view.row(_BINARY, f"{issue}valid")
    view.row(_FILTERED, f"{issue}word", words)
    view.row(_HEX, f"{issue}word")
    for index in spec.indices:
        view.row(_DECIMAL, f"{issue}index__{index.name}")
    view.row(_DECIMAL, f"{issue}step")
    if spec.predicate:
        view.row(_BINARY, f"{issue}predicate")
    view.end(queue.name)
