"""What the decoder's operations need to know of a tile: sides, ALU roles, links."""

from hdl.arch.timing import rules

from ..errors import AllocationError, CompileError
from ..lower.layout import quads_of
from ..schedule.problem import alus_for

__all__ = ["Machine"]


class Machine:
    """Roles of a tile's parts, the same on every tile of ``system``.

    Attributes
    ----------
    quads : tuple of tuple of str
        Groups of four mem slices on one side of the VXM, and of the C2C: homes of fp32 vectors.
    scratch : tuple of tuple of str
        The same, for vectors that depend on the context.
    here, there : tuple of str
        The first and the last of them: operands that are read in one cycle lie apart.
    pairs : tuple of tuple of str
        Groups of two: homes of 16-bit vectors (low limbs, high limbs).
    sums : tuple of int
        ALUs that add up ordered sums in their entries.
    factors : tuple of int
        ALUs that keep a factor in an entry and multiply by it.
    special : int
        The ALU that has the special functions (the last one of several).
    vectors_together : int
        Vectors of a head that one cluster can normalise.
    """

    def __init__(self, system):
        self.system = system
        self.cfg = cfg = system.tile
        for kind in ("vxm", "mxm"):
            if not cfg.slices(kind):
                raise CompileError(f"Decoder needs a {kind} slice in the floorplan")
        here = cfg.position("vxm")
        quads = quads_of(cfg)
        west = [quad[::-1] for quad in quads[::-1] if cfg.position(quad[0]) < here]
        self.quads = (*west, *quads[len(west):])        # of each side the nearest first
        if len(self.quads) < 2:
            raise AllocationError("Decoder needs two groups of four mem slices, each on one side "
                                  "of the vxm slice and of the c2c slice: change "
                                  "TileConfig.floorplan")
        self.scratch = self.quads       # dealt out apart
        self.here, self.there = self.quads[0], self.quads[-1]
        self.pairs = tuple(quad[i:i + 2] for quad in self.quads for i in (0, 2))
        adders = self._numbers("ADD")
        multipliers = self._numbers("MUL")
        common = set(adders) == set(multipliers)
        half = (len(adders) + 1) // 2
        if common and len(adders) > 1:
            self.sums, self.factors = adders[:half], multipliers[half:]
        else:       # those that do one of both, where there are some
            self.sums = tuple(alu for alu in adders if alu not in multipliers) or adders
            self.factors = tuple(alu for alu in multipliers if alu not in self.sums) or multipliers
        self.special = self._numbers("RSQRT")[-1]
        if common and len(adders) > 1 and self.factors == (self.special,):
            # it has enough to do beside the multiplications by what it makes
            self.sums, self.factors = (*self.sums[:-1], self.special), self.sums[-1:]
        #: Whether tiles pass vectors on for others.
        self.relays = len({(link.source, link.target) for link in system.links}) < \
            system.tiles * (system.tiles - 1)
        self._norms = self.special if self.special in self.factors else self.factors[-1]
        self.vectors_together = 2 if len(multipliers) > 2 else 1
        self._turn = {}
        self._ways = {}
        self._hops = {}

    def _numbers(self, op):
        return tuple(sorted(int(queue.removeprefix("alu")) for queue in alus_for(self.cfg, op)))

    def begin(self):
        """Begin all turns anew, as every region of time does."""
        self._turn.clear()

    def _number(self, tile, what):
        """0, 1, ... for every turn of ``what``."""
        number = self._turn.get((tile, what), 0)
        self._turn[tile, what] = number + 1
        return number

    def turn(self, tile, what):
        """The next of ``sums``, ``quads``, ... for ``tile``, round and round."""
        choices = getattr(self, what)
        number = self._number(tile, what)
        return choices[number % len(choices)]

    def pairs_apart(self, tile):
        """Two of ``pairs``, of different quads, in turn."""
        half = len(self.pairs) // 2
        number = self._number(tile, "pairs")
        return self.pairs[number % half], self.pairs[half + number % half]

    def factor(self, tile):
        """An ALU and one of its entries for a factor: (ALU, entry), round and round."""
        number = self._number(tile, "factor")
        if set(self.sums) & set(self.factors):
            raise CompileError("Decoder needs an ALU that multiplies besides those that add up "
                               "sums: add one to TileConfig.alus")
        alu, turn = self.factors[number % len(self.factors)], number // len(self.factors)
        if alu == self._norms:          # its entries 0 and 1 are for `norm_factor`
            return alu, 2 + turn % 2
        return alu, turn % 4

    def plain_factor(self, tile):
        """The same, on an ALU that makes no special functions if there is one."""
        plain = [alu for alu in self.factors if alu != self.special] or list(self.factors)
        number = self._number(tile, "plain")
        return plain[number % len(plain)], number // len(plain) % 4

    def norm_factor(self, tile):
        """An ALU and one of its entries for the factor of a whole vector, which lasts until the
        next but one: the ALU with special functions if it multiplies."""
        return self._norms, self._number(tile, "norm") % 2

    def spread(self, source, targets=None):
        """How a vector gets from tile ``source`` to ``targets`` (all others if None): the fastest
        way to each.

        Every tile on the way passes it on as it comes in, plane by plane.

        Returns
        -------
        list of (int, list of Link)
            A tile that has it, and the links on which it sends it on, in the order of time.

        Raises
        ------
        CompileError
            When a tile cannot be reached.
        """
        via, times = self._ways_from(source)
        wanted = frozenset(via if targets is None else targets) - {source}
        if (source, wanted) in self._hops:
            return self._hops[source, wanted]
        needed = set()
        for tile in wanted:
            while tile != source and tile not in needed:
                needed.add(tile)
                tile = via[tile].source
        links = [via[tile] for tile in sorted(needed, key=lambda tile: (times[tile], tile))]
        hops = [(tile, mine) for tile in sorted(times, key=lambda tile: (times[tile], tile))
                if (mine := [link for link in links if link.source == tile])]
        self._hops[source, wanted] = hops
        return hops

    def ports(self, source, targets):
        """The link ports of ``source`` on which a vector for ``targets`` leaves."""
        hops = self.spread(source, targets)
        return [link.source_port for link in hops[0][1]] if hops else []

    def _ways_from(self, source):
        """By tile, the link over which it is reached, and the estimated cycles to it."""
        if source in self._ways:
            return self._ways[source]
        times, via, done = {source: 0}, {}, set()
        while len(done) < len(times):
            tile = min(times.keys() - done, key=lambda tile: (times[tile], tile))
            done.add(tile)
            for link in self.system.links:
                if link.source == tile:
                    at = times[tile] + self.hop(link)
                    if at < times.get(link.target, at + 1):
                        times[link.target], via[link.target] = at, link
        if len(done) < self.system.tiles:
            missing = min(set(range(self.system.tiles)) - done)
            raise CompileError(f"Decoder needs a way over links from tile {source} to tile "
                               f"{missing}: use another topology")
        self._ways[source] = via, times
        return self._ways[source]

    def hop(self, link):
        """Cycles from the SEND or RECV that puts a vector on ``link`` to the RECV at its end."""
        cfg = self.cfg
        return link.latency + cfg.port(link.source_port).flits(cfg.lanes) + \
            rules(cfg).arrival_to_recv

    def away(self, source, target):
        """Estimated cycles that a vector of four streams takes from SRAM of one tile to SRAM of
        another."""
        if source == target:
            return 0
        cfg = self.cfg
        across = max(cfg.hops(mem, "c2c") for mem in cfg.slices("mem"))
        flits = max(cfg.port(link.source_port).flits(cfg.lanes) for link in self.system.links)
        return self._ways_from(source)[1][target] + 3 * flits + 2 * across + \
            rules(cfg).write_to_read
