"""Hand-made and random tables of events."""

from collections import Counter, defaultdict

import numpy as np

from hdl.arch.trace import ISSUE, arrival_record, write_record
from sim.events import Events


def issues(*rows):
    """Table of issues from (cycle, tile, unit, crc, index)."""
    return np.array(list(rows), ISSUE)


def writes(cfg, *rows):
    """Table of writes from (cycle, tile, unit, address, byte): every lane holds the byte."""
    table = np.zeros(len(rows), write_record(cfg))
    for i, (*head, byte) in enumerate(rows):
        table[i] = (*head, [byte] * cfg.lanes)
    return table


def arrivals(cfg, *rows):
    """Table of arrivals from (cycle, tile, unit, byte)."""
    table = np.zeros(len(rows), arrival_record(cfg))
    for i, (*head, byte) in enumerate(rows):
        table[i] = (*head, [byte] * cfg.lanes)
    return table


def random_events(rng, cfg, count, *, tiles=2, values=1 << 16):
    """Events with distinct cycles within a queue; ``values`` bounds the payloads."""

    def places(units):
        queue = rng.integers(0, tiles * units, count)
        cycle = np.zeros(count, np.int64)
        for number in range(tiles * units):
            mine = queue == number
            cycle[mine] = rng.choice(2 * count, mine.sum(), replace=False)
        return cycle, queue // units, queue % units

    table_i = np.zeros(count, ISSUE)
    table_w = np.zeros(count, write_record(cfg))
    table_a = np.zeros(count, arrival_record(cfg))
    for table, units in ((table_i, 6), (table_w, 3), (table_a, 2)):
        table["cycle"], table["tile"], table["unit"] = places(units)
    table_i["crc"] = rng.integers(0, min(values, 1 << 16), count)
    table_i["index"] = rng.integers(0, values, count)
    table_w["address"] = rng.integers(0, values, count)
    for table in (table_w, table_a):
        table["data"] = rng.integers(0, min(values, 256), (count, cfg.lanes))
    return Events(table_i, table_w, table_a)


def plain_counts(expected, observed, payload):
    """Counts of the four categories and of equal events, one event at a time."""

    def rows(table):
        return [((int(row["tile"]), int(row["unit"])), int(row["cycle"]),
                 tuple(row[name].tobytes() for name in payload)) for row in table]

    left, right = rows(expected), rows(observed)
    equal = sum((Counter(left) & Counter(right)).values())
    rest_l, rest_r = (list((Counter(a) - Counter(b)).elements())
                      for a, b in ((left, right), (right, left)))
    wrong = 0
    for row in list(rest_l):
        partner = next((other for other in rest_r if other[:2] == row[:2]), None)
        if partner is not None:
            wrong += 1
            rest_l.remove(row)
            rest_r.remove(partner)
    waiting = defaultdict(int)
    for queue, _, value in rest_r:
        waiting[queue, value] += 1
    off_cycle = 0
    for queue, _, value in rest_l:
        if waiting[queue, value]:
            waiting[queue, value] -= 1
            off_cycle += 1
    return {"equal": equal, "wrong": wrong, "off_cycle": off_cycle,
            "missing": len(rest_l) - off_cycle, "unplanned": len(rest_r) - off_cycle}
