"""A system of tiles with its links, for simulation: the top level of a rack.

Links are delay lines of a latency that the testbench selects at run time, in whole cycles, so that
one build serves every latency.
"""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

from .emit import emit, once
from .signatures import FlitSignature
from .tile import Tile, host_members, link_members, trace_members

__all__ = ["TOP", "DelayLine", "System", "system_verilog"]

#: Name of the top module.
TOP = "oncycle_system"


class DelayLine(wiring.Component):
    """One direction of a link, as a circular buffer.

    Parameters
    ----------
    width : int
        Bytes of a flit.
    max_latency : int
        Cycles.

    Members
    -------
    latency : In
        1 to ``max_latency`` cycles; stable from reset on.
    source : In(FlitSignature)
    target : Out(FlitSignature)
        ``source`` of ``latency`` cycles before; not valid in the first ``latency`` cycles behind
        reset.
    """

    def __init__(self, width, max_latency):
        if max_latency < 1:
            raise ValueError(f"Largest link latency must be at least 1 cycle, not {max_latency!r}")
        self._width = width
        self._max_latency = max_latency
        super().__init__({"latency": In(bits_for(max_latency)), "source": In(FlitSignature(width)),
                          "target": Out(FlitSignature(width))})

    def elaborate(self, platform):
        m = Module()
        depth = 1 << max(1, ceil_log2(self._max_latency))
        m.submodules.flits = flits = Memory(shape=1 + 8 * self._width, depth=depth, init=[])
        write = flits.write_port()
        # With latency 1 the flit that is written is read in the same cycle.
        read = flits.read_port(transparent_for=[write])
        now = Signal(ceil_log2(depth))
        age = Signal(bits_for(self._max_latency))       # cycles since reset, as far as it matters
        m.d.sync += now.eq(now + 1)
        with m.If(age != self._max_latency):
            m.d.sync += age.eq(age + 1)
        m.d.comb += [
            write.en.eq(1), write.addr.eq(now),
            write.data.eq(Cat(self.source.valid, self.source.data)),
            read.addr.eq(now - (self.latency - 1)),
            self.target.valid.eq(read.data[0] & (age >= self.latency)),
            self.target.data.eq(read.data[1:]),
        ]
        return m


class System(wiring.Component):
    """Tiles and links of a `SystemConfig`, in one clock and reset.

    Parameters
    ----------
    system : SystemConfig
    trace : bool
        Whether the tiles' trace ports exist.
    max_latency : int
        Longest selectable latency of a link, in cycles.

    Members
    -------
    tile<i>_<member>
        Every member of tile ``i`` but its links to other tiles: ``tile0_command``,
        ``tile0_issues``, ... and ``tile0_host_tx`` (from the tile), ``tile0_host_rx`` (to it), both
        at the host's end of the host link, whose latency is ``system.host_latency``.
    latency<j> : In
        Latency of link ``j`` of ``system.links`` in cycles, 1 to ``max_latency``; stable from reset
        on.
    """

    def __init__(self, system, *, trace=True, max_latency=64):
        self._prepare(system, system.links, trace, max_latency)
        super().__init__(self._members)

    def _prepare(self, system, wires, trace, max_latency):
        """Note what to build; ``wires`` are the links of selectable latency."""
        self._system = system
        self._trace = trace
        self._max_latency = max_latency
        longest = max([link.latency for link in wires], default=1)
        if longest > max_latency:
            raise ValueError(f"Largest link latency must be at least the {longest} cycles of the "
                             f"configuration, not {max_latency!r}")
        self._host = len(system.tile.ports)
        self._shared = host_members(system.tile) | (trace_members(system.tile) if trace else {})
        links = link_members(system.tile)
        exposed = {}
        for i in range(system.tiles):
            exposed |= {f"tile{i}_{name}": member for name, member in self._shared.items()}
            exposed |= {f"tile{i}_host_{end}": links[f"{end}{self._host}"] for end in ("tx", "rx")}
        for j in range(len(wires)):
            exposed[f"latency{j}"] = In(bits_for(max_latency))
        self._members = exposed

    def elaborate(self, platform):
        m = Module()
        tiles = []
        for i in range(self._system.tiles):
            tile = once(platform, "tile", Tile, self._system.tile, trace=self._trace)
            m.submodules[f"tile{i}"] = tile
            tiles.append(tile)
            for name, member in self._shared.items():
                inner, outer = getattr(tile, name), getattr(self, f"tile{i}_{name}")
                if member.flow == In:
                    m.d.comb += inner.eq(outer)
                else:
                    m.d.comb += outer.eq(inner)
            for end in ("tx", "rx"):
                self._host_link(m, platform, i, end, getattr(tile, f"{end}{self._host}"))
        self._connect(m, platform, tiles)
        return m

    def _connect(self, m, platform, tiles):
        """Everything between the tiles."""
        for j, link in enumerate(self._system.links):
            source = getattr(tiles[link.source], f"tx{link.source_port}")
            target = getattr(tiles[link.target], f"rx{link.target_port}")
            line = self._line(platform, source.signature.width, self._max_latency)
            m.submodules[f"link{j}"] = line
            m.d.comb += line.latency.eq(getattr(self, f"latency{j}"))
            wiring.connect(m, source, line.source)
            wiring.connect(m, line.target, target)

    def _line(self, platform, width, max_latency):
        return once(platform, f"link_{width}_bytes_{max_latency}_cycles", DelayLine, width,
                    max_latency)

    def _host_link(self, m, platform, i, end, inner):
        latency = self._system.host_latency
        outer = wiring.flipped(getattr(self, f"tile{i}_host_{end}"))
        line = self._line(platform, inner.signature.width, latency)
        m.submodules[f"host_{end}{i}"] = line
        m.d.comb += line.latency.eq(latency)
        source, target = (inner, outer) if end == "tx" else (outer, inner)
        wiring.connect(m, source, line.source)
        wiring.connect(m, line.target, target)


def system_verilog(system, *, trace=True, max_latency=64, simulation=True):
    """Verilog of a `System`, its top module named `TOP`: name to text, see `hdl.emit.emit`."""
    top = System(system, trace=trace, max_latency=max_latency)
    return emit(top, TOP, simulation=simulation)
