"""Counting and naming of differences."""

import numpy as np
import pytest

from hdl.arch import isa
from hdl.arch.binary import SystemBinary, TileBinary
from hdl.arch.encoding import crc16, encode
from hdl.arch.presets import NANO
from hdl.arch.queues import queue_index
from hdl.arch.timing import timing
from hdl.arch.trace import pack_index
from sim.conformance import CYCLES, compare
from sim.events import Events, no_events
from tests.sim.conformance.tables import arrivals, issues, random_events, writes

READ = encode(NANO, "mem_read", "READ", address=3, east_en=1, east=2)
WRITE = encode(NANO, "mem_write", "WRITE", address=9, source=2, source_last=1)
ABC = encode(NANO, "mxm_act", "ABC", accumulator=1, activation=2, source=1)
BINARY = SystemBinary([TileBinary(), TileBinary(words={
    "mem1.read": [READ], "mem2.write": [WRITE], "mxm0.act": [ABC]})])


def crc(kind, word):
    return crc16(word, isa.word_bytes(NANO, kind))


def issue(cycle, queue, kind, word, *indices):
    return (cycle, 1, queue_index(NANO)[queue], crc(kind, word), pack_index(NANO, kind, indices))


READ_ISSUE = issue(12, "mem1.read", "mem_read", READ, 3)
WRITE_ISSUE = issue(15, "mem2.write", "mem_write", WRITE, 9)
BASE = Events(issues(READ_ISSUE, WRITE_ISSUE),
              writes(NANO, (15 + timing(NANO)["mem_write", "WRITE"].t_d, 1, 2, 9, 0xAB)),
              arrivals(NANO, (30, 0, 0, 0xCD)))


def first(expected, observed, payload=None):
    found = compare(NANO, expected, observed, binary=BINARY, **({"payload": payload} if payload
                                                                else {}))
    return str(found.first)


def test_summary_line():
    events = Events(np.zeros(412_318, BASE.issues.dtype), np.zeros(38_400, BASE.writes.dtype),
                    np.zeros(9_216, BASE.arrivals.dtype))
    for table in events:
        table["cycle"] = np.arange(len(table))
    found = compare(NANO, events, events)
    assert found.ok
    assert found.first is None
    assert found.summary() == (
        "conformance: 412,318 of 412,318 planned instructions, 9,216 link vectors, "
        "38,400 SRAM writes; 0 missing, 0 unplanned, 0 off-cycle, 0 wrong")


def test_summary_line_with_every_kind_of_difference():
    expected = Events(issues((1, 0, 0, 1, 0), (2, 0, 0, 2, 0), (3, 0, 0, 3, 0)),
                      writes(NANO, (1, 0, 0, 5, 0), (2, 0, 0, 6, 0)), arrivals(NANO, (1, 0, 0, 0)))
    observed = Events(issues((1, 0, 0, 1, 0), (4, 0, 0, 2, 0)),
                      writes(NANO, (1, 0, 0, 5, 0), (2, 0, 0, 6, 1)),
                      arrivals(NANO, (1, 0, 0, 0), (2, 0, 1, 0), (2, 0, 0, 7)))
    found = compare(NANO, expected, observed)
    assert not found.ok
    assert found.faults == 5
    assert found.summary() == (
        "conformance: 1 of 3 planned instructions, 1 link vectors, 1 SRAM writes; "
        "1 missing, 2 unplanned, 1 off-cycle, 1 wrong")


def test_late_issue():
    assert first(BASE, BASE._replace(issues=issues((13, *READ_ISSUE[1:]), WRITE_ISSUE))) == (
        "tile 1, mem1.read, cycle 12, READ: expected `read address=3 east_en=1 east=2` with "
        "address 3 at cycle 12, observed `read address=3 east_en=1 east=2` with address 3 at "
        "cycle 13 (off-cycle)")


def test_missing_and_unplanned_issue():
    without = BASE._replace(issues=issues(WRITE_ISSUE))
    text = "`read address=3 east_en=1 east=2` with address 3 at cycle 12"
    assert first(BASE, without) == (
        f"tile 1, mem1.read, cycle 12, READ: expected {text}, observed nothing (missing)")
    assert first(without, BASE) == (
        f"tile 1, mem1.read, cycle 12, READ: expected nothing, observed {text} (unplanned)")


def test_word_that_no_program_has():
    other = issues((*READ_ISSUE[:3], READ_ISSUE[3] ^ 1, READ_ISSUE[4]), WRITE_ISSUE)
    assert f"observed a word with CRC {READ_ISSUE[3] ^ 1:#06x} with address 3 at cycle 12 (wrong)" \
        in first(BASE, BASE._replace(issues=other))
    # Where the expected side does not know it, the observed side may.
    assert ", READ: expected a word with CRC" in first(BASE._replace(issues=other), BASE)


def test_other_index_shows_both():
    row = issue(12, "mxm0.act", "mxm_act", ABC, 1, 2)
    other = issue(12, "mxm0.act", "mxm_act", ABC, 1, 3)
    text = first(no_events(NANO)._replace(issues=issues(row)),
                 no_events(NANO)._replace(issues=issues(other)))
    assert text.startswith("tile 1, mxm0.act, cycle 12, ABC: ")
    assert "with accumulator 1 and activation 2 at cycle 12, observed" in text
    assert "with accumulator 1 and activation 3 at cycle 12 (wrong)" in text


def test_write_is_named_by_the_instruction_behind_it():
    changed = BASE.writes.copy()
    changed["data"][0, 2] = 0xAC
    assert first(BASE, BASE._replace(writes=changed)) == (
        "tile 1, mem2.write, cycle 16, WRITE: expected word 9 data abababab at cycle 16, "
        "observed word 9 data ababacab at cycle 16 (wrong)")


def test_missing_write_of_a_plan():
    plan = BASE._replace(writes=BASE.writes[["cycle", "tile", "unit", "address"]],
                         arrivals=BASE.arrivals[["cycle", "tile", "unit"]])
    assert first(plan, BASE._replace(writes=BASE.writes[:0]), CYCLES) == (
        "tile 1, mem2.write, cycle 16, WRITE: expected word 9 at cycle 16, observed nothing "
        "(missing)")
    assert first(plan, BASE._replace(arrivals=BASE.arrivals[:0]), CYCLES) == (
        "tile 0, link0, cycle 30, arrival: expected a vector at cycle 30, observed nothing "
        "(missing)")


def test_late_arrival():
    assert first(BASE, BASE._replace(arrivals=arrivals(NANO, (31, 0, 0, 0xCD)))) == (
        "tile 0, link0, cycle 30, arrival: expected data cdcdcdcd at cycle 30, "
        "observed data cdcdcdcd at cycle 31 (off-cycle)")


def test_first_is_where_the_sides_part():
    # An early event comes before what it overtakes, although it was planned behind it.
    expected = issues((10, 0, 0, 1, 0), (20, 0, 0, 2, 0), (5, 0, 7, 9, 9))
    observed = issues((11, 0, 0, 1, 0), (8, 0, 0, 2, 0), (5, 0, 7, 9, 9))
    found = compare(NANO, no_events(NANO)._replace(issues=expected),
                    no_events(NANO)._replace(issues=observed))
    assert found.first.cycle == 20
    assert [difference.cycle for difference in found.differences(5)] == [20, 10]


def test_issue_comes_before_the_write_of_its_cycle():
    events = Events(issues((7, 1, 0, 1, 0)), writes(NANO, (7, 0, 0, 1, 0)),
                    arrivals(NANO, (7, 0, 0, 0)))
    found = compare(NANO, events, no_events(NANO))
    assert [difference.kind for difference in found.differences(9)] == [
        "issues", "writes", "arrivals"]


def test_units_that_do_not_exist_are_reported_as_they_are():
    odd = no_events(NANO)._replace(issues=issues((1, 9, 99, 5, 6)),
                                   writes=writes(NANO, (2, 9, 99, 5, 6)))
    found = compare(NANO, no_events(NANO), odd, binary=BINARY)
    assert [(d.tile, d.queue, d.category) for d in found.differences(9)] == [
        (9, "issues port 99", "unplanned"), (9, "writes port 99", "unplanned")]


@pytest.mark.parametrize("kind", ["issues", "writes", "arrivals"])
def test_first_difference_is_the_earliest_of_many(rng, kind):
    events = random_events(rng, NANO, 500)
    table = getattr(events, kind)
    removed = rng.choice(len(table), 20, replace=False)
    observed = events._replace(**{kind: np.delete(table, removed)})
    found = compare(NANO, events, observed, binary=BINARY)
    assert found.counts == {"missing": 20, "unplanned": 0, "off_cycle": 0, "wrong": 0}
    assert found.first.cycle == table["cycle"][removed].min()
    assert [d.cycle for d in found.differences(100)] == sorted(table["cycle"][removed])
