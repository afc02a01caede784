import pytest

from sim.bench.context import misses


def row(capacity, cycles, tiles=1, ok=True):
    return {"tiles": tiles, "capacity": capacity, "cycles": cycles, "ok": ok,
            "verdict": "DIFFERENT bits"}


@pytest.mark.parametrize(("rows", "messages"), [
    ([row(128, 100), row(1024, 799), row(8192, 799 * 7)], []),
    ([row(128, 100), row(1024, 800)], ["1024 positions on 1 tiles: 8.00x the cycles of an eighth"]),
    ([row(128, 100), row(1024, 900, tiles=4)], []),
    ([row(128, 100, ok=False)], ["128 positions on 1 tiles: DIFFERENT bits"]),
])
def test_bars(rows, messages):
    assert misses(rows) == messages
