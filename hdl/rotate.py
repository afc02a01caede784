"""Rotation of a row of equally wide elements."""

from amaranth.hdl import Cat, Signal, Value
from amaranth.utils import exact_log2

__all__ = ["rotate_left"]


def rotate_left(m, name, elements, amount):
    """Element ``(i - amount) % n`` of ``elements`` at place ``i``, as one flat value.

    Parameters
    ----------
    m : Module
        Gets the signals ``<name>_<k>``, one for each bit of ``amount``.
    elements : list of values
        A power of two of them, all of one width.
    amount : value
        Taken modulo their number.
    """
    count, width = len(elements), len(elements[0])
    flat = Cat(elements)
    for k in range(exact_log2(count)):
        turned = Signal(len(flat), name=f"{name}_{k}")
        m.d.comb += turned.eq(flat)
        with m.If(Value.cast(amount)[k]):
            m.d.comb += turned.eq(flat.rotate_left(width << k))
        flat = turned
    return flat
