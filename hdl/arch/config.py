"""Configuration of a tile and of a system of tiles: frozen, validated, hashed.

One instance describes the hardware, the target of the compiler and the machine of the emulator.
All lengths are in the unit their name says: ``lanes`` bytes a vector, ``words`` SRAM words of one
vector, ``cycles`` of the one ideal clock.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

__all__ = ["AluConfig", "PortConfig", "TileConfig", "Link", "SystemConfig", "pair", "ring",
           "all_to_all", "dragonfly", "single", "values_of"]

ALU_FEATURES = ("add", "mul", "special")
SLICE_KINDS = ("mem", "mxm", "sxm", "vxm", "c2c")


def values_of(config):
    """Fields of a `TileConfig` or `SystemConfig` by name, as digests and files hold them."""
    values = asdict(config)
    tile = values.get("tile", values)
    if not tile["sync"]:
        del tile["sync"]        # tiles without are named as they were before there were others
    return values


def _digest(config):
    text = json.dumps(values_of(config), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _check(condition, message):
    if not condition:
        raise ValueError(message)


@dataclass(frozen=True, kw_only=True)
class AluConfig:
    """One ALU of the VXM ring.

    Parameters
    ----------
    features : tuple of str
        Which operation groups it has: ``"add"`` (add, sub, max, min, compare, select, conversions
        and integer operations), ``"mul"``, ``"special"`` (exp2, reciprocal, reciprocal square
        root).
    depth : int
        Cycles from issue to result, the same for all its operations.  Above 6 the operands have a
        register in front of the units, which allows for a higher clock.
    """

    features: tuple[str, ...] = ("add", "mul")
    depth: int = 6

    def __post_init__(self):
        unknown = set(self.features) - set(ALU_FEATURES)
        _check(self.features and not unknown,
               f"ALU features must be among {', '.join(ALU_FEATURES)}, not {self.features!r}")
        _check(self.depth >= 2, f"ALU depth must be at least 2 cycles, not {self.depth!r}")


@dataclass(frozen=True, kw_only=True)
class PortConfig:
    """One link port of a tile: both directions have the same width.

    Parameters
    ----------
    bytes : int
        Bytes a cycle on the wire in each direction; a vector takes ``ceil(lanes / bytes)`` cycles.
    fifo : int
        Vectors the receive FIFO holds; a power of two, at least 4.
    """

    bytes: int = 8
    fifo: int = 16

    def __post_init__(self):
        _check(self.bytes >= 1, f"Link width must be at least 1 byte a cycle, not {self.bytes!r}")
        _check(self.fifo >= 4 and self.fifo & (self.fifo - 1) == 0,
               f"Link FIFO depth must be a power of two of at least 4 vectors, not {self.fifo!r}")

    def flits(self, lanes):
        """Cycles one vector of ``lanes`` bytes occupies the wire."""
        return -(-lanes // self.bytes)


@dataclass(frozen=True, kw_only=True)
class TileConfig:
    """Geometry of one tile.

    Parameters
    ----------
    lanes : int
        Bytes of a vector; also rows and columns of an MXM.
    streams : int
        Streams in each direction; a multiple of 4.
    floorplan : tuple of str
        Slices west to east: ``mem<i>``, ``mxm<i>``, ``sxm<i>``, one ``vxm``, one ``c2c``.
        Neighbours are one hop, one cycle, apart.  Each kind is numbered from 0 from west to east.
    mem_words : int
        Words of one SRAM slice.
    alus : tuple of AluConfig
        The VXM ring, in ring order.
    reduce_depth : int
        Cycles of each level of the lane-reduction tree; above 6 as in `AluConfig`.
    accumulators, activations : int
        Entries of an MXM's accumulator file and of its activation buffer, at least 2 each.
    accumulator_bits : int
        Width of an accumulator; at least 23 + ceil(log2 K) for exact sums over K terms.
    icu_words : int
        Instruction words of each queue.
    loop_levels : int
        Nested LOOPs a queue can hold; REPEAT is one more level.
    ports : tuple of PortConfig
        Link ports to other tiles, in port order.
    host : PortConfig
        The port to the host.
    sync : bool
        Whether queues have SYNC and POST, for a network whose arrivals nobody plans.
    """

    lanes: int = 16
    streams: int = 16
    floorplan: tuple[str, ...] = ("mxm0", "sxm0", "mem0", "mem1", "mem2", "mem3", "vxm", "c2c",
                                  "mem4", "mem5", "mem6", "mem7", "sxm1", "mxm1")
    mem_words: int = 16384
    alus: tuple[AluConfig, ...] = (AluConfig(), AluConfig(), AluConfig(),
                                   AluConfig(features=("add", "mul", "special")))
    reduce_depth: int = 4
    accumulators: int = 32
    activations: int = 32
    accumulator_bits: int = 40
    icu_words: int = 2048
    loop_levels: int = 4
    ports: tuple[PortConfig, ...] = (PortConfig(), PortConfig(), PortConfig())
    host: PortConfig = field(default_factory=PortConfig)
    sync: bool = False

    def __post_init__(self):
        _check(self.lanes in (4, 8) or self.lanes > 0 and self.lanes % 16 == 0,
               f"Lane count must be 4, 8 or a multiple of 16, not {self.lanes!r}")
        _check(self.streams >= 4 and self.streams % 4 == 0,
               f"Stream count must be a positive multiple of 4, not {self.streams!r}")
        _check(self.mem_words >= 2,
               f"SRAM slice must have at least 2 words, not {self.mem_words!r}")
        _check(self.accumulators >= 2 and self.activations >= 2,
               "Accumulators and activation buffer must have at least 2 entries each, not "
               f"{self.accumulators!r} and {self.activations!r}")
        _check(self.reduce_depth >= 1,
               f"Reduction level must take at least 1 cycle, not {self.reduce_depth!r}")
        _check(24 <= self.accumulator_bits <= 48,
               f"Accumulator width must be 24 to 48 bits, not {self.accumulator_bits!r}")
        _check(self.icu_words >= 8, f"Queue must hold at least 8 words, not {self.icu_words!r}")
        _check(1 <= self.loop_levels <= 6,
               f"Loop levels must be 1 to 6, not {self.loop_levels!r}")
        _check(self.ports or not self.sync, "Tile with sync must have at least one link port")
        self._check_floorplan()

    def _check_floorplan(self):
        for name in self.floorplan:
            _check(name.rstrip("0123456789") in SLICE_KINDS,
                   f"Floorplan slice must be one of {', '.join(SLICE_KINDS)}, not {name!r}")
        for kind in SLICE_KINDS:
            names = [name for name in self.floorplan if name.rstrip("0123456789") == kind]
            if kind in ("vxm", "c2c"):
                wanted = [kind][:len(names)]
            else:
                wanted = [f"{kind}{i}" for i in range(len(names))]
            _check(names == wanted,
                   f"Floorplan must name its {kind} slices {', '.join(wanted) or 'once'} from west "
                   f"to east, not {', '.join(names)}")
        _check("mem0" in self.floorplan, "Floorplan must have at least one mem slice")
        _check("c2c" in self.floorplan,
               "Floorplan must have one c2c slice (the host port sits there)")

    def slices(self, kind):
        """Names of the slices of ``kind``, west to east."""
        return tuple(name for name in self.floorplan if name.rstrip("0123456789") == kind)

    def position(self, name):
        """Position of a slice: 0 is the westernmost."""
        return self.floorplan.index(name)

    def hops(self, source, target):
        """Cycles a stream value takes from slice ``source`` to slice ``target``."""
        return abs(self.position(target) - self.position(source))

    @property
    def superlane(self):
        """Lanes of a superlane: 16, or all where there are fewer."""
        return min(self.lanes, 16)

    def port(self, link):
        """`PortConfig` of link ``link``; the host is link ``len(ports)``."""
        return (*self.ports, self.host)[link]

    @cached_property
    def digest(self):
        """16 hex digits that name this configuration in programs, images and manifests."""
        return _digest(self)

    def __hash__(self):
        return hash(self.digest)        # tables are cached by configuration: looked up very often


@dataclass(frozen=True, kw_only=True)
class Link:
    """One direction of a link: from a port of one tile to a port of another.

    ``latency`` is in cycles, at least 1: what the sender drives in cycle ``k`` the receiver sees in
    cycle ``k + latency``.
    """

    source: int
    source_port: int
    target: int
    target_port: int
    latency: int = 16

    def __post_init__(self):
        _check(self.latency >= 1, f"Link latency must be at least 1 cycle, not {self.latency!r}")


@dataclass(frozen=True, kw_only=True)
class SystemConfig:
    """Tiles of one kind and the links between them.

    Parameters
    ----------
    tile : TileConfig
    tiles : int
    links : tuple of Link
        Every port drives at most one link and receives at most one.
    host_latency : int
        Cycles of the host link, each way.
    """

    tile: TileConfig
    tiles: int = 1
    links: tuple[Link, ...] = ()
    host_latency: int = 1

    def __post_init__(self):
        _check(self.tiles >= 1, f"Tile count must be at least 1, not {self.tiles!r}")
        ports = len(self.tile.ports)
        for link in self.links:
            _check(max(link.source, link.target) < self.tiles and link.source != link.target,
                   f"Link must join two of the {self.tiles} tiles, not {link.source} and "
                   f"{link.target}")
            _check(max(link.source_port, link.target_port) < ports,
                   f"Tile has {ports} link ports, but a link uses port "
                   f"{max(link.source_port, link.target_port)}: add to TileConfig.ports")
            widths = [self.tile.port(p).bytes for p in (link.source_port, link.target_port)]
            _check(widths[0] == widths[1],
                   f"Link joins ports of {widths[0]} and {widths[1]} bytes: both ends must be of "
                   "one width")
        for end in ("source", "target"):
            used = [(getattr(link, end), getattr(link, end + "_port")) for link in self.links]
            _check(len(used) == len(set(used)), f"Two links share one {end} port")

    def restrict(self, tiles):
        """The first ``tiles`` tiles of this system and the links between them."""
        _check(1 <= tiles <= self.tiles,
               f"Program can use 1 to {self.tiles} tiles of this system, not {tiles!r}")
        links = tuple(link for link in self.links if max(link.source, link.target) < tiles)
        return replace(self, tiles=tiles, links=links)

    def outgoing(self, tile, port):
        """The `Link` driven by ``port`` of ``tile``, or None."""
        for link in self.links:
            if (link.source, link.source_port) == (tile, port):
                return link
        return None

    @property
    def digest(self):
        """16 hex digits that name tile, topology and latencies."""
        return _digest(self)


def _circulant(tile, tiles, offsets, latency):
    """Port ``k`` of tile ``i`` drives port ``k`` of tile ``(i + offsets[k]) % tiles``."""
    if isinstance(latency, int):
        latency = (latency,) * len(offsets)
    links = tuple(Link(source=i, source_port=k, target=(i + offset) % tiles, target_port=k,
                       latency=latency[k])
                  for i in range(tiles) for k, offset in enumerate(offsets))
    return SystemConfig(tile=tile, tiles=tiles, links=links)


def single(tile):
    """One tile and its host."""
    return SystemConfig(tile=tile)


def pair(tile, latency=16):
    """Two tiles, port 0 to port 0 in both directions."""
    return _circulant(tile, 2, (1,), latency)


def ring(tile, tiles, latency=16):
    """Port 0 leads to the next tile, port 1 to the one before."""
    _check(tiles >= 3, f"Ring must have at least 3 tiles, not {tiles!r}: use pair for 2")
    return _circulant(tile, tiles, (1, -1), latency)


def all_to_all(tile, tiles, latency=16):
    """Port ``k`` of every tile leads to the tile ``k + 1`` further, modulo the tile count.

    ``latency`` in cycles: one number, or one for each port.
    """
    return _circulant(tile, tiles, tuple(range(1, tiles)), latency)


def dragonfly(tile, groups, size, latency=16, far=16):
    """``groups`` groups of ``size`` consecutive tiles; one link each way between every two groups.

    Within a group port ``k`` leads to the tile ``k + 1`` further, as in `all_to_all`.  The link to
    the group ``o`` further (modulo the groups) leaves from member ``(o - 1) % size``, by its
    ``(o - 1) // size``-th port behind those; the one back ends at the same port.

    Parameters
    ----------
    latency, far : int
        Cycles of links within and between groups.
    """
    _check(groups >= 2 and size >= 1,
           f"Dragonfly must have at least 2 groups of at least 1 tile, not {groups!r} of {size!r}")

    def end(offset):
        return (offset - 1) % size, size - 1 + (offset - 1) // size

    near = tuple(Link(source=size * group + i, source_port=k,
                      target=size * group + (i + k + 1) % size, target_port=k, latency=latency)
                 for group in range(groups) for i in range(size) for k in range(size - 1))
    between = []
    for group in range(groups):
        for offset in range(1, groups):
            (member, port), (other, its) = end(offset), end(groups - offset)
            between.append(Link(source=size * group + member, source_port=port,
                                target=size * ((group + offset) % groups) + other,
                                target_port=its, latency=far))
    return SystemConfig(tile=tile, tiles=groups * size, links=near + tuple(between))
