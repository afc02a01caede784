"""From the taps and ports of a slice's unit, all lanes wide, to stream stages of a superlane each.

Every superlane gets the same control in the same cycle and keeps valid bits of its own, so all of
them agree, and what they say can be taken from any.
"""

__all__ = ["connect_port", "connect_tap"]


def connect_tap(m, tap, parts):
    """Connect `ReadTap` ``tap`` of a unit to those of the stages ``parts``, by superlane."""
    _tell(m, tap, parts, ("en", "stream", "west", "last"))
    m.d.comb += tap.valid.eq(parts[0].valid)
    for s, part in enumerate(parts):
        m.d.comb += [_lanes(tap, vector, s, part).eq(part.data[vector])
                     for vector in range(tap.signature.width)]


def connect_port(m, port, parts):
    """Connect `WritePort` ``port`` of a unit to those of the stages ``parts``, by superlane."""
    _tell(m, port, parts, ("east_en", "east", "west_en", "west"))
    for s, part in enumerate(parts):
        m.d.comb += [part.data[vector].eq(_lanes(port, vector, s, part))
                     for vector in range(port.signature.width)]


def _tell(m, unit, parts, names):
    """Control, the same for all superlanes."""
    if unit.signature.width > 1:
        names = (*names, "count_log2")
    m.d.comb += [getattr(part, name).eq(getattr(unit, name)) for part in parts for name in names]


def _lanes(unit, vector, superlane, part):
    """What a superlane has of a vector."""
    return unit.data[vector].word_select(superlane, len(part.data[vector]))
