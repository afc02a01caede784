"""Q, K and V of one layer on one tile: projected, normalised, turned by the step's angles."""

from ..lower.chain import Chain
from ..lower.product import Product
from .head_vectors import normed, normed_apart, rotated
from .vectors import scaled, times

__all__ = ["Projection"]


class Projection:
    """The heads that one tile projects; those of each kind are numbered from 0.

    Parameters
    ----------
    builder : Builder
    machine : Machine
    part : Partition
    place : TileLayers
    sequences : list of SequencePlaces
    rope : list of dict
        By sequence, ``cos`` and ``sin`` of its position: lists of At, one for each vector of a
        head.
    norms : (bool, bool)
        Whether the heads of Q and K, and those of V, are normalised by themselves.
    factors : list of (factor or None)
        By sequence: what multiplies those that are not, if anything does (`vectors.times`).

    Attributes
    ----------
    has_v : bool
        V has a matrix; otherwise it is made from the sums of K.
    blocks : int
        Blocks of weights of one head.
    """

    def __init__(self, builder, machine, part, place, sequences, rope, norms, factors):
        self._builder = builder
        self._machine = machine
        self._part = part
        self._place = place
        self._rope = rope
        self._own = dict(zip("qkv", (norms[0], *norms), strict=True))
        self._factors = factors
        self._together = part.vectors <= machine.vectors_together
        kept = set()
        vectors = [shared.limbs(place.tile, "normed") for shared in sequences]
        self._work = {name: Product(builder, f"tile {place.tile} {name}", place.matrices[name],
                                    vectors, kept=kept)
                      for name in ("k", "q", "v") if name in place.matrices}
        self._sums = {name: {} for name in self._work}
        self.has_v = "v" in self._work
        self.blocks = part.vectors * place.matrices["q"].k_blocks

    def project(self, kind, number):
        """Compute the sums of one head of Q, K or V, of all sequences."""
        readers = self._readers(kind)
        if kind == "k" and not self.has_v:
            readers += self._readers("v")
        for n in self._of_head(number):
            self._sums[kind][n] = self._work[kind].column(n, readers)

    def turned(self, kind, number, sequence, finish):
        """Q or K of one head, normed and turned; ``finish(chain, value, c)`` takes its vectors."""
        sums, gains = self._of(kind, number, sequence), self._vectors(f"{kind}_gain", number)
        self._normed(kind, number, sequence, sums, kind,
                     lambda chain, c: rotated(chain, self._machine, sums, gains,
                                              self._rope[sequence], c),
                     finish)

    def value(self, number, sequence, finish):
        """V of one head, normed; where it is made from a normalised K, so is its inverse RMS."""
        source = "v" if self.has_v else "k"
        sums, gains = self._of(source, number, sequence), self._vectors("v_gain", number)
        self._normed("v", number, sequence, sums, source if self._own["k"] else "v",
                     lambda chain, c: scaled(chain, sums[c], gains[c]), finish)

    def _readers(self, kind):
        """Clusters that read each sum of a head of Q, K or V."""
        if self._own[kind] and self._together:
            return 1
        partner = kind != "v" and self._part.vectors > 1        # of the rotation
        return 1 + partner + self._own[kind]

    def _of_head(self, number):
        """Vectors of head ``number`` in those of all heads of a kind."""
        return range(number * self._part.vectors, (number + 1) * self._part.vectors)

    def _of(self, kind, number, sequence):
        return [self._sums[kind][n][sequence] for n in self._of_head(number)]

    def _vectors(self, name, number):
        every = self._place.vector(name)
        return [every[n] for n in self._of_head(number)]

    def _normed(self, kind, number, sequence, sums, constants, value, finish):
        """Vectors of one head of Q, K or V times the factor of its norm, if any.

        Parameters
        ----------
        kind : str
        number, sequence : int
            Which head, and whose.
        sums : list of (str, int)
        constants : str
            Whose ``_scale`` and ``_eps`` the norm takes.
        value, finish : callable
            As of `attention.normed`.
        """
        builder, tile = self._builder, self._place.tile
        name = f"tile {tile} {kind.upper()} {number}"
        if not self._own[kind]:
            for c in range(len(sums)):
                chain = Chain(builder.cfg, f"{name}.{c}", tile)
                finish(chain, times(chain, value(chain, c), self._factors[sequence]), c)
                builder.add(chain.cluster())
            return
        scale, eps = self._vectors(f"{constants}_scale", number), self._place.eps(constants)
        if self._together:
            normed(builder, name, tile, sums, scale, eps, value, finish)
        else:
            normed_apart(builder, self._machine, name, tile, sums, scale, eps, value, finish)
