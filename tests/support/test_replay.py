"""What counts as a difference between a simulation and its replay."""

from types import SimpleNamespace

import pytest

from tests.support.replay import differing

RECORDED = {"port__east_en": [0, 1, 0], "port__west_en": [0, 0, 1], "port__count_log2": [0, 0, 2],
            "port__data": [0x11, 0x22, 0x44332211], "faults": [0, 1, 0]}
WIDTHS = {"port__east_en": 1, "port__west_en": 1, "port__count_log2": 2, "port__data": 32,
          "faults": 4}


@pytest.mark.parametrize(("port", "cycle", "value", "counts"), [
    ("port__data", 0, 0x55, False),             # nothing is written
    ("port__data", 1, 0x55, True),
    ("port__data", 1, 0x5522, False),           # only the first vector is
    ("port__data", 2, 0x54332211, True),
    ("port__count_log2", 0, 1, False),
    ("port__count_log2", 1, 1, True),
    ("port__east_en", 0, 1, True),
    ("faults", 2, 8, True),
])
def test_only_what_is_enabled_counts(port, cycle, value, counts):
    recorder = SimpleNamespace(outputs=RECORDED, widths=WIDTHS)
    assert differing(recorder, RECORDED) == []
    changed = list(RECORDED[port])
    changed[cycle] = value
    assert differing(recorder, RECORDED | {port: changed}) == ([port] if counts else [])
