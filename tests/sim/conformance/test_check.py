"""Plan, emulator and RTL together."""

from dataclasses import replace

import numpy as np
import pytest

from hdl.arch.binary import SystemBinary, TileBinary
from hdl.arch.config import pair, single
from hdl.arch.errors import FAULT_MEANING, Fault
from hdl.arch.presets import NANO
from sim.conformance import ConformanceError, check
from sim.events import Events, FaultEvent, Observation, no_events
from tests.sim.conformance.tables import random_events

SYSTEM = pair(NANO)
BINARY = SystemBinary([TileBinary(), TileBinary()])


@pytest.fixture
def sides(rng):
    """Plan, emulator and RTL of one run that conforms."""
    events = random_events(rng, NANO, 200)
    plan = Events(events.issues, events.writes[["cycle", "tile", "unit", "address"]],
                  events.arrivals[["cycle", "tile", "unit"]])
    sram = [rng.integers(0, 256, (4, NANO.mem_words, NANO.lanes), np.uint8) for _ in range(2)]
    machine = Observation(events, sram=sram, faults=(0, 0))
    shuffled = Events(*(rng.permutation(table) for table in events))
    return {"plan": plan, "emulator": machine,
            "rtl": replace(machine, events=shuffled, sram=[tile.copy() for tile in sram])}


def changed(events, kind, name, row=0):
    """Events with one bit of one field of one event flipped."""
    table = getattr(events, kind).copy()
    if name == "data":
        table["data"][row, -1] ^= 0x80
    else:
        table[name][row] ^= 1
    return events._replace(**{kind: table})


ZERO = "0 missing, 0 unplanned, 0 off-cycle, 0 wrong"


def test_conforming_sides_give_one_line(sides):
    report = check(SYSTEM, BINARY, **sides)
    assert report.ok
    assert set(report.comparisons) == {("plan", "RTL"), ("plan", "emulator"), ("emulator", "RTL")}
    assert report.lines() == ["conformance: 200 of 200 planned instructions, 200 link vectors, "
                              f"200 SRAM writes; {ZERO}"]


@pytest.mark.parametrize(("side", "blamed"), [
    ("plan", ["plan and RTL", "plan and emulator"]),
    ("emulator", ["plan and emulator", "emulator and RTL"]),
    ("rtl", ["plan and RTL", "emulator and RTL"]),
])
def test_a_fault_of_one_side_counts_once_and_shows_in_both_of_its_pairs(sides, side, blamed):
    seen = sides[side]
    events = seen if side == "plan" else seen.events
    mutant = changed(events, "issues", "crc")
    sides[side] = mutant if side == "plan" else replace(seen, events=mutant)
    report = check(SYSTEM, BINARY, **sides)
    assert not report.ok
    lines = report.lines()
    assert lines[0] == ("conformance: 199 of 200 planned instructions, 200 link vectors, "
                        "200 SRAM writes; 0 missing, 0 unplanned, 0 off-cycle, 1 wrong")
    assert [line.partition(": ")[0] for line in lines[1:]] == [
        f"first difference of {pair}" for pair in blamed]


@pytest.mark.parametrize("kind", ["writes", "arrivals"])
def test_wrong_data_shows_between_the_machines_only(sides, kind):
    sides["rtl"] = replace(sides["rtl"], events=changed(sides["rtl"].events, kind, "data"))
    report = check(SYSTEM, BINARY, **sides)
    assert report.comparisons["plan", "RTL"].ok
    assert report.comparisons["emulator", "RTL"].counts["wrong"] == 1
    assert "1 wrong" in report.summary()
    assert not report.ok


def test_final_sram_word_that_differs_is_named(sides):
    sides["rtl"].sram[1][2, 17, 3] ^= 1
    report = check(SYSTEM, BINARY, **sides)
    assert not report.ok
    expected, observed = (sides[name].sram[1][2, 17].tobytes().hex()
                          for name in ("emulator", "rtl"))
    assert report.problems == ("final SRAM: words of tile 1 that differ: 1, the first mem2 word "
                               f"17: expected {expected}, observed {observed}",)


def test_final_sram_of_another_shape_is_named(sides):
    sides["rtl"] = replace(sides["rtl"], sram=sides["rtl"].sram[:1])
    assert check(SYSTEM, BINARY, **sides).problems == (
        "final SRAM: 2 tiles expected, 1 observed",)
    sides["rtl"] = replace(sides["rtl"], sram=[tile[:, :-1] for tile in sides["emulator"].sram])
    assert check(SYSTEM, BINARY, **sides).problems == (
        "final SRAM: tile 0 has shape (4, 63, 4), (4, 64, 4) was expected",)


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize(("side", "name"), [("emulator", "emulator"), ("rtl", "RTL")])
def test_sticky_error_fails_though_all_events_agree(sides, side, name, fault):
    sides[side] = replace(sides[side], faults=(0, 1 << fault))
    report = check(SYSTEM, BINARY, **sides)
    assert not report.ok
    assert report.lines() == [
        report.summary(), f"{name}: tile 1, error register, after the run, {fault.name}: expected "
        f"no error, observed {FAULT_MEANING[fault]} (sticky error)"]
    assert ZERO in report.summary()
    assert [report.first(other) is None for other in ("plan", "emulator", "RTL")] == [
        True, name != "emulator", name != "RTL"]


def test_sticky_error_is_named_by_its_first_event(sides):
    fault = Fault.ICU_WORD
    sides["rtl"] = replace(sides["rtl"], faults=(0, 1 << fault), fault_events=(
        FaultEvent(1, fault, 40, "mem2.read"), FaultEvent(1, fault, 17, "mem0.read"),
        FaultEvent(0, fault, 3, "mem1.read"), FaultEvent(1, Fault.LINK_BUSY, 2, "c2c")))
    report = check(SYSTEM, BINARY, **sides)
    (machine, error), = report.errors
    assert machine == "RTL"
    assert report.first("RTL") is error
    assert str(error) == ("tile 1, mem0.read, cycle 17, ICU_WORD: expected no error, observed "
                          f"{FAULT_MEANING[fault]} (sticky error)")


@pytest.mark.parametrize("later", [-1, 0, 1])
def test_what_is_first_is_an_error_before_the_first_event_that_differs(sides, later):
    rtl = sides["rtl"]
    events = changed(rtl.events, "issues", "crc")
    cycle = int(events.issues["cycle"][0])
    sides["rtl"] = replace(rtl, events=events, faults=(1, 0), fault_events=(
        FaultEvent(0, 0, cycle + later, "mem0 streams"),))
    first = check(SYSTEM, BINARY, **sides).first("RTL")
    assert first.kind == ("errors" if later < 0 else "issues")
    assert first.cycle == min(cycle, cycle + later)


def test_unknown_sticky_error_fails_too(sides):
    sides["rtl"] = replace(sides["rtl"], faults=(1 << 31, 0))
    (_, error), = check(SYSTEM, BINARY, **sides).errors
    assert (error.tile, error.mnemonic, error.observed) == (0, "BIT_31", "an unknown sticky error")


def test_queue_that_has_not_halted_is_named(sides):
    sides["rtl"] = replace(sides["rtl"], running=((1, "mem0.read"),))
    report = check(SYSTEM, BINARY, **sides)
    assert not report.ok
    assert report.problems == ("RTL: tile 1, mem0.read has not halted",)


def test_two_sides_are_enough(sides):
    assert check(SYSTEM, BINARY, emulator=sides["emulator"], rtl=sides["rtl"]).ok
    assert check(SYSTEM, BINARY, plan=sides["plan"], emulator=sides["emulator"]).ok


def test_one_side_is_not(sides):
    with pytest.raises(ConformanceError, match="give two of plan, emulator and RTL"):
        check(SYSTEM, BINARY, plan=sides["plan"])


def test_agreement_on_nothing_is_no_conformance():
    empty = Observation(no_events(NANO), faults=(0,))
    with pytest.raises(ConformanceError, match="no instruction is expected"):
        check(single(NANO), SystemBinary([TileBinary()]), emulator=empty, rtl=empty)


def test_machine_without_data_is_refused(sides):
    events = sides["rtl"].events
    sides["rtl"] = replace(sides["rtl"], events=events._replace(
        writes=events.writes[["cycle", "tile", "unit", "address"]]))
    with pytest.raises(ConformanceError, match="Table of observed events has no field 'data'"):
        check(SYSTEM, BINARY, **sides)


def test_what_the_host_received_is_compared(sides, rng):
    host = random_events(rng, NANO, 5, tiles=1).arrivals
    host["unit"] = len(NANO.ports)
    late = host.copy()
    late["cycle"][host["cycle"].argmax()] += 1
    assert check(SYSTEM, BINARY, **{name: replace(side, host=host) if name != "plan" else side
                                    for name, side in sides.items()}).ok
    sides["emulator"] = replace(sides["emulator"], host=host)
    sides["rtl"] = replace(sides["rtl"], host=late)
    report = check(SYSTEM, BINARY, **sides)
    assert not report.ok
    assert "1 off-cycle" in report.summary()
    assert "tile 0, host out, cycle" in report.lines()[1]
