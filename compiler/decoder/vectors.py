"""Vector operations of the decoder: ordered sums, norms, products of vectors, exchange over links.

fp32 vectors are lists of `At` of four slices, 16-bit vectors lists of (At, At): low and high limbs.
A *source* is an `At`, or the sum (str, int) of an MXM and accumulator.
The order of every fp32 sum is that of ``docs/numerics.md``.
"""

from compiler.quantise.graph import ENTRIES

from ..lower.chain import At, Chain, Entry

__all__ = ["Fold", "OrderedSum", "add_output", "delayed", "deliver", "exchange", "keep_factor",
           "normed_limbs", "ordered_sum", "receive", "scaled_limbs", "sum_of_squares", "take",
           "times", "write_limbs"]


class _Reduction:
    """Several vectors and then their lanes, combined in the entries of one ALU.

    Chunk ``c`` goes into entry ``c % 4`` in order of ``c``; then ``(e0, e1), (e2, e3)``; then the
    lanes, neighbours first, if there is an operation for them.
    """

    def __init__(self, builder, machine, ops, name, tile, start=None, spill=None):
        self._builder = builder
        self._combine, self._reduce = ops
        self._name = name
        self._tile = tile
        self.alu = machine.turn(tile, "sums")
        self._start = start
        self._spill = spill
        self._count = 0

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
    """

    def __init__(self, builder, machine, name, tile, start=None, spill=None):
        super().__init__(builder, machine, ("ADD", "SUM"), name, tile, start, spill)


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


def keep_factor(builder, machine, tile, chain, value, function, norm=False):
    """Keep ``function`` (RSQRT, RECIP) of ``value`` as a factor; returns (ALU, entry).

    ``norm``: it is the factor of a whole vector, with little else to do meanwhile: keep it where it
    is made, which saves a PASS.
    """
    alu, entry = machine.norm_factor(tile) if norm else machine.factor(tile)
    if alu == machine.special:
        chain.alu(function, value, on=alu, keep=entry)
    else:
        chain.alu("PASS", chain.alu(function, value), on=alu, keep=entry)
    builder.add(chain.cluster())
    return alu, entry


def sum_of_squares(builder, machine, name, tile, x, eps):
    """`OrderedSum` of the squares of ``x`` (list of At), begun with ``eps``."""
    total = OrderedSum(builder, machine, name, tile, eps)
    for c, at in enumerate(x):
        chain = Chain(builder.cfg, f"{name} square {c}", tile)
        value = chain.read(at)
        total.add(chain, chain.alu("MUL", value, value))
        builder.add(chain.cluster())
    return total


def normed_limbs(builder, machine, name, tile, x, gain, total, target):
    """RMSNorm in front of a matrix: ``target`` = 16-bit (x * gain * rsqrt(total)).

    Parameters
    ----------
    x, gain : list of At
    total : OrderedSum
        Of the squares of ``x``.
    target : list of (At, At)
    """
    factor = keep_factor(builder, machine, tile, *total.total(), "RSQRT", norm=True)
    for c, (at, weight, limbs) in enumerate(zip(x, gain, target, strict=True)):
        chain = Chain(builder.cfg, f"{name} scale {c}", tile)
        value = chain.alu("MUL", chain.read(at), chain.read(weight))
        write_limbs(chain, times(chain, value, factor), limbs)
        builder.add(chain.cluster())


def write_limbs(chain, value, limbs):
    """Round an fp32 value to 16 bits and put its limbs into (low, high)."""
    both = chain.alu("TO_LIMBS", value)
    for plane, at in enumerate(limbs):
        chain.write_plane(both, plane, at)


def scaled_limbs(builder, name, tile, x, gain, target):
    """``target`` = 16-bit (x * gain): a norm in front of a matrix whose factor comes later."""
    for c, (at, weight, limbs) in enumerate(zip(x, gain, target, strict=True)):
        chain = Chain(builder.cfg, f"{name} scale {c}", tile)
        write_limbs(chain, chain.alu("MUL", chain.read(at), chain.read(weight)), limbs)
        builder.add(chain.cluster())


def add_output(builder, machine, name, tile, sums, scale, gain, eps, x, then=None):
    """``x += sums * gain``, times rsqrt(sum of (sums * scale) ** 2) where ``scale`` is not None:
    lists of At, ``sums`` of sources.

    ``then(chain, c, value)`` may use vector ``c`` of the new ``x`` as it is made.
    """
    factor = None
    if scale is not None:
        total = OrderedSum(builder, machine, name, tile, eps)
        for c, (at, weight) in enumerate(zip(sums, scale, strict=True)):
            chain = Chain(builder.cfg, f"{name} square {c}", tile)
            value = chain.alu("MUL", take(chain, at), chain.read(weight))
            total.add(chain, chain.alu("MUL", value, value))
            builder.add(chain.cluster())
        factor = keep_factor(builder, machine, tile, *total.total(), "RSQRT", norm=True)
    for c, (at, weight, place) in enumerate(zip(sums, gain, x, strict=True)):
        chain = Chain(builder.cfg, f"{name} add {c}", tile)
        value = times(chain, chain.alu("MUL", take(chain, at), chain.read(weight)), factor)
        value = chain.alu("ADD", value, chain.read(place))
        chain.write(value, place)
        if then:
            then(chain, c, value)
        builder.add(chain.cluster())


def times(chain, value, factor):
    """A value times a factor, if there is one: an ALU and its entry, or an At."""
    if factor is None:
        return value
    if isinstance(factor, At):
        return chain.alu("MUL", value, chain.read(factor))
    return chain.alu("MUL", value, Entry(factor[1]), on=factor[0])


def take(chain, source):
    """The value of a source."""
    return chain.read(source) if isinstance(source, At) else chain.acc(*source)


def exchange(builder, machine, name, owner, places, sources=None, readers=None):
    """Copy words from the tile that has them to others, one vector each.

    Parameters
    ----------
    owner : int
        The tile that has them.
    places : list by tile of lists of At
        Single words or quads, the same on every tile.
    sources : list, optional
        Where the owner takes them from, if not from its places.
    readers : list of int, optional
        Tiles that need them; all if not given.
    """
    others = set(range(machine.system.tiles) if readers is None else readers) - {owner}
    for number, source in enumerate(sources or places[owner]):
        deliver(builder, machine, f"{name}.{number}", owner, source,
                {tile: places[tile][number] for tile in sorted(others)})


def deliver(builder, machine, name, owner, source, targets):
    """Send a vector to some tiles.

    Parameters
    ----------
    owner : int
        The tile that has it.
    source : At or (str, int)
        One stream or four.
    targets : dict of int to At or callable
        Where each puts it; or ``keep(chain, value)``, which takes a vector of one stream there.
    """
    ports = machine.ports(owner, targets)
    if ports:
        send = Chain(builder.cfg, f"send {name}", owner)
        value = take(send, source)
        send.send(value, ports)
        builder.add(send.cluster())
        receive(builder, machine, name, owner, value.width, targets)


def receive(builder, machine, name, owner, width, targets):
    """What `deliver` does once a vector of ``width`` streams has been sent to `Machine.ports`."""
    hops = machine.spread(owner, targets)
    onward = {tile: [link.source_port for link in links] for tile, links in hops}
    for link in (link for _, links in hops for link in links):
        _receive(builder, f"receive {name}", link, width, targets.get(link.target),
                 onward.get(link.target, ()))


def _receive(builder, name, link, width, keep, onward):
    """Keep what comes over ``link``, and pass it ``onward`` (ports) as it comes in."""
    def chain():
        return Chain(builder.cfg, name, link.target)

    if keep is None:
        passing = [chain() for _ in range(width)]
        for plane in passing:
            plane.forward(link.target_port, onward)
    elif isinstance(keep, At):
        parts = [keep] if not onward else [At((slice_,), keep.address, keep.terms, keep.key)
                                           for slice_ in keep.slices]
        passing = []
        for part in parts:
            passing.append(chain())
            value = passing[-1].recv(link.target_port, quad=len(part.slices) == 4, links=onward)
            passing[-1].write(value, part)
    else:
        passing = [chain()]
        keep(passing[0], passing[0].recv(link.target_port, links=onward))
    for one in passing:
        builder.add(one.cluster())
