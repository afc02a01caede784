"""Interfaces between the parts of a node.

    Injector, Ejector, PacketInput ---- SourceSignature ----> PacketOutput
    PacketInput ----------------------- DeliverySignature --> Ejector, Injector
"""

from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hdl.signatures import Parametric

__all__ = ["DeliverySignature", "SourceSignature"]


class SourceSignature(Parametric):
    """Packets to send, from what has them; a flit a cycle.

    Members
    -------
    ask : Out(1)
        ``flit`` is the header of a packet that can go.
    length : Out
        While ``ask``: flits of the packet.
    flit : Out(8 * network.width)
        The header, or the next flit of the packet that is going.
    take : In(1)
        ``flit`` goes in this cycle.  Once the header has, each of the next ``length - 1`` cycles
        takes one more: the source has it.
    """

    def __init__(self, network):
        super().__init__({"ask": Out(1), "length": Out(bits_for(network.largest(network.fifo))),
                          "flit": Out(8 * network.width), "take": In(1)}, network)


class DeliverySignature(Parametric):
    """Packets for this tile from one physical link; nothing holds them up.

    ``valid``: ``flit`` arrives in this cycle; ``head``: it is a header.
    """

    def __init__(self, network):
        super().__init__({"valid": Out(1), "head": Out(1), "flit": Out(8 * network.width)},
                         network)
