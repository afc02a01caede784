import numpy as np
import pytest

from compiler.quantise.heads import head_places, spread_heads


@pytest.mark.parametrize(("head_dim", "lanes", "size"), [
    (16, 16, 16), (32, 16, 32), (64, 16, 64), (8, 16, 16), (14, 16, 16), (18, 16, 32),
    (48, 16, 64), (80, 16, 96), (2, 4, 4), (6, 4, 8), (20, 1, 20),
])
def test_partners_of_a_rotation_lie_in_one_lane_or_half_the_lanes_apart(head_dim, lanes, size):
    found, places = head_places(head_dim, lanes)
    assert found == size and size % lanes == 0
    assert len(set(places)) == head_dim and max(places) < size
    low, high = places[:head_dim // 2], places[head_dim // 2:]
    np.testing.assert_array_equal(high - low, size // 2)
    if size > lanes > 1:
        np.testing.assert_array_equal(high % lanes, low % lanes)


def test_whole_vectors_stay_as_they_are():
    np.testing.assert_array_equal(head_places(32, 16)[1], np.arange(32))


def test_spread_heads_moves_each_head_and_leaves_zeros():
    values = np.arange(1, 13).reshape(2, 6)             # 2 rows of heads of 2, 4 lanes
    np.testing.assert_array_equal(spread_heads(values, 2, 4), [
        [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0], [7, 0, 8, 0, 9, 0, 10, 0, 11, 0, 12, 0]])
    np.testing.assert_array_equal(spread_heads(values.T, 2, 4, axis=0),
                                  spread_heads(values, 2, 4).T)
