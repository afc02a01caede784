"""Sums and extremes of several vectors and their lanes, in the order of ``docs/numerics.md``."""

from compiler.quantise.graph import ENTRIES

from ..lower.chain import Chain, Entry

__all__ = ["Extreme", "Fold", "OrderedSum", "delayed", "ordered_sum"]


class _Reduction:
    """Several vectors and then their lanes, combined in the entries of one ALU.

    Chunk ``c`` goes into entry ``c % 4`` in order of ``c``; then ``(e0, e1), (e2, e3)``; then the
    lanes, neighbours first, if there is an operation for them.
    """

    def __init__(self, builder, machine, ops, name, tile, start=None, spill=None,
                 taken=0):
        self._builder = builder
        self._combine, self._reduce = ops
        self._name = name
        self._tile = tile
        self.alu = machine.turn(tile, "sums")
        self._start = start
        self._spill = spill
        self._count = taken

    def add(self, chain, value):
        """Take the next chunk, a value of ``chain``."""
        entry, flags = self._count % ENTRIES, {"on": self.alu}
        before, behind = self._spilled()
        if not behind:
            flags["keep"] = entry
        if self._count >= ENTRIES:
            kept = chain.read(before) if before else Entry(entry)
            value = chain.alu(self._combine, value, kept, **flags)
        elif self._count == 0 and self._start:
            value = chain.alu(self._combine, value, chain.read(self._start), **flags)
        else:
            value = chain.alu("PASS", value, **flags)
        if behind:
            chain.write(value, behind)
        self._count += 1

    def _spilled(self):
        """Where the next chunk finds what is in its entry, and where it leaves it, if not there."""
        if self._spill is None:
            return None, None
        every, count, places = self._spill
        at, place = self._count % every, places[self._count % ENTRIES]
        last = self._count >= count - ENTRIES
        return (place if at < ENTRIES else None,
                place if at >= every - ENTRIES and not last else None)

    def total(self):
        """(chain, value): a new chain that begins with the result, of lanes in every lane."""
        chain = Chain(self._builder.cfg, f"{self._name} total", self._tile)
        value = self._all(chain)
        return chain, value if self._reduce is None else chain.reduce(self._reduce, value)

    def _all(self, chain):
        if self._count == 1:
            return chain.alu("PASS", Entry(0), on=self.alu)
        if self._count > 2:
            first = Chain(self._builder.cfg, f"{self._name} first half", self._tile)
            first.alu(self._combine, Entry(0), Entry(1), on=self.alu, keep=0)
            self._builder.add(first.cluster())
        second = {2: Entry(1), 3: Entry(2)}.get(self._count)
        if second is None:
            second = chain.alu(self._combine, Entry(2), Entry(3), on=self.alu)
        return chain.alu(self._combine, second, Entry(0), on=self.alu)


class OrderedSum(_Reduction):
    """Sum of several vectors and their lanes, in the order of ``docs/numerics.md``.

    Parameters
    ----------
    builder : Builder
    machine : Machine
    name : str
    tile : int
    start : At, optional
        fp32 vector that chunk 0 begins with.
    spill : (int, int, list of At), optional
        Chunks after which another sum may use the entries (a multiple of 4), chunks in all, and the
        words that keep them meanwhile.
    taken : int
        Chunks that were taken before, by another one with these words (a multiple of 4).
    """

    def __init__(self, builder, machine, name, tile, start=None, spill=None, taken=0):
        super().__init__(builder, machine, ("ADD", "SUM"), name, tile, start, spill, taken)


class Fold(_Reduction):
    """Sum of several vectors in the same order, their lanes apart."""

    def __init__(self, builder, machine, name, tile):
        super().__init__(builder, machine, ("ADD", None), name, tile)


class Extreme(_Reduction):
    """Largest (``op`` MAX) or smallest (MIN) element of several vectors."""

    def __init__(self, builder, machine, op, name, tile):
        super().__init__(builder, machine, (op, op), name, tile)


def ordered_sum(chain, values, late=0):
    """The same sum within one chain, of values that all come in time; lanes included, before which
    it is passed on ``late`` times."""
    entries = []
    for number, value in enumerate(values):
        if number < 4:
            entries.append(value)
        else:
            entries[number % 4] = chain.alu("ADD", entries[number % 4], value)
    if len(entries) > 1:
        halves = [entries[i] if i + 1 == len(entries) else chain.alu("ADD", *entries[i:i + 2])
                  for i in range(0, len(entries), 2)]
        entries = [halves[0] if len(halves) == 1 else chain.alu("ADD", *halves)]
    return chain.reduce("SUM", delayed(chain, entries[0], late))


def delayed(chain, value, times):
    """The value later: passed on so many times."""
    for _ in range(times):
        value = chain.alu("PASS", value)
    return value
