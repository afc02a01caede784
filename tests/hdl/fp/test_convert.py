# amaranth: UnusedElaboratable=no
import pytest

from hdl.fp.convert import FpToInt, IntFormat, IntToFp
from tests.hdl.fp.harness import first_cycle, results
from tests.support import exact

EXPECTED = {
    IntFormat.INT32: exact.to_int32,
    IntFormat.INT8: exact.to_int8,
    IntFormat.LIMBS: exact.to_limbs,
}


def signed(x, bits):
    return x - (x >> (bits - 1) << bits)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("dut", [FpToInt, IntToFp])
def test_result_appears_after_depth_cycles(dut, depth):
    dut = dut(depth=depth)
    assert dut.depth == depth
    assert first_cycle(dut, {"a": 0}, {"a": exact.ONE}) == depth


@pytest.mark.parametrize("fmt", IntFormat)
def test_corners_to_integer(fmt):
    operands = [{"format": fmt, "a": a} for a in exact.CORNERS]
    assert results(FpToInt(), operands) == [EXPECTED[fmt](a) for a in exact.CORNERS]


@pytest.mark.parametrize("fmt", IntFormat)
def test_halves_and_their_neighbours_to_integer(fmt):
    halves = [exact.rounded(exact.Fraction(2 * whole + 1, 2)) for whole in (
        *range(-5, 5), *range(-131, -125), *range(125, 131), *range(254, 259),
        *range(-32642, -32636), *range(32636, 32642), *range(2**21 - 3, 2**21 + 3))]
    near = [half + step for half in halves for step in (-1, 0, 1)]
    operands = [{"format": fmt, "a": a} for a in near]
    assert results(FpToInt(), operands) == [EXPECTED[fmt](a) for a in near]


@pytest.mark.parametrize("fmt", IntFormat)
def test_every_exponent_to_integer(fmt):
    patterns = [sign | exponent << 23 | fraction for exponent in range(256)
                for sign in (0, exact.SIGN)
                for fraction in (0, 1, 0x2AAAAA, 0x400000, 0x7FFFFF)]
    operands = [{"format": fmt, "a": a} for a in patterns]
    assert results(FpToInt(), operands) == [EXPECTED[fmt](a) for a in patterns]


def test_every_limb_value():
    values = [*range(-32641, 32642, 97), *range(-300, 300)]
    patterns = [exact.rounded(exact.Fraction(value)) for value in values]
    operands = [{"format": IntFormat.LIMBS, "a": a} for a in patterns]
    for value, r in zip(values, results(FpToInt(), operands), strict=True):
        low, high = signed(r & 0xFF, 8), signed(r >> 8, 8)
        assert r >> 16 == 0
        assert high * 256 + low == min(max(value, -32639), 32639)


@pytest.mark.parametrize("depth", [1, 3, 8])
def test_other_depths_give_the_same_integers(depth, rng):
    patterns = [*exact.CORNERS, *rng.integers(0, 2**32, 300).tolist()]
    formats = [list(IntFormat)[i % len(IntFormat)] for i in range(len(patterns))]
    operands = [{"format": f, "a": a} for f, a in zip(formats, patterns, strict=True)]
    expected = [EXPECTED[f](a) for f, a in zip(formats, patterns, strict=True)]
    assert results(FpToInt(depth=depth), operands) == expected


@pytest.mark.parametrize("depth", [1, 6, 7])
def test_int32_corners_to_fp32(depth):
    operands = [{"a": signed(x, 32)} for x in exact.INT32_CORNERS]
    expected = [exact.from_int(x, 32) for x in exact.INT32_CORNERS]
    assert results(IntToFp(width=32, depth=depth), operands) == expected


@pytest.mark.parametrize("width", [2, 8, 24, 25, 26, 27, 40, 52, 64, 127])
def test_integers_of_any_width_to_fp32(width, rng):
    extremes = {sign * (1 << length) + step for sign in (-1, 1) for length in range(width)
                for step in (-2, -1, 0, 1, 2)}
    for length in range(25, width):         # ties and their neighbours at every length
        odd = int(rng.integers(2**23, 2**24)) | 1
        for step in (-1, 0, 1):
            extremes |= {(odd << 1 | 1) + step << length - 25,
                         ((odd << 1 | 1) << length - 25) + step}
    values = sorted(x for x in extremes if -(1 << width - 1) <= x < 1 << width - 1)
    operands = [{"a": x} for x in values]
    expected = [exact.from_int(x & (1 << width) - 1, width) for x in values]
    assert results(IntToFp(width=width), operands) == expected


def test_every_format_has_an_expectation():
    assert set(EXPECTED) == set(IntFormat)


@pytest.mark.parametrize("width", [1, 128, 32.0])
def test_width_is_checked(width):
    with pytest.raises(ValueError, match=f"Integer width must be 2 to 127 bits, not {width}"):
        IntToFp(width=width)


@pytest.mark.parametrize("dut", [FpToInt, IntToFp])
def test_depth_is_checked(dut):
    with pytest.raises(ValueError, match="Pipeline depth must be a positive integer, not 0"):
        dut(depth=0)
