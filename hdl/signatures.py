"""Interfaces between the units of a tile: issue, stream tap, stream port, link flit.

Every signature is written from the side that drives its command::

    Icu ------ IssueSignature ------> unit
    unit ----- ReadTap -------------> stream stage     (data and valid come back in the same cycle)
    unit ----- WritePort -----------> stream stage
    C2c, link  FlitSignature -------> link, C2c

Units of a slice, by the kind of the slice, with the members that the tile connects:

``Mem``
    ``read``, ``write``: issues; ``tap`` (1), ``gather_tap`` (4): what WRITE and GATHER take;
    ``port`` (1): what READ and GATHER put.
``Mxm``
    ``weight``, ``act``: issues; ``weight_tap`` (4), ``act_tap`` (1); ``port`` (4): what ACC puts.
``Vxm``
    for each ALU ``i``: ``alu<i>``: issue; ``a_tap<i>``, ``b_tap<i>`` (4); ``port<i>`` (4); and the
    same of the reduction unit: ``reduce``, ``reduce_tap``, ``reduce_port``.
``Sxm``
    ``issue``; ``tap`` (4); ``port`` (4).
``C2c``
    for each link ``k`` (the host is the last): ``send<k>``, ``recv<k>``: issues; ``tap<k>`` (4);
    ``port<k>`` (4); ``tx<k>``, ``rx<k>``: flits; and ``arrivals``: an array of
    `hdl.arch.trace.arrival_layout`.  With ``cfg.sync`` for each link but the host's also
    ``post<k>``: messages announced to it; ``taken<k>``: vectors that its FIFO gives.

All have ``faults``, a vector of pulses in the order of `hdl.arch.errors.Fault` (`FAULT_BITS`).
"""

from amaranth.hdl import unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from .arch import isa
from .arch.errors import Fault

__all__ = ["FAULT_BITS", "FlitSignature", "IssueSignature", "LoadSignature", "Parametric",
           "PostSignature", "ReadTap", "WritePort", "fields", "vector"]

#: Width of a unit's ``faults``: bit ``Fault.X`` is set for one cycle for each fault of class X.
FAULT_BITS = len(Fault)


def vector(cfg):
    """Shape of one stream vector: byte ``i`` is lane ``i``.  Flat, because a layout would name
    every lane of it in the Verilog, wherever it passes."""
    return unsigned(8 * cfg.lanes)


def fields(cfg, kind, op, word):
    """`View` of the fields of opcode ``op`` (a member of the kind's ``ops``) in a raw ``word``."""
    layout = isa.layout(cfg, kind, op)
    return data.View(layout, word[:layout.size])


class Parametric(wiring.Signature):
    """A signature that is equal to others of its class with the same configuration parameters."""

    def __init__(self, members, *key):
        self._key = key
        super().__init__(members)

    def __eq__(self, other):
        return type(self) is type(other) and self._key == other._key

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(map(repr, self._key))})"


class IssueSignature(Parametric):
    """Issue of one queue, from its ICU to its unit.

    Parameters
    ----------
    cfg : TileConfig
    kind : str
        Queue kind, a key of `isa.KINDS`.

    Members
    -------
    valid : Out(1)
        A unit instruction issues in this cycle.  Everything else is meaningless while it is 0.
    word : Out(word_bits)
        The instruction word; `fields` gives a view of it.  The index fields in it are the bases:
        use ``index``.
    index : Out(StructLayout)
        Computed indices by name, for example ``issue.index.address``.  Absent if the kind has none.
    step : Out(COUNTER_BITS)
        Index of LOOP level 0 (the absolute step); 0 while no LOOP is open.
    predicate : Out(1)
        The predicate of the word holds.  1 for kinds without predicate.
    """

    def __init__(self, cfg, kind):
        members = {"valid": Out(1), "word": Out(isa.word_bits(cfg, kind)),
                   "step": Out(isa.COUNTER_BITS), "predicate": Out(1)}
        indices = isa.KINDS[kind].indices
        if indices:
            members["index"] = Out(data.StructLayout({
                index.name: unsigned(bits)
                for index, bits in zip(indices, isa.index_bits(cfg, kind), strict=True)}))
        super().__init__(members, cfg, kind)


class LoadSignature(Parametric):
    """Loading of a queue, while it is halted.

    Members
    -------
    word_en, table_en : Out(1)
        Write ``data`` into an instruction word, into a table entry (`isa.table_layout`).
    address : Out
        Which one.
    data : Out
        From bit 0; what lies above the width of a word or of an entry is ignored.
    """

    def __init__(self, cfg, kind):
        width = max(isa.word_bits(cfg, kind), isa.table_layout(cfg, kind).size)
        super().__init__({"word_en": Out(1), "table_en": Out(1),
                          "address": Out(bits_for(max(cfg.icu_words, isa.TABLE_ENTRIES) - 1)),
                          "data": Out(width)}, cfg, kind)


class ReadTap(Parametric):
    """Reading of streams at a position; everything happens in one cycle, combinationally.

    Parameters
    ----------
    cfg : TileConfig
    width : int
        1: one stream.  4: one, two or four aligned streams.

    Members
    -------
    en : Out(1)
        Read in this cycle.
    stream : Out(stream number)
        The (first) stream.  With two or four streams its low one or two bits are ignored.
    west : Out(1)
        It is a westward stream, otherwise an eastward one.
    last : Out(1)
        Clear the valid bits of what is read.
    count_log2 : Out(2)
        Only with ``width`` 4: 0, 1, 2 for one, two, four streams (3 is as 2).
    data : In(ArrayLayout(vector, width))
        The vectors, the named stream first; 0 where invalid, undefined beyond the count or while
        not ``en``.
    valid : In(width)
        Which vectors are valid.  The stage itself raises ``STREAM_INVALID``.
    """

    def __init__(self, cfg, width=1):
        members = {"en": Out(1), "stream": Out(bits_for(cfg.streams - 1)), "west": Out(1),
                   "last": Out(1), "data": In(data.ArrayLayout(vector(cfg), width)),
                   "valid": In(width)}
        if width == 4:
            members["count_log2"] = Out(2)
        self.width = width
        super().__init__(members, cfg, width)


class WritePort(Parametric):
    """Writing of streams at a position: what is driven in cycle ``k`` is at the neighbour in
    ``k + 1``.

    Parameters
    ----------
    cfg : TileConfig
    width : int
        1: one stream in each direction.  4: one, two or four aligned ones in each direction.

    Members
    -------
    east_en, west_en : Out(1)
        Write the eastward, the westward stream(s) in this cycle.
    east, west : Out(stream number)
        The (first) stream.  With two or four streams its low one or two bits are ignored.
    count_log2 : Out(2)
        Only with ``width`` 4: 0, 1, 2 for one, two, four streams (3 is as 2).
    data : Out(ArrayLayout(vector, width))
        The vectors, that of the first stream first, the same for both directions.
    """

    def __init__(self, cfg, width=1):
        number = bits_for(cfg.streams - 1)
        members = {"east_en": Out(1), "east": Out(number), "west_en": Out(1), "west": Out(number),
                   "data": Out(data.ArrayLayout(vector(cfg), width))}
        if width == 4:
            members["count_log2"] = Out(2)
        self.width = width
        super().__init__(members, cfg, width)


class FlitSignature(Parametric):
    """One direction of a link: ``valid`` and ``data`` of ``width`` bytes, lowest lane first."""

    def __init__(self, width):
        self.width = width
        super().__init__({"valid": Out(1), "data": Out(8 * width)}, width)


class PostSignature(Parametric):
    """A message announced to a link: ``valid``, and ``vectors`` that it has, at least 1."""

    def __init__(self):
        super().__init__({"valid": Out(1), "vectors": Out(isa.POST_BITS)})
