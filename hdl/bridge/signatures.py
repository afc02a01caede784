"""Streams inside a bridge: packets of bytes, with handshake.

A bridge is not part of the plan: what comes over a line comes when it comes, so here, and only
here, data waits for its receiver (``valid`` and ``ready``, as of `amaranth.lib.stream`).
"""

from amaranth.hdl import unsigned
from amaranth.lib import data, stream

__all__ = ["PACKET", "packet_signature"]

#: One byte of a packet, and whether it is the last.
PACKET = data.StructLayout({"data": unsigned(8), "last": unsigned(1)})


def packet_signature():
    """`amaranth.lib.stream.Signature` of bytes of packets."""
    return stream.Signature(PACKET)
