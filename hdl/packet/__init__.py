"""The conventional network: injectors, ejectors and routers around the tiles of a system."""

from .node import PacketNode
from .system import PacketSystem, packet_system_verilog

__all__ = ["PacketNode", "PacketSystem", "packet_system_verilog"]
