"""Progress lines."""

import io

import numpy as np

from sim.progress import Progress, Stages, peak_memory


class Time:
    now = 100.0

    def __call__(self):
        return self.now


def progress(total=None):
    time, stream = Time(), io.StringIO()
    return Progress("RTL", total, stream=stream, clock=time), time, stream


def test_short_work_says_nothing():
    report, time, stream = progress()
    time.now += 1.9
    report(1000)
    report.done(2000)
    assert stream.getvalue() == ""


def test_long_work_says_how_fast_it_is_not_too_often():
    report, time, stream = progress(30_000)
    for _ in range(8):
        time.now += 1
        report(1000 * int(time.now - 100))
    report.done(9000)
    assert stream.getvalue().splitlines() == [
        "RTL: 2,000 of 30,000 cycles, 1,000 cycles/s, 2 s",
        "RTL: 7,000 of 30,000 cycles, 1,000 cycles/s, 7 s",
        "RTL: 9,000 cycles, 1,125 cycles/s, 8 s"]


def test_stages_are_said_once_a_second_with_time_and_memory():
    time, lines = Time(), []
    stages = Stages(lines.append, clock=time, memory=lambda: int(time.now))
    for number in range(6):
        stages(f"stage {number}")
        time.now += 0.4
    stages.done("compiled")
    assert lines == ["  1.2 s, 101 MB: stage 3", "compiled: 2.4 s, at most 102 MB of memory"]


def test_memory_is_the_most_there_ever_was():
    before = peak_memory()
    filled = np.ones(100_000_000 + before * 1_000_000, np.uint8)
    while_held = peak_memory()
    del filled
    assert while_held >= before + 100 and peak_memory() >= while_held
