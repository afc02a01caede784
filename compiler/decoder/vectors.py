"""Vector operations of the decoder: ordered sums, norms, products of vectors, exchange over links.

fp32 vectors are lists of `At` of four slices, 16-bit vectors lists of (At, At): low and high limbs.
The order of every fp32 sum is that of ``docs/numerics.md``.
"""

from ..lower.chain import Chain, Entry

__all__ = ["OrderedSum", "add_normed", "exchange", "normed_limbs", "ordered_sum"]


class OrderedSum:
    """Sum of several vectors and their lanes, added up in the entries of one ALU.

    Chunk ``c`` goes into entry ``c % 4`` in order of ``c``; then ``(e0 + e1) + (e2 + e3)``; then
    the lanes, neighbours first.

    Parameters
    ----------
    builder : Builder
    machine : Machine
    name : str
    tile : int
    start : At, optional
        fp32 vector that chunk 0 begins with.
    """

    def __init__(self, builder, machine, name, tile, start=None):
        self._builder = builder
        self._name = name
        self._tile = tile
        self._alu = machine.turn(tile, "sums")
        self._start = start
        self._count = 0

    def add(self, chain, value):
        """Add the next chunk, a value of ``chain``."""
        entry = self._count % 4
        if self._count >= 4:
            chain.alu("ADD", value, Entry(entry), on=self._alu, keep=entry)
        elif self._count == 0 and self._start:
            chain.alu("ADD", value, chain.read(self._start), on=self._alu, keep=entry)
        else:
            chain.alu("PASS", value, on=self._alu, keep=entry)
        self._count += 1

    def total(self):
        """(chain, value): a new chain that begins with the sum, in every lane."""
        chain = Chain(self._builder.cfg, f"{self._name} sum", self._tile)
        if self._count == 1:
            return chain, chain.reduce("SUM", chain.alu("PASS", Entry(0), on=self._alu))
        if self._count == 2:
            return chain, chain.reduce("SUM", chain.alu("ADD", Entry(0), Entry(1), on=self._alu))
        first = Chain(self._builder.cfg, f"{self._name} first half", self._tile)
        first.alu("ADD", Entry(0), Entry(1), on=self._alu, keep=0)
        self._builder.add(first.cluster())
        second = Entry(2) if self._count == 3 else \
            chain.alu("ADD", Entry(2), Entry(3), on=self._alu)
        return chain, chain.reduce("SUM", chain.alu("ADD", second, Entry(0), on=self._alu))


def ordered_sum(chain, values):
    """The same sum within one chain, of values that all come in time; lanes included."""
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
    return chain.reduce("SUM", entries[0])


def keep_factor(builder, machine, tile, chain, value, function):
    """Keep ``function`` (RSQRT, RECIP) of ``value`` as a factor; returns (ALU, entry)."""
    alu, entry = machine.factor(tile)
    chain.alu("PASS", chain.alu(function, value), on=alu, keep=entry)
    builder.add(chain.cluster())
    return alu, entry


def normed_limbs(builder, machine, name, tile, x, gain, eps, target):
    """RMSNorm in front of a matrix: ``target`` = 16-bit (x * gain * rsqrt(sum of x * x)).

    Parameters
    ----------
    x, gain : list of At
    eps : At
        What the sum begins with.
    target : list of (At, At)
    """
    total = OrderedSum(builder, machine, name, tile, eps)
    for c, at in enumerate(x):
        chain = Chain(builder.cfg, f"{name} square {c}", tile)
        value = chain.read(at)
        total.add(chain, chain.alu("MUL", value, value))
        builder.add(chain.cluster())
    factor = keep_factor(builder, machine, tile, *total.total(), "RSQRT")
    for c, (at, weight, limbs) in enumerate(zip(x, gain, target, strict=True)):
        chain = Chain(builder.cfg, f"{name} scale {c}", tile)
        value = chain.alu("MUL", chain.read(at), chain.read(weight))
        value = chain.alu("MUL", value, Entry(factor[1]), on=factor[0])
        write_limbs(chain, value, limbs)
        builder.add(chain.cluster())


def write_limbs(chain, value, limbs):
    """Round an fp32 value to 16 bits and put its limbs into (low, high)."""
    both = chain.alu("TO_LIMBS", value)
    for plane, at in enumerate(limbs):
        chain.write_plane(both, plane, at)


def add_normed(builder, machine, name, tile, sums, scale, gain, eps, x):
    """``x += sums * gain * rsqrt(sum of (sums * scale) ** 2)``, all lists of At."""
    total = OrderedSum(builder, machine, name, tile, eps)
    for c, (at, weight) in enumerate(zip(sums, scale, strict=True)):
        chain = Chain(builder.cfg, f"{name} square {c}", tile)
        value = chain.alu("MUL", chain.read(at), chain.read(weight))
        total.add(chain, chain.alu("MUL", value, value))
        builder.add(chain.cluster())
    factor = keep_factor(builder, machine, tile, *total.total(), "RSQRT")
    for c, (at, weight, place) in enumerate(zip(sums, gain, x, strict=True)):
        chain = Chain(builder.cfg, f"{name} add {c}", tile)
        value = chain.alu("MUL", chain.read(at), chain.read(weight))
        value = chain.alu("MUL", value, Entry(factor[1]), on=factor[0])
        chain.write(chain.alu("ADD", value, chain.read(place)), place)
        builder.add(chain.cluster())


def exchange(builder, machine, name, owner, places):
    """Copy words from the tile that has them to all others, one vector each.

    Parameters
    ----------
    owner : int
        The tile that has them.
    places : list by tile of lists of At
        Single words or quads, the same on every tile.
    """
    links = machine.links(owner)
    if not links:
        return
    ports = [link.source_port for link in links.values()]
    for number, at in enumerate(places[owner]):
        send = Chain(builder.cfg, f"send {name}.{number}", owner)
        send.send(send.read(at), ports)
        builder.add(send.cluster())
        for target, link in links.items():
            receive = Chain(builder.cfg, f"receive {name}.{number}", target)
            value = receive.recv(link.target_port, quad=len(at.slices) == 4)
            receive.write(value, places[target][number])
            builder.add(receive.cluster())
