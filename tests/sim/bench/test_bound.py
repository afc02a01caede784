"""What misses a bar of `bench bound` is said, and nothing else."""

from sim.bench.bound import misses


def _row(tiles, cycles, schedule=900, model=None, barrier=None):
    return {"tiles": tiles, "topology": "all_to_all", "cycles": cycles, "schedule_bound": schedule,
            "model_bound": model or cycles, "barrier_cycles": barrier or 2 * cycles}


def test_rows_at_their_bars_pass():
    assert not misses([_row(1, 1000, 834, model=700), _row(2, 990, 825, barrier=1070),
                       _row(4, 980, 817, barrier=1059), _row(8, 970, 809, barrier=970)])


def test_each_bar_is_checked():
    rows = [_row(1, 1000, 833, model=699), _row(2, 1000, barrier=1079), _row(4, 900, 749)]
    assert [line.replace(", all_to_all", "") for line in misses(rows)] == [
        "1 tiles: 1.200x the schedule bound, at most 1.2",
        "1 tiles: model bound 0.699 of the cycles, at least 0.7",
        "2 tiles: with barriers 1.079x, at least 1.08",
        "4 tiles: 1.202x the schedule bound, at most 1.2",
        "2 tiles: 1,000 cycles, no fewer than 1"]
