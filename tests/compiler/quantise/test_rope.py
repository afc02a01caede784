import numpy as np
import pytest

from compiler.quantise.graph import ROPE_LOW
from compiler.quantise.rope import rope_tables
from tests.compiler.small_models import full


@pytest.mark.parametrize(("positions", "rows"), [(1, 1), (16, 1), (17, 2), (250, 16)])
def test_levels_cover_the_positions(positions, rows):
    rope = rope_tables(full(), positions, lanes=1)
    assert rope.cos_low.shape == rope.sin_low.shape == (ROPE_LOW, 20)
    assert rope.cos_high.shape == rope.sin_high.shape == (rows, 20)
    assert all(getattr(rope, f"{f}_{level}").dtype == np.float32
               for f in ("cos", "sin") for level in ("low", "high"))


def test_rows_are_the_angles_of_their_level():
    rope = rope_tables(full(rope_theta=100.0, rope_pairs=2), 64, lanes=1)
    # pair 1 turns by 100 ** (-2 / 20) = 0.63096 rad per position
    np.testing.assert_allclose(rope.cos_low[3, [1, 11]], np.cos(3 * 0.6309573), atol=1e-6)
    np.testing.assert_allclose(rope.sin_low[3, 11], np.sin(3 * 0.6309573), atol=1e-6)
    np.testing.assert_allclose(rope.sin_low[3, 1], -np.sin(3 * 0.6309573), atol=1e-6)
    np.testing.assert_allclose(rope.cos_high[2, 0], np.cos(32), atol=1e-6)
    np.testing.assert_array_equal(rope.cos_high[:, 2:10], 1)
    np.testing.assert_array_equal(rope.sin_high[:, 2:10], 0)


def test_what_is_left_over_of_a_head_does_not_rotate():
    natural, padded = (rope_tables(full(rope_pairs=10), 64, lanes) for lanes in (1, 16))
    places = [*range(10), *range(16, 26)]       # 20 elements: halves of 10 in two vectors of 16
    rest = sorted(set(range(32)) - set(places))
    for name in ("cos_low", "sin_low", "cos_high", "sin_high"):
        np.testing.assert_array_equal(getattr(padded, name)[:, places], getattr(natural, name))
        np.testing.assert_array_equal(getattr(padded, name)[:, rest], name.startswith("cos"))
