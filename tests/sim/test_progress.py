"""Progress lines."""

import io

from sim.progress import Progress


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
