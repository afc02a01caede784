"""CRC-16 as logic: what an issue event shows of its instruction word, and what closes a frame."""

from amaranth.hdl import Const, Signal

__all__ = ["CRC_START", "crc_value"]

#: CRC of no bytes.
CRC_START = 0xFFFF


def crc_value(m, word, count, crc=None):
    """`crc16` of ``count`` bytes of the value ``word``, added to module ``m``: a 16-bit value.

    ``crc`` is that of the bytes before, none by default.  Byte by byte, in a form for the
    polynomial 0x1021 that simulates several times faster than a parity for each bit.
    """
    crc = Const(CRC_START, 16) if crc is None else crc
    for i in range(count):
        mixed = Signal(8, name=f"crc_mixed_{i}")
        folded = Signal(8, name=f"crc_folded_{i}")
        after = Signal(16, name=f"crc_{i}")
        m.d.comb += [mixed.eq(crc[8:] ^ word[8 * i:8 * (i + 1)]), folded.eq(mixed ^ mixed >> 4),
                     after.eq(crc << 8 ^ folded << 12 ^ folded << 5 ^ folded)]
        crc = after
    return crc
