"""From scores to 16-bit attention weights, head by head."""

from ..lower.chain import Chain, Entry
from .reductions import OrderedSum
from .vectors import write_limbs

__all__ = ["Softmax", "divide"]

#: What the 16-bit attention weights are fractions of (docs/numerics.md).
_WEIGHT_UNIT = 32639.0


class Softmax:
    """16-bit attention weights of one head from its scores, block by block.

    Parameters
    ----------
    scratch : dict
        By head: ``limits`` (list of At by block), ``weights`` (list of At, for fp32), ``limbs``
        (list of (At, At), the result), ``partials`` (list of At), ``factors`` (At, for
        `keep_factor`) and, if the sum of all weights is to be kept, ``totals`` (At); ``scale``
        (float).
    head : int
        Which of the tile's heads.
    blocks : int
    chunk : int
        Blocks after which another head may use the entries of the sum.
    taken : int
        Blocks that another one has taken before.
    """

    def __init__(self, builder, machine, name, tile, scratch, head, blocks, chunk, taken=0):
        self._builder = builder
        self._machine = machine
        self._name = name
        self._tile = tile
        self._scratch = scratch
        self._head = head
        spill = (chunk, blocks, scratch["partials"][head]) if chunk < blocks else None
        self._total = OrderedSum(builder, machine, name, tile, spill=spill, taken=taken)

    def add(self, block, score):
        """Take the score of the next block: MXM and accumulator."""
        chain = Chain(self._builder.cfg, f"{self._name} exp {block}", self._tile)
        value = chain.alu("MUL", chain.acc(*score), self._scratch["scale"])
        value = chain.alu("MIN", value, chain.read(self._scratch["limits"][self._head][block]))
        value = chain.alu("EXP2", value)
        chain.write(value, self._scratch["weights"][self._head][block])
        self._total.add(chain, value)
        self._builder.add(chain.cluster())

    def finish(self):
        """Divide by the sum; returns where that is kept, if it is."""
        chain, value, kept = self._total_kept()
        alu, entry = self._machine.factor(self._tile)
        chain.alu("MUL", chain.alu("RECIP", value), _WEIGHT_UNIT, on=alu, keep=entry)
        self._builder.add(chain.cluster())
        for block in range(len(self._scratch["weights"][self._head])):
            _divide(self._builder, self._name, self._tile, self._scratch, self._head, block, alu,
                    entry)
        return kept

    def _total_kept(self):
        """The sum as the end of a chain, its value, and where it is kept, if it is."""
        kept = self._scratch["totals"][self._head] if "totals" in self._scratch else None
        chain, value = self._total.total()
        if kept:
            chain.write(value, kept)
        return chain, value, kept

    def begin(self):
        """Let the words between chunks begin at +0, to which adding is exact."""
        for place in self._scratch["partials"][self._head]:
            chain = Chain(self._builder.cfg, f"{self._name} begin", self._tile)
            chain.write(chain.alu("PASS", 0.0), place)
            self._builder.add(chain.cluster())

    def keep_factor(self):
        """What the weights are to be multiplied by into its word; returns as `finish`."""
        chain, value, kept = self._total_kept()
        factor = chain.alu("MUL", chain.alu("RECIP", value), _WEIGHT_UNIT)
        chain.write(factor, self._scratch["factors"][self._head])
        self._builder.add(chain.cluster())
        return kept


def divide(builder, machine, name, tile, scratch, head, blocks):
    """16-bit weights of ``blocks`` of a head, by the word that `Softmax.keep_factor` wrote."""
    alu, entry = machine.factor(tile)
    chain = Chain(builder.cfg, f"{name} factor", tile)
    chain.alu("PASS", chain.read(scratch["factors"][head]), on=alu, keep=entry)
    builder.add(chain.cluster())
    for block in blocks:
        _divide(builder, name, tile, scratch, head, block, alu, entry)


def _divide(builder, name, tile, scratch, head, block, alu, entry):
    chain = Chain(builder.cfg, f"{name} weight {block}", tile)
    weight = chain.read(scratch["weights"][head][block])
    write_limbs(chain, chain.alu("MUL", weight, Entry(entry), on=alu),
                scratch["limbs"][head][block])
    builder.add(chain.cluster())
