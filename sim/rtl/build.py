"""Building the simulator of a system."""

import re

from hdl.system import TOP as SYSTEM
from sim.build import build_model
from sim.rtl.emitted import emitted
from sim.rtl.top import TOP, top_verilog

__all__ = ["KINDS", "MAX_LATENCY", "build_rtl", "plain_name", "readable"]

#: ``fast``: nothing of a tile is visible but its ports.  ``waves``: one tile is, in a window.
KINDS = ("fast", "waves")
#: Longest link latency that a simulation build can be told at run time, in cycles.
MAX_LATENCY = 64

#: Lanes of a whole system up to which a ``waves`` build shows everything.
_SMALL = 8
#: Units whose inside is never shown: pipelines of one number, tested on their own.
_ARITHMETIC = re.compile(r"(alu|fp|int\d*)_")
#: Further ones in a larger system: most of a tile, and alike in every lane.
_LANES = re.compile(r"(vxm_superlane|mxm_columns|mxm_array)$")
#: Units that a tile of several superlanes has many of: compiled once each.
_SUPERLANES = ("vxm_superlane", "mxm_array")
#: Module of the visible tile.
_VISIBLE = "visible_tile"


def build_rtl(system, *, packets=None, kind="fast", tile=0, trace=True, name=None, args=(),
              root=None, report=None):
    """A simulator of a system.

    Parameters
    ----------
    system : hdl.arch.config.SystemConfig
    packets : hdl.arch.packets.PacketNetwork, optional
        The conventional network of that system, instead of its links.
    kind : str
        ``fast``: with several tiles, the tile is compiled once.  ``waves``: runs can write a VCD of
        a window of cycles (`sim.rtl.run.run_rtl`), in which tile ``tile`` is seen.  The lanes of
        its VXM and MXM are not, and neither are other tiles, unless the system is very small.
    tile : int
        The tile that a ``waves`` build shows.
    trace : bool
        Whether the tiles have trace ports: without, runs give no events.
    name : str, optional
        Prefix of the build directory.
    args : sequence of str
        Further options of Verilator.
    root, report
        As of `sim.build.build_model`.

    Returns
    -------
    sim.build.Model
        Good for every program of at most ``system.tiles`` tiles, and every link latency up to the
        larger of `MAX_LATENCY` and the longest of the system, or of the network.

    Raises
    ------
    sim.build.SimError
        If there is no Verilator, or it refuses the design.
    """
    if kind not in KINDS:
        raise ValueError(f"Kind of build must be one of {', '.join(KINDS)}, not {kind!r}")
    if not 0 <= tile < system.tiles:
        raise ValueError(f"Visible tile must be in 0..{system.tiles - 1}, not {tile!r}")
    if kind == "waves" and system.tile.lanes > system.tile.superlane:
        raise ValueError("Build of kind waves must be of tiles of one superlane, not of "
                         f"{system.tile.lanes} lanes")
    if kind == "waves" and not trace:
        raise ValueError("Build of kind waves must have trace ports")
    if packets is not None and packets.system != system:
        raise ValueError("Network must be one of the system that is built")
    links = system.links if packets is None else packets.links
    longest = max([MAX_LATENCY, *(link.latency for link in links)])
    units = emitted(system, packets=packets, trace=trace, max_latency=longest)
    blocks, options = ["tile"] if system.tiles > 1 else [], {"args": list(args)}
    if system.tile.lanes > system.tile.superlane:
        blocks += _SUPERLANES
    if kind == "waves":
        small = system.tiles * system.tile.lanes <= _SMALL
        units = {unit: _untraced(text) if _ARITHMETIC.match(unit) or not small
                 and _LANES.match(unit) else readable(unit, text) for unit, text in units.items()}
        blocks = [] if small or system.tiles == 1 else _show(units, tile)
        options = {"dump": "dumping", "args": ["--trace-max-width", "0", "--no-trace-top", *args]}
    sources = {f"{unit}.v": text for unit, text in units.items()}
    sources[f"{TOP}.sv"] = top_verilog(system, longest, trace=trace,
                                       packets=packets,
                                       waves=tile if kind == "waves" else None)
    return build_model(name or f"{kind}-{system.tiles}x{system.tile.lanes}", sources, top=TOP,
                       hier_blocks=blocks, root=root, report=report, **options)


def _untraced(text):
    return f"/* verilator tracing_off */\n{text}/* verilator tracing_on */\n"


def readable(unit, text):
    """The Verilog of a unit in which only signals that somebody named are traced, no single lanes
    of them, and all under names that every viewer reads."""
    taken = set(re.findall(r"[\w$]+", text))

    def rename(match):
        name = match[1]
        if name.startswith("$") or "][" in name:
            return f"\\_{name} "        # Verilator does not trace what has `_` in front
        if not re.search(r"[.\[]", name):
            return match[0]
        plain = plain_name(name)
        if plain in taken:
            raise RuntimeError(f"{unit} has a signal {plain} beside {name}")
        return f"{plain} "

    return re.sub(r"\\(\S+) ", rename, text)


def plain_name(name):
    """What a ``waves`` build calls a field or an element: ``a[2].b`` is ``a_2__b``."""
    return name.replace("[", "_").replace("]", "").replace(".", "__")


def _show(units, tile):
    """Make one of the tiles of ``units`` a module of its own; returns the hierarchical blocks."""
    found = [re.subn(r"^module tile\b", f"module {_VISIBLE}", units["tile"], flags=re.M),
             re.subn(rf"^  tile tile{tile} \(", f"  {_VISIBLE} tile{tile} (", units[SYSTEM],
                     flags=re.M)]
    if [count for _, count in found] != [1, 1]:
        raise RuntimeError(f"The Verilog of the system has no plain instance of tile {tile}")
    units[_VISIBLE], units[SYSTEM] = (text for text, _ in found)
    return ["tile"]
