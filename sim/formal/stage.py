"""One stage of the stream fabric, beside what the documentation says becomes of every value.

Within a cycle at a position: reads, clears, writes; what remains is at the next position one cycle
later.
"""

from types import SimpleNamespace

from amaranth.hdl import Cat, Fragment, Mux, Signal, Value

from hdl.arch.errors import Fault
from hdl.arch.presets import NANO
from hdl.stream import StreamStage
from hdl.tile import SLICES
from sim.formal.bench import inputs
from sim.formal.twins import twins

__all__ = ["DIRECTIONS", "kept", "last", "other_data", "shape"]

#: Of streams.
DIRECTIONS = ("east", "west")
_VECTOR = 8 * NANO.lanes


def shape(position):
    """Arguments of the `StreamStage` at a position of the floorplan, as the tile chooses them."""
    name = NANO.floorplan[position]
    kind = name.rstrip("0123456789")
    unit = SLICES[kind].unit(NANO)
    Fragment.get(unit, None)        # or it counts as forgotten
    widths = [tuple(getattr(unit, member).signature.width
                    for member in SLICES[kind].expand(NANO, members))
              for members in (SLICES[kind].taps, SLICES[kind].ports)]
    return (NANO, *widths), {f"last_{way}": last(position) == way for way in DIRECTIONS}


def last(position):
    """Direction whose last position this is, or None."""
    ends = {0: "west", len(NANO.floorplan) - 1: "east"}
    return ends.get(position)


def _make(position):
    arguments, ends = shape(position)
    return StreamStage(*arguments, **ends)


def other_data(bench, position, mutation=None):
    """Two stages with the same reads and writes of different vectors."""
    directions = [direction for direction in DIRECTIONS if direction != last(position)]
    copies, _ = twins(bench, lambda: _make(position), mutation=mutation,
                      data=("*__data", *(f"{direction}_data" for direction in directions)))
    for direction in directions:
        one, other = (getattr(copy, f"out_{direction}") for copy in copies)
        bench.cover(f"{direction}_differs", one.valid[0] & (one.data != other.data))


def kept(bench, position, direction, mutation=None):
    """The stage at ``position``: all its streams of one direction, one by one."""
    stage = _make(position)
    registers, _ = bench.place("stage", stage, mutation)
    inputs(bench, stage)
    widths = shape(position)[0][1:]
    taps, ports = ([getattr(stage, f"{name}{i}") for i in range(len(found))]
                   for name, found in zip(("tap", "port"), widths, strict=True))
    for number in range(NANO.streams):
        _Stream(bench, stage, registers, taps, ports, direction, number).follow()


def _meant(command, first, number):
    """What a tap or port with the (first) stream ``first`` does with stream ``number``.

    Returns
    -------
    list of (Value, int)
        Whether it means the stream, and as which of its vectors; one for each possible count.
    """
    found = []
    for count_log2 in range(3 if hasattr(command, "count_log2") else 1):
        said = True
        if hasattr(command, "count_log2"):
            said = command.count_log2 >= 2 if count_log2 == 2 else command.count_log2 == count_log2
        found.append((said & (first[count_log2:] == number >> count_log2),
                      number % (1 << count_log2)))
    return found


class _Stream:
    """Stream ``number`` of one direction at the stage."""

    def __init__(self, bench, stage, registers, taps, ports, direction, number):
        self._bench, self._stage, self._registers = bench, stage, registers
        self._taps, self._ports = taps, ports
        self._direction, self._number = direction, number
        self._name = f"{direction}_{number}"

    def _signal(self, shape, name, **options):
        return Signal(shape, name=f"spec_{self._name}_{name}", **options)

    def follow(self):
        """Check reads, faults and what moves on."""
        m, number = self._bench.m, self._number
        arriving = getattr(self._stage, f"in_{self._direction}")
        valid = arriving.valid[number]
        vector = arriving.data.word_select(number, _VECTOR)
        cleared, written = self._reads(valid, vector), self._writes()
        moved = getattr(self._stage, f"out_{self._direction}", None)
        stays, writes = self._signal(1, "stays"), written.count != 0
        m.d.comb += stays.eq(valid & ~cleared)
        faults = [(Fault.STREAM_OVERWRITE, stays & writes),
                  (Fault.STREAM_CONFLICT, written.count > 1)]
        if moved is None:
            faults.append((Fault.STREAM_LOST, stays | writes))
        for fault, happens in faults:
            seen = self._signal(1, fault.name.lower())
            m.d.sync += seen.eq(happens)
            self._check(fault.name.lower(), ~seen | self._registers["faults"][fault])
        if moved is None:
            self._bench.cover(f"{self._name}_lost", seen)
            return
        there, one = self._signal(1, "there"), self._signal(1, "one")
        after = self._signal(_VECTOR, "after", reset_less=True)
        m.d.sync += [there.eq(stays | writes), one.eq(written.count <= 1),
                     after.eq(Mux(writes, written.vector, vector))]
        self._check("valid", moved.valid[number] == there)
        self._check("vector", ~there | ~one
                    | (moved.data.word_select(number, _VECTOR) == after))
        self._bench.cover(f"{self._name}_passes", there & one & (after != 0))

    def _check(self, name, condition):
        self._bench.check(f"{self._name}_{name}", condition)

    def _reads(self, valid, vector):
        """Check what the taps read of the stream; gives whether one clears it."""
        clears = []
        for i, tap in enumerate(self._taps):
            hits = []
            for hit, place in _meant(tap, tap.stream, self._number):
                reads = self._signal(1, f"reads_{i}")
                self._bench.m.d.comb += reads.eq(
                    tap.en & (tap.west == (self._direction == "west")) & hit)
                self._check(f"read_{i}_as_{len(hits)}", ~reads | (tap.valid[place] == valid) & (
                    Value.cast(tap.data[place]) == Mux(valid, vector, 0)))
                hits.append(reads)
            clears.append(Cat(hits).any() & tap.last)
        return Cat(clears).any()

    def _writes(self):
        """How many ports write the stream in this cycle, and what the last of them does."""
        m = self._bench.m
        count = self._signal(range(len(self._ports) + 1), "writes")
        vector = self._signal(_VECTOR, "written")
        hits = []
        for i, port in enumerate(self._ports):
            writes = self._signal(1, f"writes_{i}")
            for hit, place in _meant(port, getattr(port, self._direction), self._number):
                with m.If(getattr(port, f"{self._direction}_en") & hit):
                    m.d.comb += [writes.eq(1), vector.eq(Value.cast(port.data[place]))]
            hits.append(writes)
        m.d.comb += count.eq(sum(hits))
        return SimpleNamespace(count=count, vector=vector)
