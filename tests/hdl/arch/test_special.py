import hashlib

import numpy as np
import pytest

from hdl.arch import special
from hdl.arch.special import Segment, coefficients

C0, C1, C2 = np.array(coefficients(), np.int64).T

FUNCTIONS = {
    Segment.EXP2: np.exp2,
    Segment.RECIP: lambda g: 2 / (1 + g),
    Segment.RSQRT_EVEN: lambda g: 2 / np.sqrt(1 + g),
    Segment.RSQRT_ODD: lambda g: 2 / np.sqrt(2 * (1 + g)),
}


def steps(row, d):
    """t, s, u and p of the specification."""
    t = (C2[row] * d) >> special.T_SHIFT
    s = (C1[row] + t) >> special.S_SHIFT
    u = (s * d) >> special.U_SHIFT
    return t, s, u, (C0[row] + u) >> special.P_SHIFT


def arguments(stride):
    """Every ``stride``-th argument g of a segment, and both ends of every interval."""
    inside = np.arange(0, 1 << special.G_BITS, stride)
    starts = np.arange(1 << special.INDEX_BITS) << special.D_BITS
    return np.concatenate([inside, starts, starts + (1 << special.D_BITS) - 1])


def row_and_distance(segment, g):
    row = (int(segment) << special.INDEX_BITS) + (g >> special.D_BITS)
    return row, (g & (1 << special.D_BITS) - 1) - (1 << special.D_BITS - 1)


def fits(values, bits, *, signed):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return low <= values.min() and values.max() <= high


def test_table_is_the_one_that_binaries_and_measurements_rely_on():
    text = repr([tuple(row) for row in coefficients()])
    assert hashlib.sha256(text.encode()).hexdigest() == (
        "5ac3544114f1b092fd4a4865a5ecfc35dac99f50f2ebeff15bb21bad82478134")


def test_coefficients_have_the_widths_of_the_specification():
    assert len(coefficients()) == special.ROWS == 512
    assert fits(C0, special.C0_BITS, signed=False)
    assert fits(C1, special.C1_BITS, signed=True)
    assert fits(C2, special.C2_BITS, signed=False)


@pytest.mark.parametrize("segment", Segment)
def test_rows_are_value_slope_and_half_curvature_at_the_middle(segment):
    f = FUNCTIONS[segment]
    middle = (np.arange(1 << special.INDEX_BITS) + 0.5) / (1 << special.INDEX_BITS)
    rows = slice(segment * 128, segment * 128 + 128)
    h = 1e-4
    slope = (f(middle + h) - f(middle - h)) / (2 * h)
    curvature = (f(middle + h) + f(middle - h) - 2 * f(middle)) / (2 * h * h)
    # the additions are half a unit of what is dropped later
    np.testing.assert_allclose(C0[rows] - 8, f(middle) * 2**27, atol=0.6)
    # divided differences over an interval: off by f''' / 6 * r**2 and f'''' / 24 * r**2
    np.testing.assert_allclose(C1[rows] - 8, slope * 2**20, atol=2 * 2**20 * (111 / 2**15)**2 + 1)
    np.testing.assert_allclose(C2[rows], curvature * 2**12, atol=2 * 2**12 * (111 / 2**15)**2 + 1)


@pytest.mark.parametrize("segment", Segment)
@pytest.mark.parametrize("stride", [97, pytest.param(1, marks=pytest.mark.slow)])
def test_every_step_has_its_width_and_p_is_within_a_unit(segment, stride):
    g = arguments(stride)
    t, s, u, p = steps(*row_and_distance(segment, g))
    assert fits(t, 14, signed=True)
    assert fits(s, special.S_BITS, signed=True)
    assert fits(u, 22, signed=True)
    assert 2**23 <= p.min() and p.max() <= 2**24
    error = p / 2**23 - FUNCTIONS[segment](g / 2**special.G_BITS)
    assert np.abs(error).max() < 2**-23


def test_ends_that_must_be_exact():
    for segment, p in [(Segment.EXP2, 2**23), (Segment.RECIP, 2**24), (Segment.RSQRT_EVEN, 2**24)]:
        row, d = row_and_distance(segment, np.array([0]))
        assert steps(row, d)[3] == p
