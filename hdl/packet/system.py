"""A system of tiles behind the conventional network, for simulation: the top level of a rack."""

from amaranth.hdl import Cat
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hdl.arch.packets import Knobs, NetworkFault
from hdl.c2c import message_members
from hdl.emit import emit, once
from hdl.system import TOP, System

from .node import PacketNode, knob_members

__all__ = ["PacketSystem", "packet_system_verilog"]


class PacketSystem(System):
    """Tiles of a system, their nodes and the physical links between those.

    Parameters
    ----------
    network : PacketNetwork
    trace, max_latency
        As of `hdl.system.System`.

    Members
    -------
    tile<i>_<member>
        As of `hdl.system.System`.
    latency<j> : In
        Latency of physical link ``j`` of ``network.links`` and of its credits, in cycles, 1 to
        ``max_latency``; stable from reset on.
    chunk, credits, handshake, arbiter : In
        See `hdl.arch.packets.PacketNetwork.knobs`; stable from reset on.
    network_faults : Out
        ``len(NetworkFault)`` sticky bits for each tile, tile 0 lowest.
    """

    def __init__(self, network, *, trace=True, max_latency=64):
        self._network = network
        self._prepare(network.system, network.links, trace, max_latency)
        faults = len(NetworkFault) * network.system.tiles
        wiring.Component.__init__(self, {**self._members, **knob_members(network),
                                         "network_faults": Out(faults)})

    def _connect(self, m, platform, tiles):
        network, nodes = self._network, []
        for i, tile in enumerate(tiles):
            node = once(platform, f"packet_node{i}", PacketNode, network, i)
            m.submodules[f"node{i}"] = node
            nodes.append(node)
            m.d.comb += [getattr(node, name).eq(getattr(self, name)) for name in Knobs._fields]
            m.d.comb += tile.notify.eq(node.notify)
            for name in message_members(network.system.tile):
                if name.startswith("post"):
                    wiring.connect(m, getattr(tile, name), getattr(node, name))
                else:
                    m.d.comb += getattr(node, name).eq(getattr(tile, name))
            for k in range(len(network.system.tile.ports)):
                wiring.connect(m, getattr(tile, f"tx{k}"), getattr(node, f"tx{k}"))
                wiring.connect(m, getattr(node, f"rx{k}"), getattr(tile, f"rx{k}"))
        for j in range(len(network.links)):
            self._physical_link(m, platform, j, nodes)
        m.d.comb += self.network_faults.eq(Cat(node.faults for node in nodes))

    def _physical_link(self, m, platform, j, nodes):
        """Delay lines of a physical link: flits one way, credits the other."""
        network = self._network
        link = network.links[j]
        source, target = nodes[link.source], nodes[link.target]
        o, p = network.outputs(link.source).index(j), network.inputs(link.target).index(j)
        line = self._line(platform, network.width, self._max_latency)
        back = self._line(platform, 1, self._max_latency)
        m.submodules[f"link{j}"], m.submodules[f"credit{j}"] = line, back
        wiring.connect(m, getattr(source, f"out{o}"), line.source)
        wiring.connect(m, line.target, getattr(target, f"in{p}"))
        m.d.comb += [
            line.latency.eq(getattr(self, f"latency{j}")),
            back.latency.eq(getattr(self, f"latency{j}")),
            back.source.valid.eq(getattr(target, f"credit_out{p}")),
            getattr(source, f"credit_in{o}").eq(back.target.valid),
        ]


def packet_system_verilog(network, *, trace=True, max_latency=64, simulation=True):
    """Verilog of a `PacketSystem`, its top module named `hdl.system.TOP`: name to text."""
    return emit(PacketSystem(network, trace=trace, max_latency=max_latency), TOP,
                simulation=simulation)
