"""Chains: values that flow from SRAM, sums or links through ALUs and lane movers and back.

A `Chain` is written like straight-line code and becomes one cluster.  A value that an ALU makes, or
a stream brings, exists once, so it must be used at one time: whoever needs it later reads it again.
"""

import struct
from dataclasses import dataclass, field

from hdl.arch.isa import Operand, planes
from hdl.arch.queues import link_names

from ..schedule.problem import Bundle, Cluster, Slot, Wire, alus_for

__all__ = ["At", "Chain", "Entry", "STEP"]


@dataclass(frozen=True)
class At:
    """Where a vector lies: a word of one slice, or of four (an fp32 vector, byte planes in order).

    Parameters
    ----------
    slices : tuple of str
    address : int
    terms : tuple of Term
        What the loops add.
    key : hashable, optional
        Name under which accesses are ordered, where addresses alone do not tell (caches, tables).
    """

    slices: tuple
    address: int
    terms: tuple = ()
    key: object = None

    def plus(self, words):
        """The place ``words`` further on."""
        return At(self.slices, self.address + words, self.terms, self.key)

    def moving(self, term):
        """The place as another loop moves it."""
        return At(self.slices, self.address, (*self.terms, term), self.key)


@dataclass(frozen=True)
class Entry:
    """Operand: entry ``number`` of the accumulator file of the ALU that executes."""

    number: int


#: Operand: the step as int32.
STEP = object()


@dataclass(eq=False, slots=True)
class _Value:
    slots: list             #: (Slot, first plane)
    width: int
    bundle: object = None
    result: bool = False    #: made by an ALU or the reduction unit: RESULT operands can take it
    consumers: list = field(default_factory=list)


class Chain:
    """One cluster under construction, all on ``tile``."""

    def __init__(self, cfg, name, tile):
        self._cfg = cfg
        self._name = name
        self._tile = tile
        self._slots = []
        self._bundles = []
        self._wires = []

    def read(self, at):
        """The vector at ``at``: one stream, or four."""
        slots = [self._slot(f"{slice_}.read", "READ", index=(at.address,), terms=(at.terms,),
                            key=at.key) for slice_ in at.slices]
        return _Value([(slot, plane) for plane, slot in enumerate(slots)], len(slots))

    def gather(self, at, address):
        """The words of ``at`` moved on by the int32 ``address``, each slice by itself."""
        slots = []
        for plane, slice_ in enumerate(at.slices):
            slot = self._slot(f"{slice_}.read", "GATHER", index=(at.address,), terms=(at.terms,),
                              key=at.key)
            self._consume(address, slot, "source", 0)
            slots.append((slot, plane))
        return _Value(slots, len(slots))

    def write(self, value, at, predicates=None):
        """Put ``value`` into ``at``; of a one-stream value each of several slices takes a copy if
        its predicate holds."""
        for number, slice_ in enumerate(at.slices):
            slot = self._slot(f"{slice_}.write", "WRITE", index=(at.address,), terms=(at.terms,),
                              key=at.key, predicate=predicates[number] if predicates else None)
            self._consume(value, slot, "source", 0 if predicates else number)

    def write_plane(self, value, plane, at):
        """Put one plane of ``value`` into the single word ``at``."""
        slot = self._slot(f"{at.slices[0]}.write", "WRITE", index=(at.address,), terms=(at.terms,),
                          key=at.key)
        self._consume(value, slot, "source", plane)

    def acc(self, mxm, accumulator, mode=0):
        """A sum as fp32 (or half of it raw); may be read any number of times."""
        slot = self._slot(f"{mxm}.act", "ACC", index=(accumulator, 0), mode=mode)
        return _Value([(slot, 0)], 4)

    def recv(self, link, quad=False, links=()):
        """The next vector, or four, of a link; on their way on to ``links`` too."""
        slot = self._slot(f"{link_names(self._cfg)[link]}.recv", "RECV", quad=int(quad),
                          links=_mask(links))
        return _Value([(slot, 0)], 4 if quad else 1)

    def send(self, value, links):
        """Put ``value`` (1 or 4 streams) onto ``links``; the host's is number ``len(ports)``."""
        quad = int(value.width == 4)
        slot = self._slot(f"{link_names(self._cfg)[min(links)]}.send", "SEND", quad=quad,
                          links=_mask(links))
        self._consume(value, slot, "source", 0)

    def forward(self, link, links):
        """The next vector of ``link`` on to ``links``, past the SRAM."""
        self._slot(f"{link_names(self._cfg)[link]}.recv", "FORWARD", links=_mask(links))

    def load(self, value, mxm, row, columns=False):
        """``value`` (1, 2 or 4 vectors) into the shadow weights of ``mxm`` from ``row`` on (LW)."""
        slot = self._slot(f"{mxm}.weight", "LW", index=(row,), columns=int(columns),
                          count_log2=value.width.bit_length() - 1)
        self._consume(value, slot, "source", 0)

    def multiply(self, value, mxm, accumulator, *, plane=0, activation=0, **flags):
        """Plane ``plane`` of ``value``, or (None) activation buffer entry ``activation``, times the
        active weights (ABC)."""
        slot = self._slot(f"{mxm}.act", "ABC", index=(accumulator, activation),
                          **{"install": 0, "clear": 0, **flags})
        if value is None:
            slot.fields["buffered"] = 1
        else:
            self._consume(value, slot, "source", plane)

    def alu(self, op, a, b=None, *, on=None, keep=None):
        """Result of an ALU.

        Parameters
        ----------
        op : str
        a, b : value, float (an fp32 immediate), int (an int32 immediate), Entry or STEP
        on : int, optional
            Which ALU; otherwise any that has the opcode.
        keep : int, optional
            Entry of that ALU to keep the result in.
        """
        slot = self._slot(alus_for(self._cfg, op) if on is None else f"alu{on}", op)
        if keep is not None:
            slot.fields |= {"keep": 1, "entry": keep}
        for name, operand in (("a", a), ("b", b)):
            if operand is not None:
                self._operand(slot, name, operand)
        return _Value([(slot, 0)], planes(op, {}, "target"), result=True)

    def reduce(self, op, a):
        """Lane reduction (SUM, MAX, MIN) of a value, in every lane."""
        slot = self._slot("reduce", op)
        self._operand(slot, "a", a)
        return _Value([(slot, 0)], 4, result=True)

    def move(self, op, value, sxm, amount=0, **fields):
        """Lane movement of a value of 1 or 4 streams."""
        slot = self._slot(sxm, op, quad=int(value.width == 4), amount=amount, **fields)
        self._consume(value, slot, "source", 0)
        return _Value([(slot, 0)], value.width)

    def cluster(self):
        """The finished `Cluster`."""
        return Cluster(self._cfg, self._name, self._slots, self._bundles, self._wires)

    def _slot(self, queue, op, *, index=(), terms=(), key=None, predicate=None, **fields):
        slot = Slot(self._tile, queue, op, fields, index, terms, predicate, key=key)
        self._slots.append(slot)
        return slot

    def _operand(self, slot, name, operand):
        if isinstance(operand, _Value):
            if operand.result:
                self._wires.append(Wire(operand.slots[0][0], slot, name))
            else:
                self._consume(operand, slot, f"{name}_source", 0)
        elif isinstance(operand, Entry):
            slot.fields |= {name: Operand.ENTRY.value, f"{name}_source": operand.number}
        elif operand is STEP:
            slot.fields[name] = Operand.STEP.value
        else:
            bits = struct.unpack("<I", struct.pack("<f", operand))[0] \
                if isinstance(operand, float) else operand & 0xFFFFFFFF
            slot.fields |= {name: Operand.IMMEDIATE.value, "immediate": bits}

    def _consume(self, value, slot, operand, plane):
        if value.bundle is None:
            value.bundle = Bundle(value.width, value.slots, [])
            self._bundles.append(value.bundle)
        value.bundle.consumers.append((slot, operand, plane))


def _mask(links):
    """Bit ``k`` for each link ``k``."""
    return sum(1 << link for link in links)
