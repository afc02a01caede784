"""Node: everything of the conventional network at one tile."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hdl.arch.packets import ARBITER_BITS, NetworkFault, PacketKind, header_layout
from hdl.c2c import message_members
from hdl.emit import once
from hdl.signatures import FlitSignature

from .eject import Ejector
from .inject import Injector
from .input import PacketInput
from .output import PacketOutput

__all__ = ["PacketNode", "knob_members"]


def knob_members(network):
    """The network's knobs: `hdl.arch.packets.Knobs`."""
    return {"chunk": In(bits_for(network.fifo)), "credits": In(bits_for(network.depth)),
            "handshake": In(1), "arbiter": In(ARBITER_BITS)}


class PacketNode(wiring.Component):
    """Injectors and ejectors of a tile's connections and the router between them and the links.

    Parameters
    ----------
    network : PacketNetwork
    tile : int

    Members
    -------
    tx<k>, rx<k>, post<k>, taken<k>, notify : In, Out, In, In, Out
        To the tile's members of these names.
    out<o>, in<p> : Out, In(FlitSignature)
        Physical links that leave and end here, as ``network.outputs`` and ``inputs`` order them.
    credit_in<o>, credit_out<p> : In, Out(1)
        Their credits, from and to the far end.
    chunk, credits, handshake, arbiter : In
        See `hdl.arch.packets.PacketNetwork.knobs`; stable from reset on.
    faults : Out(len(NetworkFault))
        Sticky.
    """

    def __init__(self, network, tile):
        self._network = network
        self._tile = tile
        self._ports = range(len(network.system.tile.ports))
        flit = FlitSignature(network.width)
        members = {"notify": Out(len(self._ports)), "faults": Out(len(NetworkFault)),
                   **knob_members(network)}
        for name, member in message_members(network.system.tile).items():
            members[name] = member.flip()
        for k in self._ports:
            members |= {f"tx{k}": In(flit), f"rx{k}": Out(flit)}
        for o in range(len(network.outputs(tile))):
            members |= {f"out{o}": Out(flit), f"credit_in{o}": In(1)}
        for p in range(len(network.inputs(tile))):
            members |= {f"in{p}": In(flit), f"credit_out{p}": Out(1)}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        network, tile = self._network, self._tile
        faults = Signal(len(NetworkFault))
        m.d.sync += self.faults.eq(self.faults | faults)
        inputs = [self._input(m, platform, p) for p in range(len(network.inputs(tile)))]
        ejectors = [self._ejector(m, platform, k, inputs) for k in self._connections]
        injectors = [self._injector(m, platform, k, inputs) for k in self._connections]
        m.d.comb += faults.eq(Cat(*(
            Cat(injector.faults[fault] for injector in injectors).any()
            for fault in range(NetworkFault.BUFFER.value)),
            Cat(unit.fault for unit in inputs).any()))
        for o, link in enumerate(network.outputs(tile)):
            self._output(m, platform, o, link, inputs, injectors, ejectors)
        return m

    @property
    def _connections(self):
        """Ports that lead to another tile; a tile may have more."""
        return range(self._network.system.tiles - 1)

    def _input(self, m, platform, p):
        unit = once(platform, "packet_input", PacketInput, self._network)
        m.submodules[f"input_{p}"] = unit
        wiring.connect(m, wiring.flipped(getattr(self, f"in{p}")), unit.rx)
        m.d.comb += [unit.here.eq(self._tile), getattr(self, f"credit_out{p}").eq(unit.credit)]
        return unit

    def _arriving(self, source, inputs):
        """The input at which packets of tile ``source`` arrive."""
        link = self._network.ways[source, self._tile][-1]
        return inputs[self._network.inputs(self._tile).index(link)]

    def _ejector(self, m, platform, k, inputs):
        unit = once(platform, "packet_ejector", Ejector, self._network)
        m.submodules[f"ejector_{k}"] = unit
        origin = self._network.origin(self._tile, k)
        local = self._arriving(origin, inputs).local
        m.d.comb += [
            unit.link.eq(k), unit.target.eq(origin), unit.handshake.eq(self.handshake),
            unit.local.valid.eq(local.valid), unit.local.head.eq(local.head),
            unit.local.flit.eq(local.flit), unit.taken.eq(getattr(self, f"taken{k}")),
            self.notify[k].eq(unit.notify),
        ]
        wiring.connect(m, unit.rx, wiring.flipped(getattr(self, f"rx{k}")))
        return unit

    def _injector(self, m, platform, k, inputs):
        unit = once(platform, "packet_injector", Injector, self._network)
        m.submodules[f"injector_{k}"] = unit
        peer = self._network.peer(self._tile, k)
        local = self._arriving(peer, inputs).local
        header = data.View(header_layout(self._network), local.flit[:self._network.header_bits])
        m.d.comb += [
            unit.link.eq(k), unit.target.eq(peer), unit.chunk.eq(self.chunk),
            unit.handshake.eq(self.handshake),
            unit.acked.eq(local.valid & local.head & (header.kind == PacketKind.ACK)
                          & (header.link == k)),
        ]
        wiring.connect(m, wiring.flipped(getattr(self, f"tx{k}")), unit.tx)
        wiring.connect(m, wiring.flipped(getattr(self, f"post{k}")), unit.post)
        return unit

    def _output(self, m, platform, o, link, inputs, injectors, ejectors):
        """Physical link ``link`` with every source that it lies on the way of."""
        network, tile = self._network, self._tile
        sources = []        # (source, whether it asks for this link, whether it passes)
        for p, unit in enumerate(inputs):
            targets = network.passing.get((network.inputs(tile)[p], link))
            if targets:
                asks = Cat(unit.target == target for target in sorted(targets)).any()
                sources.append(SimpleNamespace(port=unit.through, asks=asks, through=True))
        for k in self._connections:
            for unit, far in ((injectors[k], network.peer(tile, k)),
                              (ejectors[k], network.origin(tile, k))):
                if network.ways[tile, far][0] == link:
                    sources.append(SimpleNamespace(port=unit.source, asks=1, through=False))
        through = tuple(source.through for source in sources)
        name = f"packet_output_{len(through)}_{sum(through)}"
        output = once(platform, name, PacketOutput, network, through)
        m.submodules[f"output_{o}"] = output
        m.d.comb += [output.credits.eq(self.credits),
                     output.credit.eq(getattr(self, f"credit_in{o}")),
                     output.start.eq((self.arbiter + o) % len(through))]
        wiring.connect(m, output.tx, wiring.flipped(getattr(self, f"out{o}")))
        for i, source in enumerate(sources):
            to = getattr(output, f"source{i}")
            m.d.comb += [to.ask.eq(source.port.ask & source.asks), to.flit.eq(source.port.flit),
                         to.length.eq(source.port.length), source.port.take.eq(to.take)]
