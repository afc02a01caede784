"""Matching of event tables: every kind of difference, mixtures, random mutations."""

import time

import numpy as np
import pytest

from hdl.arch.presets import DEMO, NANO
from sim.conformance import ConformanceError, match
from sim.conformance.compare import BITS, CYCLES
from tests.sim.conformance.tables import (
    arrivals,
    issues,
    plain_counts,
    random_events,
    writes,
)

ISSUE_BITS = BITS["issues"]


def counts(found):
    return {"equal": found.equal, "wrong": len(found.wrong), "off_cycle": len(found.off_cycle),
            "missing": len(found.missing), "unplanned": len(found.unplanned)}


def issue_counts(expected, observed):
    found = counts(match(issues(*expected), issues(*observed), ISSUE_BITS))
    return {name: number for name, number in found.items() if number}


BASE = [(10, 0, 1, 0xAAAA, 5), (11, 0, 1, 0xBBBB, 6), (12, 1, 1, 0xCCCC, 7), (12, 0, 2, 0xDDDD, 8)]


def test_equal_tables_differ_in_nothing():
    assert issue_counts(BASE, BASE) == {"equal": 4}


def test_order_within_a_table_does_not_matter():
    assert issue_counts(BASE, BASE[::-1]) == {"equal": 4}


def test_empty_tables():
    assert issue_counts([], []) == {}
    assert issue_counts(BASE, []) == {"missing": 4}
    assert issue_counts([], BASE) == {"unplanned": 4}


@pytest.mark.parametrize(("changed", "found"), [
    ((13, 0, 1, 0xBBBB, 6), {"equal": 3, "off_cycle": 1}),                  # later
    ((9, 0, 1, 0xBBBB, 6), {"equal": 3, "off_cycle": 1}),                   # overtakes another
    ((-3, 0, 1, 0xBBBB, 6), {"equal": 3, "off_cycle": 1}),                  # before the start
    ((11, 0, 1, 0xBBBC, 6), {"equal": 3, "wrong": 1}),
    ((11, 0, 1, 0xBBBB, 7), {"equal": 3, "wrong": 1}),
    ((11, 0, 2, 0xBBBB, 6), {"equal": 3, "missing": 1, "unplanned": 1}),    # other queue
    ((11, 1, 1, 0xBBBB, 6), {"equal": 3, "missing": 1, "unplanned": 1}),    # other tile
    ((14, 0, 1, 0xBBBB, 9), {"equal": 3, "missing": 1, "unplanned": 1}),    # cycle and payload
])
def test_one_changed_event(changed, found):
    assert issue_counts(BASE, [BASE[0], changed, *BASE[2:]]) == found


def test_event_shifted_onto_the_cycle_of_another():
    # The payload that belongs there is matched, whichever comes first in the table.
    expected = [(10, 0, 1, 1, 0), (11, 0, 1, 2, 0)]
    assert issue_counts(expected, [(11, 0, 1, 1, 0), (11, 0, 1, 2, 0)]) == {
        "equal": 1, "off_cycle": 1}
    assert issue_counts(expected, [(11, 0, 1, 2, 0), (11, 0, 1, 1, 0)]) == {
        "equal": 1, "off_cycle": 1}


def test_swapped_payloads_are_wrong_twice():
    expected = [(10, 0, 1, 1, 0), (11, 0, 1, 2, 0)]
    assert issue_counts(expected, [(10, 0, 1, 2, 0), (11, 0, 1, 1, 0)]) == {"wrong": 2}


def test_duplicate_is_unplanned():
    assert issue_counts(BASE, [*BASE, BASE[1]]) == {"equal": 4, "unplanned": 1}
    assert issue_counts(BASE, [*BASE, (30, *BASE[1][1:])]) == {"equal": 4, "unplanned": 1}


def test_duplicate_in_the_expected_events_is_missing():
    assert issue_counts([*BASE, BASE[1]], BASE) == {"equal": 4, "missing": 1}


def test_dense_queue_shifted_by_one_with_distinct_payloads():
    # Equal cycle comes first: all but the ends are wrong, the ends have nothing in common.
    expected = [(cycle, 0, 0, 7, cycle) for cycle in range(10)]
    observed = [(cycle + 1, 0, 0, 7, cycle) for cycle in range(10)]
    assert issue_counts(expected, observed) == {"wrong": 9, "missing": 1, "unplanned": 1}


def test_dense_queue_shifted_by_one_with_one_payload():
    expected = [(cycle, 0, 0, 7, 0) for cycle in range(10)]
    observed = [(cycle + 1, 0, 0, 7, 0) for cycle in range(10)]
    assert issue_counts(expected, observed) == {"equal": 9, "off_cycle": 1}


def test_sparse_queue_shifted_by_one_is_off_cycle_once_each():
    expected = [(3 * cycle, 0, 0, 7, cycle % 2) for cycle in range(10)]
    observed = [(3 * cycle + 1, 0, 0, 7, cycle % 2) for cycle in range(10)]
    assert issue_counts(expected, observed) == {"off_cycle": 10}


def test_off_cycle_events_are_paired_in_order():
    expected = issues((10, 0, 0, 7, 0), (20, 0, 0, 7, 0), (30, 0, 0, 7, 0))
    observed = issues((31, 0, 0, 7, 0), (11, 0, 0, 7, 0), (21, 0, 0, 7, 0))
    found = match(expected, observed, ISSUE_BITS)
    cycles = [(found.expected["cycle"][e], found.observed["cycle"][o]) for e, o in found.off_cycle]
    assert sorted(cycles) == [(10, 11), (20, 21), (30, 31)]


def test_mixture_of_all_kinds():
    expected = [*BASE, (20, 0, 1, 1, 1), (30, 0, 1, 2, 2), (40, 0, 1, 3, 3)]
    observed = [*BASE, (21, 0, 1, 1, 1), (30, 0, 1, 2, 9), (50, 0, 1, 4, 4), (51, 0, 1, 5, 5)]
    assert issue_counts(expected, observed) == {
        "equal": 4, "off_cycle": 1, "wrong": 1, "missing": 1, "unplanned": 2}


def test_one_differing_lane_is_wrong_and_a_plan_does_not_look_at_data():
    expected = writes(NANO, (5, 0, 2, 17, 0x55), (6, 0, 2, 18, 0x55))
    observed = expected.copy()
    observed["data"][1, 3] ^= 1
    assert counts(match(expected, observed, BITS["writes"]))["wrong"] == 1
    plan = expected[["cycle", "tile", "unit", "address"]]
    assert counts(match(plan, observed, CYCLES["writes"])) == {
        "equal": 2, "wrong": 0, "off_cycle": 0, "missing": 0, "unplanned": 0}


def test_arrivals_of_a_plan_have_no_payload():
    expected = arrivals(NANO, (10, 0, 0, 1), (20, 0, 0, 2), (30, 0, 0, 3))
    observed = arrivals(NANO, (10, 0, 0, 9), (21, 0, 0, 9), (31, 0, 0, 9), (32, 0, 0, 9))
    found = counts(match(expected[["cycle", "tile", "unit"]], observed, CYCLES["arrivals"]))
    assert found == {"equal": 1, "wrong": 0, "off_cycle": 2, "missing": 0, "unplanned": 1}


def test_field_that_is_not_there_is_named():
    table = writes(NANO, (1, 0, 0, 2, 3))
    with pytest.raises(ConformanceError, match="Table of observed events has no field 'data'"):
        match(table, table[["cycle", "tile", "unit", "address"]], BITS["writes"])


def test_machines_of_other_lanes_are_refused():
    with pytest.raises(ConformanceError, match=r"has shape \(4,\) in the expected events, \(16,\)"):
        match(writes(NANO, (1, 0, 0, 2, 3)), writes(DEMO, (1, 0, 0, 2, 3)), BITS["writes"])


def test_span_beyond_a_key_is_refused():
    with pytest.raises(ConformanceError, match="Events span 4294967297 cycles"):
        match(issues((0, 0, 0, 0, 0)), issues((1 << 32, 0, 0, 0, 0)), ISSUE_BITS)
    far = issues((0, 65535, 65535, 1, 0), ((1 << 32) - 1, 65535, 65535, 1, 0), (0, 0, 0, 1, 0))
    assert match(far, far[::-1], ISSUE_BITS).equal == 3


@pytest.mark.parametrize("kind", ["issues", "writes", "arrivals"])
def test_agrees_with_matching_one_event_at_a_time(rng, kind):
    # Few cycles and values, so that duplicates, ties and equal payloads abound.
    for _ in range(60):
        tables = [getattr(random_events(rng, NANO, int(rng.integers(0, 40)), values=2), kind)
                  for _ in range(2)]
        for table in tables:
            table["cycle"] //= 3
            if "data" in table.dtype.names:
                table["data"][:, 1:] = 0
        payload = BITS[kind] if rng.random() < 0.5 else CYCLES[kind]
        assert counts(match(*tables, payload)) == plain_counts(*tables, payload)


def mutate(rng, table, kind):
    """A copy with one random mutation that changes what happened."""
    table = table.copy()
    i = rng.integers(len(table))
    what = rng.choice(["delete", "duplicate", "shift", "tile", "unit", "swap", *BITS[kind]])
    if what == "delete":
        return np.delete(table, i)
    if what == "duplicate":
        return np.insert(table, rng.integers(len(table)), table[i])
    if what == "shift":
        table["cycle"][i] += rng.choice([-1, 1]) * rng.integers(1, 1000)
    elif what in ("tile", "unit", "crc", "index", "address"):
        table[what][i] ^= 1 << int(rng.integers(12))
    elif what == "data":
        table["data"][i, rng.integers(table["data"].shape[1])] ^= 1 << int(rng.integers(8))
    else:
        field = BITS[kind][0]
        others = np.flatnonzero((table[field] != table[field][i]).reshape(len(table), -1).any(1))
        j = rng.choice(others)
        table[field][[i, j]] = table[field][[j, i]]
    return table


@pytest.mark.parametrize("kind", ["issues", "writes", "arrivals"])
def test_any_single_mutation_is_reported(rng, kind):
    table = getattr(random_events(rng, NANO, 5000), kind)
    for _ in range(150):
        changed = mutate(rng, table, kind)
        for sides in ((table, changed), (changed, table)):
            assert 1 <= match(*sides, BITS[kind]).faults <= 2
    assert match(table, rng.permutation(table), BITS[kind]).faults == 0


def test_a_million_events_take_about_a_second(rng):
    count = 1_000_000
    table = np.zeros(count, random_events(rng, DEMO, 1).writes.dtype)
    table["cycle"] = np.arange(count) // 30
    table["unit"] = np.arange(count) % 30
    table["data"] = rng.integers(0, 256, (count, DEMO.lanes))
    shuffled = rng.permutation(table)
    shuffled["cycle"][::100] += 1_000_000
    start = time.process_time()
    found = match(table, shuffled, BITS["writes"])
    assert time.process_time() - start < 5     # ten times what it takes on an idle machine
    assert counts(found) == {"equal": 990_000, "off_cycle": 10_000, "wrong": 0, "missing": 0,
                             "unplanned": 0}
