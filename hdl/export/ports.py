"""The ports of an export: name, direction, width, and what each means."""

import re
from typing import NamedTuple

from amaranth.hdl import Shape
from amaranth.lib import data
from amaranth.lib.wiring import In

from hdl.arch.errors import Fault
from hdl.arch.queues import link_names, queues
from hdl.arch.trace import fault_places

from .top import MAX_LATENCY

__all__ = ["PORTS", "Port", "ports"]

#: What a port means, by its name; ``<k>`` is a link (the host is the last), ``<j>`` a link of the
#: system.  Those of tile ``i`` of a system have ``tile<i>_`` in front.
PORTS = {
    "clk": "clock; everything happens at its rising edge",
    "rst": "reset, active high",
    "rst_n": "reset, active low",
    "command": "one command of the host a cycle, 0 for none",
    "read_data": "two cycles after a READ command: that word of every SRAM slice, slice 0 lowest",
    "running": "from the cycle behind an accepted START until every queue has halted",
    "halted": "by queue: it has halted and nothing of it will issue",
    "errors": "sticky faults; CLEAR or reset clears them",
    "cycle": "the cycle counter that START refers to; 0 in reset",
    "tx<k>__valid": "a flit leaves on link <k> in this cycle",
    "tx<k>__data": "that flit, lowest lane first",
    "rx<k>__valid": "a flit arrives on link <k> in this cycle",
    "rx<k>__data": "that flit, lowest lane first",
    "post<k>__valid": "a message is announced to link <k> in this cycle",
    "post<k>__vectors": "vectors of that message",
    "taken<k>": "vectors that leave the FIFO of link <k> in this cycle",
    "notify": "by link: a message has arrived in whole",
    "issues": "by queue: an instruction issues in this cycle, CRC-16 of its word and its indices",
    "writes": "by SRAM slice: a word is written in this cycle",
    "arrivals": "by link: a vector enters the FIFO in this cycle",
    "faults": "by place: what sets bits of `errors` in this cycle",
    "host_tx__valid": "a flit arrives at the host in this cycle",
    "host_tx__data": "that flit, lowest lane first",
    "host_rx__valid": "a flit leaves the host in this cycle",
    "host_rx__data": "that flit, lowest lane first",
    "latency<j>": f"cycles from end to end of link <j>, 1 to {MAX_LATENCY}; stable from reset on",
}
_TILE = re.compile(r"tile(\d+)_(.*)")


class Port(NamedTuple):
    """One port of a top module.

    Attributes
    ----------
    name : str
    direction : str
        ``"input"`` or ``"output"``.
    width : int
        Bits.
    meaning : str
    fields : list of (str, int, int)
        Of a port that is a structure or an array of some: name, lowest bit and width of each
        field, of element 0 for an array.
    elements : list of str
        What the elements (bits, or structures of equal width) stand for, the lowest first.
    """

    name: str
    direction: str
    width: int
    meaning: str
    fields: list
    elements: list

    def described(self):
        """The port as a manifest has it."""
        found = {"name": self.name, "direction": self.direction, "width": self.width,
                 "meaning": self.meaning}
        if self.fields:
            found["fields"] = [{"name": name, "lsb": lsb, "width": width}
                               for name, lsb, width in self.fields]
        if self.elements:
            found["elements"] = self.elements
        return found


def ports(component, cfg):
    """Every `Port` of a component.

    Parameters
    ----------
    component : ExportTop
    cfg : TileConfig
    """
    found = []
    for path, member, _ in component.signature.flatten(component):
        name = "__".join(path)
        shape = member.shape
        direction = "input" if member.flow == In else "output"
        array = isinstance(shape, data.ArrayLayout)
        structure = shape.elem_shape if array else shape
        fields = []
        if isinstance(structure, data.StructLayout):
            fields = [(field, at.offset, Shape.cast(at.shape).width) for field, at in structure]
        found.append(Port(name, direction, Shape.cast(shape).width, _meaning(name), fields,
                          _elements(_TILE.sub(r"\2", name), cfg)))
    return found


def _meaning(name):
    if tile := _TILE.fullmatch(name):
        return f"tile {tile[1]}: {_meaning(tile[2])}"
    for pattern, meaning in PORTS.items():
        if found := re.fullmatch(re.sub("<.>", r"(\\d+)", pattern), name):
            return re.sub("<.>", found[found.lastindex or 0], meaning)
    raise KeyError(f"Port {name} has no row in PORTS")


def _elements(name, cfg):
    """What the elements of a port of a tile stand for."""
    by_queue = [queue.name for queue in queues(cfg)]
    return {"halted": by_queue, "issues": by_queue, "errors": [fault.name for fault in Fault],
            "read_data": list(cfg.slices("mem")), "writes": list(cfg.slices("mem")),
            "arrivals": list(link_names(cfg)), "faults": fault_places(cfg),
            "notify": list(link_names(cfg))[:-1]}.get(name, [])
