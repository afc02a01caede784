"""The gated network of one layer on the columns of one tile."""

from ..lower.chain import Chain
from .attention import scaled
from .vectors import write_limbs

__all__ = ["gate"]


def gate(builder, name, tile, gates, ups, gate_scale, up_gain, beta, target):
    """tanh-GELU(gate) * up, as 16-bit inputs of the last matrix.

    With ``t = gate * gate_scale``: ``t * up * recip(1 + exp2((t * t + beta) * t))``, in the order
    of
    ``docs/numerics.md``.

    Parameters
    ----------
    gates, ups : list of (str, int)
        MXM and accumulator of each vector.
    gate_scale, up_gain : list of At
    beta : float
    target : list of (At, At)
    """
    for c, limbs in enumerate(target):
        chain = Chain(builder.cfg, f"{name} {c}", tile)
        value = scaled(chain, gates[c], gate_scale[c])
        value = chain.alu("ADD", chain.alu("MUL", value, value), beta)
        value = chain.alu("MUL", value, scaled(chain, gates[c], gate_scale[c]))
        value = chain.alu("RECIP", chain.alu("ADD", chain.alu("EXP2", value), 1.0))
        again = scaled(chain, gates[c], gate_scale[c])
        if gates[c][0] == ups[c][0]:
            again = chain.alu("PASS", again)        # one sum of an MXM after the other
        product = chain.alu("MUL", again, scaled(chain, ups[c], up_gain[c]))
        write_limbs(chain, chain.alu("MUL", product, value), limbs)
        builder.add(chain.cluster())
