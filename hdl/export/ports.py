"""The ports of an export: name, direction, width, and what each means."""

import re
from typing import NamedTuple

from amaranth.hdl import Shape
from amaranth.lib import data
from amaranth.lib.wiring import In
from amaranth.utils import bits_for

from hdl.arch.errors import Fault
from hdl.arch.host import READ_LATENCY, TIME_BITS
from hdl.arch.isa import POST_BITS
from hdl.arch.queues import link_names, queues
from hdl.arch.trace import fault_places

from .top import MAX_LATENCY

__all__ = ["PORTS", "Meaning", "Port", "ports"]

class Meaning(NamedTuple):
    """What all ports of one name have in common; ``bits`` in words where they depend on the
    configuration."""
    direction: str
    bits: str
    text: str


#: By name; ``<k>`` is a link (the host is the last), ``<j>`` a link of the system.  In a system the
#: ports of tile ``i`` have ``tile<i>_`` in front, and its last link is ``host_tx`` and ``host_rx``.
PORTS = {name: Meaning(*row) for name, row in {
    "clk": ("input", "1", "clock; everything happens at its rising edge"),
    "rst": ("input", "1", "reset, active high"),
    "rst_n": ("input", "1", "reset, active low"),
    "command": ("input", "its fields", "one command of the host a cycle, 0 for none"),
    "read_data": ("output", "8 x lanes x slices", f"{READ_LATENCY} cycles after a READ command: "
                  "that word of every SRAM slice, slice 0 lowest"),
    "running": ("output", "1", "from the cycle behind an accepted START until every queue has "
                "halted"),
    "halted": ("output", "queues", "by queue: it has halted and nothing of it will issue"),
    "errors": ("output", str(len(Fault)), "sticky faults, one bit for each class; CLEAR or reset "
               "clears them"),
    "cycle": ("output", str(TIME_BITS), "the cycle counter that START refers to; 0 in reset"),
    "tx<k>__valid": ("output", "1", "a flit leaves on link <k> in this cycle"),
    "tx<k>__data": ("output", "8 x bytes of the link", "that flit, lowest lane first"),
    "rx<k>__valid": ("input", "1", "a flit arrives on link <k> in this cycle"),
    "rx<k>__data": ("input", "8 x bytes of the link", "that flit, lowest lane first"),
    "host_tx__valid": ("output", "1", "a flit arrives at the host in this cycle"),
    "host_tx__data": ("output", "8 x bytes of the link", "that flit, lowest lane first"),
    "host_rx__valid": ("input", "1", "a flit leaves the host in this cycle"),
    "host_rx__data": ("input", "8 x bytes of the link", "that flit, lowest lane first"),
    "latency<j>": ("input", str(bits_for(MAX_LATENCY)), "cycles from end to end of link <j>, 1 to "
                   f"{MAX_LATENCY}; stable from reset on"),
    "post<k>__valid": ("output", "1", "a message is announced to link <k> in this cycle"),
    "post<k>__vectors": ("output", str(POST_BITS), "vectors of that message"),
    "taken<k>": ("output", "3", "vectors that leave the FIFO of link <k> in this cycle"),
    "notify": ("input", "links to tiles", "by link: a message has arrived in whole"),
    "issues": ("output", "queues x its fields", "by queue: an instruction issues in this cycle; "
               "CRC-16 of its word, and its indices"),
    "writes": ("output", "slices x its fields", "by SRAM slice: a word is written in this cycle"),
    "arrivals": ("output", "links x its fields", "by link: a vector enters the FIFO in this cycle"),
    "faults": ("output", "places x its fields", "by place: what sets bits of `errors`"),
}.items()}
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
        structure = shape.elem_shape if isinstance(shape, data.ArrayLayout) else shape
        fields = []
        if isinstance(structure, data.StructLayout):
            fields = [(field, at.offset, Shape.cast(at.shape).width) for field, at in structure]
        found.append(Port(name, "input" if member.flow == In else "output",
                          Shape.cast(shape).width, _meaning(name), fields,
                          _elements(_TILE.sub(r"\2", name), cfg)))
    return found


def _meaning(name):
    if tile := _TILE.fullmatch(name):
        return f"tile {tile[1]}: {_meaning(tile[2])}"
    for pattern, meaning in PORTS.items():
        if found := re.fullmatch(re.sub("<.>", r"(\\d+)", pattern), name):
            return re.sub("<.>", found[found.lastindex or 0], meaning.text)
    raise KeyError(f"Port {name} has no row in PORTS")


def _elements(name, cfg):
    """What the elements of a port of a tile stand for."""
    by_queue = [queue.name for queue in queues(cfg)]
    return {"halted": by_queue, "issues": by_queue, "errors": [fault.name for fault in Fault],
            "read_data": list(cfg.slices("mem")), "writes": list(cfg.slices("mem")),
            "arrivals": list(link_names(cfg)), "faults": fault_places(cfg),
            "notify": list(link_names(cfg))[:-1]}.get(name, [])
