"""Streams: the register of every stream at one position, with what reads and writes there.

Within cycle ``k`` at a position, for a value that arrives there::

    in_east, in_west    -> taps read -> `last` clears -> ports write ->    out_east, out_west
    in cycle k             in cycle k                    in cycle k        in cycle k + 1

``out_east`` is ``in_east`` of the next position, ``out_west`` is ``in_west`` of the one before.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .arch.errors import Fault
from .signatures import FAULT_BITS, ReadTap, WritePort

__all__ = ["StreamStage", "StreamsSignature"]


class StreamsSignature(wiring.Signature):
    """All streams of one direction between two positions.

    Members
    -------
    data : Out(8 * lanes * streams)
        The vectors, stream 0 lowest; undefined where not valid.  Flat, because a layout would name
        every byte of it in the Verilog.
    valid : Out(streams)
        Bit ``s``: stream ``s`` carries a value.
    """

    def __init__(self, cfg):
        self._cfg = cfg
        super().__init__({"data": Out(8 * cfg.lanes * cfg.streams),
                          "valid": Out(cfg.streams)})

    def __eq__(self, other):
        return type(self) is type(other) and self._cfg == other._cfg


class StreamStage(wiring.Component):
    """The stream registers of one position.

    Parameters
    ----------
    cfg : TileConfig
    taps, ports : tuple of int
        Width (1 or 4) of each read tap and of each write port of the slice.
    last_east, last_west : bool
        The position is the last one of that direction: there is no ``out_east`` or ``out_west``.

    Members
    -------
    in_east, in_west : In(StreamsSignature)
        What arrives in this cycle.
    out_east, out_west : Out(StreamsSignature)
        What moves on, one cycle later.  Reset clears ``valid``.
    tap<i> : In(ReadTap)
    port<i> : In(WritePort)
        If two ports write one stream in one cycle, which of the two moves on is undefined.
    faults : Out(FAULT_BITS)
        ``STREAM_INVALID``, ``STREAM_OVERWRITE``, ``STREAM_LOST``, ``STREAM_CONFLICT``, one cycle
        later.
    """

    def __init__(self, cfg, taps, ports, *, last_east=False, last_west=False):
        self._cfg = cfg
        self._widths = taps, ports
        self._last = {"east": last_east, "west": last_west}
        members = {"in_east": In(StreamsSignature(cfg)), "in_west": In(StreamsSignature(cfg)),
                   "faults": Out(FAULT_BITS)}
        for direction, last in self._last.items():
            if not last:
                members[f"out_{direction}"] = Out(StreamsSignature(cfg))
        members.update((f"tap{i}", In(ReadTap(cfg, width))) for i, width in enumerate(taps))
        members.update((f"port{i}", In(WritePort(cfg, width))) for i, width in enumerate(ports))
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        # Faults of this cycle by class, as lists of one-bit or stream-wide expressions.
        self._faults = {fault: [] for fault in (
            Fault.STREAM_INVALID, Fault.STREAM_OVERWRITE, Fault.STREAM_LOST, Fault.STREAM_CONFLICT)}
        taps, ports = self._widths
        cleared = {direction: [] for direction in self._last}
        for i, width in enumerate(taps):
            tap = getattr(self, f"tap{i}")
            mask = self._read_single(m, tap) if width == 1 else self._read_quad(m, tap)
            for direction, here in (("east", ~tap.west), ("west", tap.west)):
                read = Signal(self._cfg.streams, name=f"read_{direction}_{i}")
                m.d.comb += read.eq(Mux(tap.en & here, mask, 0))
                self._faults[Fault.STREAM_INVALID].append(
                    read & ~getattr(self, f"in_{direction}").valid)
                cleared[direction].append(Mux(tap.last, read, 0))
        for direction in self._last:
            self._move(m, direction, self._merge(m, f"cleared_{direction}", cleared[direction]))
        for fault, causes in self._faults.items():
            m.d.sync += self.faults[fault].eq(Cat(causes).any())
        return m

    def _at(self, flat, number, width):
        """Element ``number`` of ``width`` bits of a packed value."""
        return flat[:width] if len(number) == 0 else flat.word_select(number, width)

    def _selected(self, m, tap, number, width):
        """Data and valid bits of ``width`` streams, of group ``number`` in the tap's direction.
        Data is 0 where not valid.

        A case for each group, and nothing to do in cycles without a read, is what a simulator runs
        fastest; for synthesis it is the same multiplexer.
        """
        size = 8 * self._cfg.lanes * width
        vectors, valid = Signal(size, name="group_data"), Signal(width, name="group_valid")
        defined = Signal(size, name="group_defined")
        with m.If(tap.en):
            with m.Switch(Cat(number, tap.west)):
                for west, arriving in enumerate((self.in_east, self.in_west)):
                    for group in range(self._cfg.streams // width):
                        with m.Case(group | west << len(number)):
                            m.d.comb += [vectors.eq(arriving.data.word_select(group, size)),
                                         valid.eq(arriving.valid.word_select(group, width))]
        for i in range(width):
            with m.If(valid[i]):
                m.d.comb += defined.word_select(i, size // width).eq(
                    vectors.word_select(i, size // width))
        return defined, valid

    def _read_single(self, m, tap):
        vectors, valid = self._selected(m, tap, tap.stream, 1)
        m.d.comb += [tap.data.as_value().eq(vectors), tap.valid.eq(valid)]
        return 1 << tap.stream

    def _read_quad(self, m, tap):
        """One, two or four streams of an aligned group: the named one first."""
        size = 8 * self._cfg.lanes
        vectors, valid = self._selected(m, tap, tap.stream[2:], 4)
        low = tap.stream[:2]
        first = Signal(2, name="first")
        mask = Signal(4, name="group_mask")
        with m.If(tap.count_log2 == 0):
            m.d.comb += [first.eq(low), mask.eq(1 << low)]
        with m.Elif(tap.count_log2 == 1):
            m.d.comb += [first.eq(low & 2), mask.eq(Mux(low[1], 0b1100, 0b0011))]
        with m.Else():
            m.d.comb += mask.eq(0b1111)
        m.d.comb += [tap.data.as_value().eq(vectors), tap.valid.eq(valid)]
        for i in range(1, 4):
            with m.If(first == i):
                m.d.comb += [tap.data[0].eq(vectors.word_select(i, size)),
                             tap.valid[0].eq(valid[i])]
        with m.If(first[1]):
            m.d.comb += [tap.data[1].eq(vectors.word_select(3, size)), tap.valid[1].eq(valid[3])]
        wide = Signal(self._cfg.streams, name="mask")
        m.d.comb += self._at(wide, tap.stream[2:], 4).eq(mask)
        return wide

    def _merge(self, m, name, masks):
        """The union of stream masks; a stream that is in two of them is a conflict."""
        union = Signal(self._cfg.streams, name=name)
        total = Const(0, self._cfg.streams)
        for mask in masks:
            self._faults[Fault.STREAM_CONFLICT].append(total & mask)
            total = total | mask
        m.d.comb += union.eq(total)
        return union

    def _move(self, m, direction, cleared):
        """Registers of one direction."""
        last = self._last[direction]
        arriving = getattr(self, f"in_{direction}")
        written = []
        if not last:
            moved = getattr(self, f"out_{direction}")
            out = Signal(len(moved.data), name=f"{direction}_data", reset_less=True)
            m.d.comb += moved.data.eq(out)
            m.d.sync += out.eq(arriving.data)
        for i, width in enumerate(self._widths[1]):
            port = getattr(self, f"port{i}")
            en, stream = getattr(port, f"{direction}_en"), getattr(port, direction)
            mask = Signal(self._cfg.streams, name=f"write_{direction}_{i}")
            size, vectors = 8 * self._cfg.lanes, port.data.as_value()
            for count_log2 in range(3 if width == 4 else 1):
                count = 1 << count_log2
                wanted = en
                if width == 4:
                    wanted = en & (port.count_log2[1] if count == 4 else
                                   port.count_log2 == count_log2)
                with m.If(wanted):
                    group = stream[count_log2:]
                    m.d.comb += self._at(mask, group, count).eq((1 << count) - 1)
                    if not last:
                        m.d.sync += self._at(out, group, count * size).eq(vectors[:count * size])
            written.append(mask)
        write = self._merge(m, f"written_{direction}", written)
        stays = Signal(self._cfg.streams, name=f"stays_{direction}")
        m.d.comb += stays.eq(arriving.valid & ~cleared)
        self._faults[Fault.STREAM_OVERWRITE].append(stays & write)
        if last:
            self._faults[Fault.STREAM_LOST].append(stays | write)
        else:
            m.d.sync += moved.valid.eq(stays | write)
