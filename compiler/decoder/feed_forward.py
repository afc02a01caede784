"""The gated network of one layer on the columns of one tile."""

from compiler.quantise.graph import GELU_BETA

from ..lower.chain import Chain, Entry
from .vectors import scaled, write_limbs

__all__ = ["Gate"]

#: Entry of the ALU that keeps the norm's factor, where it comes late; the others keep ``t``.
_FACTOR = 3


class Gate:
    """Activation(gate) * up, vector by vector, as 16-bit inputs of the last matrix.

    With ``t = gate * gate_scale``: ``t * up * recip(1 + exp2(z))`` with ``z = (t * t + beta) * t``
    for tanh-GELU, ``t`` for SiLU, in the order of ``docs/numerics.md``.

    Parameters
    ----------
    builder : Builder
    machine : Machine
    name : str
    tile : int
    activation : str
        As of `QuantisedModel`.
    """

    def __init__(self, builder, machine, name, tile, activation):
        self._builder = builder
        self._name = name
        self._tile = tile
        self._cubic = activation == "gelu_tanh"
        self._alu, _ = machine.plain_factor(tile)
        self._count = 0

    def keep_factor(self, chain, total):
        """rsqrt of ``total``, a value of ``chain``, as a ``factor`` of `add`."""
        chain.alu("PASS", chain.alu("RSQRT", total), on=self._alu, keep=_FACTOR)
        self._builder.add(chain.cluster())
        return Entry(_FACTOR)

    def add(self, gate_sum, up_sum, gate_scale, up_gain, target, factor=None):
        """Compute the next vector.

        Parameters
        ----------
        gate_sum, up_sum : (str, int)
            MXM and accumulator.
        gate_scale, up_gain : At
        target : (At, At)
        factor : Entry or At, optional
            What multiplies ``t`` and ``up``, where the norm's factor comes late.
        """
        chain = Chain(self._builder.cfg, f"{self._name} {self._count}", self._tile)
        entry = self._count % _FACTOR
        self._count += 1
        if factor is None:
            value = chain.alu("MUL", chain.acc(*gate_sum), chain.read(gate_scale), on=self._alu,
                              keep=entry)
        else:
            value = chain.alu("MUL", scaled(chain, gate_sum, gate_scale),
                              self._operand(chain, factor), on=self._alu, keep=entry)
        if self._cubic:
            value = chain.alu("ADD", chain.alu("MUL", value, value), float(GELU_BETA))
            value = chain.alu("MUL", value, Entry(entry), on=self._alu)
        value = chain.alu("EXP2", value)
        sigmoid = chain.alu("RECIP", chain.alu("ADD", value, 1.0))
        up = scaled(chain, up_sum, up_gain)
        if factor is not None:
            up = chain.alu("MUL", up, self._operand(chain, factor),
                           on=self._alu if isinstance(factor, Entry) else None)
        product = chain.alu("MUL", up, Entry(entry), on=self._alu)
        write_limbs(chain, chain.alu("MUL", product, sigmoid), target)
        self._builder.add(chain.cluster())

    @staticmethod
    def _operand(chain, factor):
        return factor if isinstance(factor, Entry) else chain.read(factor)
