"""Vector operations of the decoder: norms, factors, limbs.

fp32 vectors are lists of `At` of four slices, 16-bit vectors lists of (At, At): low and high limbs.
"""

from ..lower.chain import At, Chain, Entry
from .exchange import take
from .reductions import OrderedSum

__all__ = ["add_output", "keep_factor", "normed_limbs", "scaled", "scaled_limbs",
           "sum_of_squares", "times", "write_limbs"]


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


def scaled(chain, total, gain):
    """fp32 value of a sum times a gain."""
    return chain.alu("MUL", chain.acc(*total), chain.read(gain))
