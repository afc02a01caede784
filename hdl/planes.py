"""Byte planes and lanes: four aligned streams carry one 32-bit value on every lane.

Plane ``p`` is the vector of bytes ``8 * p .. 8 * p + 7`` of all values, as a stream carries it.
"""

from amaranth.hdl import Cat, Value

__all__ = ["PLANES", "VALUE_BITS", "to_lanes", "to_planes"]

PLANES = 4
VALUE_BITS = 8 * PLANES


def to_lanes(planes, lanes):
    """The values of ``lanes`` lanes, lane 0 lowest, from four planes of ``8 * lanes`` bits, plane 0
    lowest."""
    flat = Value.cast(planes)
    return Cat(flat.word_select(plane * lanes + lane, 8)
               for lane in range(lanes) for plane in range(PLANES))


def to_planes(values, lanes):
    """The four planes, plane 0 lowest, from the values of ``lanes`` lanes: undoes `to_lanes`."""
    flat = Value.cast(values)
    return Cat(flat.word_select(lane * PLANES + plane, 8)
               for plane in range(PLANES) for lane in range(lanes))
