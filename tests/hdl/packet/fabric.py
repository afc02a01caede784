"""The network alone: nodes and links, with Python in place of the tiles, and a watch on the links.

What is known of a packet's header is written down here again, from the documentation.
"""

from typing import NamedTuple

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hdl.c2c import message_members
from hdl.packet import PacketSystem
from hdl.signatures import FlitSignature
from tests.support.pysim import run

__all__ = ["Fabric", "Message", "Seen", "play"]

#: How much earlier than the arrival of its last vector a message may be notified, in cycles.
NOTIFY_EARLY = 3


class Message(NamedTuple):
    """A message on port ``port`` of ``tile``, announced in ``posted``: ``vectors``, and for each
    the cycle in which its first flit leaves the tile."""
    tile: int
    port: int
    posted: int
    sent: tuple
    vectors: tuple


class Seen(NamedTuple):
    """By (tile, port): vectors received as (cycle, vector) and cycles of notifications; by link:
    (cycle, flit) at its source; faults of all nodes."""
    received: dict
    notified: dict
    wires: dict
    faults: int


class Fabric(PacketSystem):
    """A network whose tiles are interfaces without anything behind."""

    def __init__(self, network):
        super().__init__(network, trace=False)
        cfg = network.system.tile
        flit = FlitSignature(network.width)
        members = {**message_members(cfg), "notify": In(len(cfg.ports))}
        for k in range(len(cfg.ports)):
            members |= {f"tx{k}": wiring.Out(flit), f"rx{k}": In(flit)}
        self.tiles = [wiring.PureInterface(wiring.Signature(members))
                      for _ in range(network.system.tiles)]
        self.nodes = []

    def elaborate(self, platform):
        m = Module()
        self._connect(m, platform, self.tiles)
        return m

    def _physical_link(self, m, platform, j, nodes):
        self.nodes = nodes
        super()._physical_link(m, platform, j, nodes)


class _Link:
    """What is on its way on a link or in the buffer behind it, from the wires alone."""

    def __init__(self, network, j, nodes, limit):
        link = network.links[j]
        self.network, self.limit = network, limit
        self.out = getattr(nodes[link.source], f"out{network.outputs(link.source).index(j)}")
        self.credit = getattr(nodes[link.source],
                              f"credit_in{network.outputs(link.source).index(j)}")
        self.owed, self.rest = 0, 0

    def watch(self, ctx, cycle, wire):
        """Check the credits of this cycle; the flit, if there is one, goes into ``wire``."""
        network = self.network
        if ctx.get(self.out.valid):
            flit = ctx.get(self.out.data)
            wire.append((cycle, flit))
            header = self.rest == 0
            if header:
                kind, vectors = flit & 3, flit >> network.header_bits - network.fifo.bit_length()
                self.rest = (vectors & 2 * network.fifo - 1) * network.flits if kind == 0 else 0
            else:
                self.rest -= 1
            if header or not network.passes:
                self.owed += 1
        else:
            assert self.rest == 0, f"gap in a packet in cycle {cycle}"
        assert self.owed <= self.limit, f"{self.owed} credits used in cycle {cycle}"
        self.owed -= ctx.get(self.credit)
        assert self.owed >= 0, f"credit for nothing in cycle {cycle}"


class _End:
    """A port of a tile."""

    def __init__(self, tile, k, network, received, notified):
        self.notify, self.k, self.network = tile.notify, k, network
        self.tx, self.rx, self.post, self.taken = (
            getattr(tile, f"{name}{k}") for name in ("tx", "rx", "post", "taken"))
        self.received, self.notified = received, notified
        self.there = 0          # vectors in the FIFO
        self.flits = []         # of the vector that arrives
        self.driven = {}

    def drive(self, ctx, flit, vectors, taken):
        """Inputs of a cycle: a flit, vectors of a POST, None for neither; vectors taken."""
        self.there -= taken
        for signal, value in ((self.tx.valid, flit is not None), (self.tx.data, flit or 0),
                              (self.post.valid, vectors is not None),
                              (self.post.vectors, vectors or 0), (self.taken, taken)):
            if self.driven.get(id(signal), 0) != value:     # setting is slow
                ctx.set(signal, value)
                self.driven[id(signal)] = value

    def watch(self, ctx, cycle):
        """Note what arrives, and check that there is room for it."""
        network, bits = self.network, 8 * self.network.width
        if ctx.get(self.rx.valid):
            self.flits.append(ctx.get(self.rx.data))
        if len(self.flits) == network.flits:
            self.received.append((cycle, sum(flit << f * bits
                                             for f, flit in enumerate(self.flits))))
            self.flits.clear()
            self.there += 1
            assert self.there <= network.fifo, f"no room in the FIFO of port {self.k}"
        if ctx.get(self.notify) >> self.k & 1:
            self.notified.append(cycle)


def play(network, messages, knobs, latencies, *, limit=4000, take=None, name=None):
    """`Seen` of the messages, each tile sending those of a port in order.

    ``take(tile, port, cycle, there)`` says how many vectors (0, 1 or 4) the tile takes of those
    ``there``; all unless given.  Fails where credits, the packets on a link or a FIFO are not
    kept to.  Ends when everything has arrived, and a while behind.
    """
    fabric, ports = Fabric(network), range(network.system.tiles - 1)
    tiles = range(network.system.tiles)
    seen = Seen({(t, k): [] for t in tiles for k in ports},
                {(t, k): [] for t in tiles for k in ports}, {j: [] for j in
                                                             range(len(network.links))}, 0)
    flit_bits = 8 * network.width
    posts, flits = {}, {}
    for message in messages:
        posts[message.tile, message.port, message.posted] = len(message.vectors)
        for at, vector in zip(message.sent, message.vectors, strict=True):
            for f in range(network.flits):
                assert (message.tile, message.port, at + f) not in flits
                flits[message.tile, message.port, at + f] = \
                    vector >> f * flit_bits & (1 << flit_bits) - 1
    total = sum(len(message.vectors) for message in messages)
    take = take or (lambda tile, port, cycle, there: 4 if there >= 4 else min(there, 1))

    async def bench(ctx):
        for field, value in zip(knobs._fields, knobs, strict=True):
            ctx.set(getattr(fabric, field), value)
        for j, latency in enumerate(latencies):
            ctx.set(getattr(fabric, f"latency{j}"), latency)
        links = [_Link(network, j, fabric.nodes, knobs.credits)
                 for j in range(len(network.links))]
        ends = [_End(tile, k, network, seen.received[t, k], seen.notified[t, k])
                for t, tile in enumerate(fabric.tiles) for k in ports]
        behind = 0
        for cycle in range(limit):
            for end, (t, k) in zip(ends, seen.received, strict=True):
                end.drive(ctx, flits.get((t, k, cycle)), posts.get((t, k, cycle)),
                          take(t, k, cycle, end.there))
            for link, wire in zip(links, seen.wires.values(), strict=True):
                link.watch(ctx, cycle, wire)
            for end in ends:
                end.watch(ctx, cycle)
            behind += sum(map(len, seen.received.values())) == total
            if behind > 40:
                break
            await ctx.tick()
        assert not ctx.get(fabric.network_faults)

    run(fabric, bench, name=name)
    return seen


def check(network, messages, chunk, seen):
    """Every vector arrived once, in order on its connection, and every message was notified as
    early as it could be."""
    for (tile, port), received in seen.received.items():
        sent = [message for message in messages if message.port == port
                and message.tile == (tile - port - 1) % network.system.tiles]
        sent.sort(key=lambda message: message.sent)
        assert [vector for _, vector in received] == \
            [vector for message in sent for vector in message.vectors]
        count, expected = 0, []
        for message in sent:
            count += len(message.vectors)
            arrived = received[count - 1][0]
            last = (len(message.vectors) - 1) % chunk + 1
            expected.append(max(arrived - NOTIFY_EARLY, arrived - last * network.flits + 1))
        assert seen.notified[tile, port] == expected
