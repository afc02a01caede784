"""Attention of one layer on the heads of one tile, as jobs of its MXMs.

Heads that share a KV head go together: projections of K and Q, projection of V, scores, mixing.
While the chain of one group is under way, the MXMs have the weights of others to load.
"""

from ..lower.chain import Chain
from ..lower.product import Product
from .attention import mix, normed, normed_apart, rotated, scaled, score, softmax
from .pacing import MIX, PROJECT, SCORE, VALUES
from .vectors import exchange, times, write_limbs

__all__ = ["Heads"]


class Heads:
    """The heads of one tile.

    Parameters
    ----------
    builder : Builder
    machine : Machine
    part : Partition
    place : TileLayers
    shared : SharedPlaces
    slots : int
        Of the KV caches.
    rope : dict
        ``cos`` and ``sin`` of the step: lists of At, one for each vector of a head.
    norms : (bool, bool)
        Whether the heads of Q and K, and those of V, are normalised by themselves.
    factor : (int, int) or None
        ALU and entry of what multiplies those that are not, if anything does.
    """

    def __init__(self, builder, machine, part, place, shared, slots, rope, norms, factor):
        self._builder = builder
        self._machine = machine
        self._part = part
        self._place = place
        self._shared = shared
        self._rope = rope
        self._own = dict(zip("qkv", (norms[0], *norms), strict=True))
        self._factor = factor
        self._together = part.vectors <= machine.vectors_together
        self._tile = place.tile
        self._scratch = shared.attention(place.tile, slots)
        kept = set()
        limbs = shared.limbs(place.tile, "normed")
        self._work = {name: Product(builder, f"tile {place.tile} {name}", place.matrices[name],
                                    limbs, kept=kept)
                      for name in ("k", "q", "v") if name in place.matrices}
        self._sums = {name: {} for name in self._work}

    def jobs(self, pace):
        """Jobs of all groups, and of them the one that makes each vector of the result.

        Parameters
        ----------
        pace : Pace

        Returns
        -------
        (list of Job, dict of int to Job)
        """
        part, found, makes = self._part, [], {}
        blocks = part.vectors * self._place.matrices["q"].k_blocks
        slots = part.vectors * self._place.keys[0].count
        for number, heads in enumerate(part.kv_heads(self._tile).values()):
            project = pace.job(self._tile, PROJECT, (1 + len(heads)) * blocks,
                               lambda n=number, h=heads: self._project(n, h))
            found.append(project)
            chosen = [project]
            if "v" in self._work:
                chosen.append(pace.job(self._tile, VALUES, blocks,
                                       lambda n=number: self._project_values(n)))
            scores = pace.job(self._tile, SCORE, slots, lambda n=number, h=heads: self._score(n, h),
                              [(project, pace.chain(8, 1))])
            mixed = pace.job(self._tile, MIX, slots, lambda n=number, h=heads: self._mix(n, h),
                             [(scores, pace.chain(8, 1)), (chosen[-1], pace.chain(6, 1))])
            found += [*chosen[1:], scores, mixed]
            for head in heads:
                for vector in range(part.vectors):
                    makes[head * part.vectors + vector] = mixed
        return found, makes

    def _first(self, head):
        """``head`` among the tile's."""
        return head - self._part.heads(self._tile).start

    def _of_head(self, number):
        """Vectors of head ``number`` in those of all heads of a tile."""
        return range(number * self._part.vectors, (number + 1) * self._part.vectors)

    def _columns(self, name, number, readers):
        for n in self._of_head(number):
            self._sums[name][n] = self._work[name].column(n, readers)

    def _readers(self, kind):
        """Clusters that read each sum of a head of Q, K or V."""
        if self._own[kind] and self._together:
            return 1
        partner = kind != "v" and self._part.vectors > 1        # of the rotation
        return 1 + partner + self._own[kind]

    def _of(self, name, number):
        return [self._sums[name][n] for n in self._of_head(number)]

    def _vectors(self, name, number):
        every = self._place.vector(name)
        return [every[n] for n in self._of_head(number)]

    def _project(self, number, heads):
        self._builder.operation = "K and Q projection"
        readers = self._readers("k")
        if "v" not in self._work:
            readers += self._readers("v")
        self._columns("k", number, readers)
        for head in heads:
            self._columns("q", self._first(head), self._readers("q"))
        if "v" not in self._work:
            self._value(number, "k")

    def _project_values(self, number):
        self._builder.operation = "V projection"
        self._columns("v", number, self._readers("v"))
        self._value(number, "v")

    def _normed(self, kind, number, sums, constants, value, finish):
        """Vectors of one head of Q, K or V times the factor of its norm, if any.

        Parameters
        ----------
        kind : str
        number : int
            Which head.
        sums : list of (str, int)
        constants : str
            Whose ``_scale`` and ``_eps`` the norm takes.
        value, finish : callable
            As of `attention.normed`.
        """
        builder, tile = self._builder, self._tile
        name = f"tile {tile} {kind.upper()} {number}"
        if not self._own[kind]:
            for c in range(len(sums)):
                chain = Chain(builder.cfg, f"{name}.{c}", tile)
                finish(chain, times(chain, value(chain, c), self._factor), c)
                builder.add(chain.cluster())
            return
        scale, eps = self._vectors(f"{constants}_scale", number), self._place.eps(constants)
        if self._together:
            normed(builder, name, tile, sums, scale, eps, value, finish)
        else:
            normed_apart(builder, self._machine, name, tile, sums, scale, eps, value, finish)

    def _value(self, number, source):
        """Value of one KV head into its cache; where V is made from a normalised K, so is its
        inverse RMS."""
        self._builder.operation = "values"
        sums, gains = self._of(source, number), self._vectors("v_gain", number)
        cache = self._place.values[number]
        self._normed("v", number, sums, source if self._own["k"] else "v",
                     lambda chain, c: scaled(chain, sums[c], gains[c]),
                     lambda chain, value, c: cache.append(chain, chain.alu("TO_INT8", value), c))

    def _score(self, number, heads):
        self._builder.operation = "keys and queries"
        cache = self._place.keys[number]
        self._turned("k", number,
                     lambda chain, value, c: cache.append(chain, chain.alu("TO_INT8", value), c))
        every = self._shared.limbs(self._tile, "query")
        for head in heads:
            limbs = [every[n] for n in self._of_head(self._first(head))]
            self._turned("q", self._first(head), lambda chain, value, c, limbs=limbs:
                         write_limbs(chain, value, limbs[c]))
        self._builder.operation = "scores"
        found = score(self._builder, f"tile {self._tile} KV head {number}", self._tile,
                      [[every[n] for n in self._of_head(self._first(head))] for head in heads],
                      cache)
        self._builder.operation = "softmax"
        for head, sums in zip(heads, found, strict=True):
            softmax(self._builder, self._machine, f"tile {self._tile} head {head}", self._tile,
                    sums, self._scratch, self._first(head))

    def _turned(self, kind, number, finish):
        """K or Q of one head, normed and turned by the step's angles."""
        sums, gains = self._of(kind, number), self._vectors(f"{kind}_gain", number)
        self._normed(kind, number, sums, kind,
                     lambda chain, c: rotated(chain, self._machine, sums, gains, self._rope, c),
                     finish)

    def _mix(self, number, heads):
        builder, tile, size = self._builder, self._tile, self._part.vectors
        builder.operation = "attention output"
        results = mix(builder, f"tile {tile} KV head {number}", tile,
                      [self._scratch["limbs"][self._first(head)] for head in heads],
                      self._place.values[number], size)
        for head, totals in zip(heads, results, strict=True):
            builder.operation = "attention output"
            gains = self._vectors("attended_gain", self._first(head))
            made = range(head * size, (head + 1) * size)
            for vector, total, gain in zip(made, totals, gains, strict=True):
                chain = Chain(builder.cfg, f"tile {tile} attended {vector}", tile)
                write_limbs(chain, scaled(chain, total, gain),
                            self._shared.limbs(tile, "attended")[vector])
                builder.add(chain.cluster())
            builder.operation = "exchange attended"
            exchange(builder, self._machine, "attended limbs", tile,
                     self._shared.limb_places("attended", made))
