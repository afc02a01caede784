"""Faults that a program can have: the order of their kinds, and one line for each."""

from typing import NamedTuple

__all__ = ["NEVER", "Fault", "cell_name", "fault"]

#: Cycle of what never happens, and of a fault that only the end of the program shows.
NEVER = 1 << 62


class Fault(NamedTuple):
    """A broken rule.  Faults compare by cycle, then by kind: the least of several is the first.

    ``cycle`` is the one in which the rule is broken for certain: of a sum that is read too early,
    that in which its next product would be visible; of a result kept over another, that in which it
    appears.
    """
    cycle: int
    rank: int
    line: str


_LINES = {
    "read": "Cycle {cycle}: {queue} reads {cell}, which carries no value",
    "clear": "Cycle {cycle}: {queue} clears {cell} a second time",
    "over": "Cycle {cycle}: {queue} writes over the value of {other} on {cell}",
    "meet": "Cycle {cycle}: two writes meet on {cell}",
    "leave": "Cycle {cycle}: the value of {queue} on stream {stream} of tile {tile} leaves the "
             "last position unread",
    "address": "Cycle {cycle}: tile {tile} {queue} address {address} is outside the slice",
    "port": "Cycle {cycle}: tile {tile} {queue} needs the port in the cycle of the GATHER before "
            "it",
    "collision": "Cycle {cycle}: tile {tile} {mem} reads word {address} in the cycle in which it "
                 "is written",
    "unwritten": "Cycle {cycle}: tile {tile} {mem} reads word {address}, which nobody has written",
    "feature": "Cycle {cycle}: tile {tile} {queue} {op} needs the feature {feature!r}",
    "predicate": "Cycle {cycle}: tile {tile} {queue} {op} has no predicate: alu{unit} gives no "
                 "result",
    "result": "Cycle {cycle}: tile {tile} {queue} {op} reads a result of unit {unit}, which gives "
              "none",
    "entry": "Cycle {cycle}: tile {tile} {queue} {op} reads entry {entry}, which nobody has kept",
    "lost": "Cycle {at}: tile {tile} {queue} {op} keeps entry {entry} less than {t_d} cycles "
            "behind a result that nobody has read",
    "map": "Cycle {cycle}: tile {tile} {queue} PERMUTE uses map {number}, which no MAP has set",
    "outside": "Cycle {cycle}: tile {tile} {mxm} has no {what} {number}",
    "multiply": "Cycle {cycle}: tile {tile} {mxm} multiplies before weights are installed",
    "install": "Cycle {cycle}: tile {tile} {mxm} installs weights of which {missing} rows are not "
               "loaded",
    "activation": "Cycle {cycle}: tile {tile} {mxm} takes activation {number}, which nobody kept",
    "begun": "Cycle {cycle}: tile {tile} {mxm} reads accumulator {number}, whose sum was never "
             "begun",
    "sum": "Cycle {at}: tile {tile} {mxm} reads accumulator {number} before its sum is complete",
    "busy": "Cycle {cycle}: tile {tile} link {link} is still sending",
    "nowhere": "Cycle {cycle}: tile {tile} sends on link {link}, which leads nowhere",
    "empty": "Cycle {cycle}: tile {tile} link {link} has no vector to take",
    "full": "Cycle {cycle}: a vector arrives at the full FIFO of tile {tile} link {link}",
    "left": "Of {arrived} vectors that arrive at tile {tile} link {link}, {taken} are taken",
}
_RANKS = {kind: rank for rank, kind in enumerate(_LINES)}


def fault(kind, cycle, **what):
    """`Fault` of a ``kind`` in ``cycle``; ``what`` fills in its line."""
    return Fault(int(cycle), _RANKS[kind], _LINES[kind].format(cycle=cycle, **what))


def cell_name(tile, west, stream, position):
    """How a fault names a stream at a position."""
    return f"tile {tile} position {position} stream {'W' if west else 'E'}{stream}"
