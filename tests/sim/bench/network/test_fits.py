"""Lines through measured cycles, and what is read from them."""

import pytest

from sim.bench.network.fits import catches_up, fit, slower_with_more


def test_a_line_is_found_with_its_residual():
    found = fit([64, 128, 512, 1024], [30 + 8, 30 + 16, 30 + 64, 30 + 128])
    assert found.first == pytest.approx(30) and found.rate == pytest.approx(8)
    assert found.residual == pytest.approx(0, abs=1e-9)
    assert fit([64, 128, 512, 1024], [38, 46, 97, 158]).residual > 1


@pytest.mark.parametrize(("mine", "found"), [
    ([20, 21, 31, 40], 2), ([10, 21, 31, 40], 1), ([20, 30, 40, 50], None),
    ([10, 20, 30, 50], None)])
def test_where_one_catches_up(mine, found):
    assert catches_up([1, 2, 3, 4], mine, [10, 20, 30, 40], 0.1) == found


@pytest.mark.parametrize(("cycles", "found"), [
    ({1: 100, 2: 60, 4: 40, 8: 30}, None), ({8: 45, 4: 40, 1: 100, 2: 60}, 8),
    ({1: 100, 2: 120, 4: 90}, 2), ({1: 100, 2: 100}, 2)])
def test_where_more_tiles_are_no_faster(cycles, found):
    assert slower_with_more(cycles) == found
