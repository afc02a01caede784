"""The gated network of one layer on the columns of one tile."""

from ..lower.chain import Chain, Entry
from .attention import scaled
from .vectors import write_limbs

__all__ = ["gate"]


def gate(builder, machine, name, tile, gate_sum, up_sum, gate_scale, up_gain, beta, target):
    """One vector of tanh-GELU(gate) * up, as 16-bit input of the last matrix.

    With ``t = gate * gate_scale``: ``t * up * recip(1 + exp2((t * t + beta) * t))``, in the order
    of
    ``docs/numerics.md``.

    Parameters
    ----------
    gate_sum, up_sum : (str, int)
        MXM and accumulator.
    gate_scale, up_gain : At
    beta : float
    target : (At, At)
    """
    alu, entry = machine.plain_factor(tile)
    t = Entry(entry)
    chain = Chain(builder.cfg, name, tile)
    value = chain.alu("MUL", chain.acc(*gate_sum), chain.read(gate_scale), on=alu, keep=entry)
    value = chain.alu("ADD", chain.alu("MUL", value, value), beta)
    value = chain.alu("EXP2", chain.alu("MUL", value, t, on=alu))
    sigmoid = chain.alu("RECIP", chain.alu("ADD", value, 1.0))
    product = chain.alu("MUL", scaled(chain, up_sum, up_gain), t, on=alu)
    write_limbs(chain, chain.alu("MUL", product, sigmoid), target)
    builder.add(chain.cluster())
