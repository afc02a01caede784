"""The conventional network around the tiles: its physical links, ways, packets and knobs.

A tile's port ``k`` is a *connection* to tile ``(i + k + 1) % tiles``, over however many physical
links.  A packet is a header flit (`header_layout`) and, if it is DATA, whole vectors of flits.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from amaranth.hdl import Shape, unsigned
from amaranth.lib import data, enum
from amaranth.utils import bits_for

from .config import SystemConfig, all_to_all
from .isa import POST_BITS

__all__ = ["ARBITER_BITS", "Knobs", "NetworkFault", "POSTS", "PacketKind", "PacketNetwork",
           "PhysicalLink", "around", "direct", "header_layout"]

POSTS = 8           #: messages a connection holds that are announced and not yet sent
ARBITER_BITS = 8    #: of the number that spreads the start states of the arbiters


class PacketKind(enum.Enum, shape=unsigned(2)):
    """What a packet is."""
    DATA = 0        #: `vectors` vectors of a message follow; `last`: they are its last ones
    REQUEST = 1     #: may a message of `vectors` vectors come?
    ACK = 2         #: it may


class NetworkFault(enum.IntEnum):
    """Bit number of each class of fault of a tile's node."""
    OUTBOX = 0      #: a flit from the tile met a full outbox
    POSTS = 1       #: more than `POSTS` messages were announced to a connection
    LENGTH = 2      #: a message is longer than the FIFO at the far end
    BUFFER = 3      #: a flit met a full input buffer, or was missed in a packet: never happens


class PhysicalLink(NamedTuple):
    """One direction of a physical link; ``latency`` in cycles, also that of its credits back."""
    source: int
    target: int
    latency: int


class Knobs(NamedTuple):
    """Values of the network's inputs, stable from reset on; see `PacketNetwork.knobs`."""
    chunk: int
    credits: int
    handshake: int
    arbiter: int


def _check(condition, message):
    if not condition:
        raise ValueError(message)


@dataclass(frozen=True, kw_only=True)
class PacketNetwork:
    """A conventional network of routers, one at each tile of a system.

    Parameters
    ----------
    system : SystemConfig
        As `all_to_all` gives it, of tiles with ``sync`` and equal ports.  The latencies of its
        links have no meaning.
    links : tuple of PhysicalLink
        Between all pairs of tiles, or between neighbours of a ring, clockwise (to the next
        number) and back.  They are as wide as the ports.
    depth : int
        Flits that an input buffer of a router holds; the most that a run can use.
    outbox : int
        Flits that a connection holds which the tile has sent and the network not yet taken.

    Raises
    ------
    ValueError
        If something does not fit.
    """

    system: SystemConfig
    links: tuple[PhysicalLink, ...]
    depth: int = 32
    outbox: int = 64

    def __post_init__(self):
        tile, tiles = self.system.tile, self.system.tiles
        _check(tiles >= 2, f"Network must join at least 2 tiles, not {tiles!r}")
        _check(tile.sync, "Network needs tiles with sync: set TileConfig.sync")
        _check(set(tile.ports) == {tile.ports[0]},
               "Network needs tiles whose ports are of one width and FIFO depth")
        logical = {(link.source, link.source_port, link.target) for link in self.system.links}
        _check(logical == {(link.source, link.source_port, link.target)
                           for link in all_to_all(tile, tiles).links},
               "Network needs a system whose tiles are all joined: use all_to_all")
        ends = [(link.source, link.target) for link in self.links]
        pairs = {(a, b) for a in range(tiles) for b in range(tiles) if a != b}
        near = {(a, b) for a, b in pairs if (a - b) % tiles in (1, tiles - 1)}
        _check(len(ends) == len(set(ends)) and set(ends) in (pairs, near),
               "Physical links must join all pairs of tiles once, or all neighbours of a ring")
        _check(all(link.latency >= 1 for link in self.links),
               "Latency of a physical link must be at least 1 cycle")
        _check(self.header_bits <= 8 * self.width,
               f"Packet header of {self.header_bits} bits does not fit into a flit of "
               f"{self.width} bytes: widen TileConfig.ports")
        flits = self.largest(1)
        _check(self.depth >= flits * self.slots_to_enter,
               f"Input buffer must hold at least {flits * self.slots_to_enter} flits, not "
               f"{self.depth!r}")
        _check(self.outbox >= self.flits,
               f"Outbox must hold at least the {self.flits} flits of a vector, not "
               f"{self.outbox!r}")

    @property
    def width(self):
        """Bytes of a flit."""
        return self.system.tile.ports[0].bytes

    @property
    def flits(self):
        """Flits of a vector."""
        return self.system.tile.ports[0].flits(self.system.tile.lanes)

    @property
    def fifo(self):
        """Vectors that the FIFO behind a connection holds."""
        return self.system.tile.ports[0].fifo

    @property
    def header_bits(self):
        """Bits of a packet header."""
        return Shape.cast(header_layout(self)).width

    @property
    def passes(self):
        """Whether packets pass through tiles on their way: a ring of at least 4 tiles."""
        return len(self.links) < self.system.tiles * (self.system.tiles - 1)

    @property
    def slots_to_enter(self):
        """Largest packets there must be room for where a packet enters a link from its tile."""
        return 2 if self.passes else 1

    def largest(self, chunk):
        """Flits of a packet of ``chunk`` vectors."""
        return 1 + chunk * self.flits

    def peer(self, tile, port):
        """Tile at the far end of what ``tile`` sends on ``port``."""
        return (tile + port + 1) % self.system.tiles

    def origin(self, tile, port):
        """Tile at the far end of what ``tile`` receives on ``port``."""
        return (tile - port - 1) % self.system.tiles

    def outputs(self, tile):
        """Numbers of the physical links that leave ``tile``, in order."""
        return [j for j, link in enumerate(self.links) if link.source == tile]

    def inputs(self, tile):
        """Numbers of the physical links that end at ``tile``, in order."""
        return [j for j, link in enumerate(self.links) if link.target == tile]

    @cached_property
    def ways(self):
        """By (source, target), numbers of the physical links from a tile to another: the shortest
        way, clockwise where two are equal."""
        number = {(link.source, link.target): j for j, link in enumerate(self.links)}
        tiles, found = self.system.tiles, {}
        for source in range(tiles):
            for target in range(tiles):
                if (source, target) in number:
                    found[source, target] = [number[source, target]]
                elif source != target:
                    step = 1 if 2 * ((target - source) % tiles) <= tiles else -1
                    steps = range(source, source + (target - source) * step % tiles * step, step)
                    found[source, target] = [number[at % tiles, (at + step) % tiles]
                                             for at in steps]
        return found

    @cached_property
    def passing(self):
        """By (physical link, next one), tiles that packets go to which take the one behind the
        other; absent where none do."""
        found = {}
        for (_, target), way in self.ways.items():
            for pair in zip(way, way[1:], strict=False):
                found.setdefault(pair, set()).add(target)
        return found

    def knobs(self, *, chunk, depth=None, handshake=1, arbiter=0):
        """`Knobs` of a run.

        Parameters
        ----------
        chunk : int
            Vectors that a DATA packet carries at most.
        depth : int, optional
            Flits of each input buffer that are used; all of them unless given.  Where packets
            pass through tiles a credit stands for room for a largest packet, else for a flit.
        handshake : int
            1: a message is requested and acknowledged before its data goes; 0: it goes at once.
        arbiter : int
            Start state of the arbiters: output ``o`` of a tile first looks at its source number
            ``arbiter + o``, modulo their number.

        Raises
        ------
        ValueError
            If the build cannot do it, or packets could not move.
        """
        depth = self.depth if depth is None else depth
        largest, most = self.largest(chunk), min(self.fifo, self.outbox // self.flits)
        _check(1 <= chunk <= most, f"Chunk must be 1 to {most} vectors, not {chunk!r}")
        _check(largest * self.slots_to_enter <= depth <= self.depth,
               f"Depth must be {largest * self.slots_to_enter} to {self.depth} flits with chunks "
               f"of {chunk}, not {depth!r}")
        _check(handshake in (0, 1), f"Handshake must be 0 or 1, not {handshake!r}")
        _check(0 <= arbiter < 1 << ARBITER_BITS,
               f"Arbiter state must be 0 to {(1 << ARBITER_BITS) - 1}, not {arbiter!r}")
        return Knobs(chunk, depth // largest if self.passes else depth, handshake, arbiter)


def header_layout(network):
    """`StructLayout` of the header flit; ``link`` is the port of the connection, at both ends."""
    tiles = network.system.tiles
    return data.StructLayout({
        "kind": PacketKind, "last": 1, "link": bits_for(max(tiles - 2, 1)),
        "target": bits_for(tiles - 1), "vectors": min(bits_for(network.fifo), POST_BITS)})


def direct(system, latency=None, **options):
    """A `PacketNetwork` with a physical link for each pair of tiles.

    ``latency`` in cycles; that of the system's links unless given.  ``options``: of the network.
    """
    return PacketNetwork(system=system, links=tuple(
        PhysicalLink(link.source, link.target, link.latency if latency is None else latency)
        for link in system.links), **options)


def around(system, latency=16, **options):
    """A `PacketNetwork` whose tiles are a ring, with links to both neighbours."""
    tiles = system.tiles
    return PacketNetwork(system=system, links=tuple(
        PhysicalLink(i, (i + step) % tiles, latency)
        for i in range(tiles) for step in ((1, -1) if tiles > 2 else (1,))), **options)
