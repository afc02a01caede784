"""Starts, runs back to back, limits, and what the host may not do."""

from dataclasses import replace

import numpy as np
import pytest

from hdl.arch.binary import BinaryError, SystemBinary, TileBinary
from hdl.arch.config import pair, single
from hdl.arch.errors import Fault
from hdl.arch.presets import NANO
from hdl.arch.timing import START_LEAD
from sim.emulator import Machine
from tests.sim.emulator.support import events, issued, tile_binary

WORD = b"\x11\x22\x33\x44"


def moment(cycle, op, **fields):
    return [("NOP", {"wait": cycle - 1}), (op, fields)] if cycle else [(op, fields)]


def copy_up(cycle=0):
    """In step s: word s of mem0 to word s of mem1, and from there to word s + 1 of mem0."""
    terms = (1, 0, 0)
    return {"mem0.read": [("LOOP", {"count": 0, "wait": cycle}),
                          ("READ", {"address_terms": terms, "east_en": 1, "ends": 1})],
            "mem1.read": [("LOOP", {"count": 0, "wait": cycle + 5}),
                          ("READ", {"address_terms": terms, "west_en": 1, "ends": 1})],
            "mem1.write": [("LOOP", {"count": 0, "wait": cycle + 1}), ("NOP", {}),
                           ("WRITE", {"address_terms": terms, "source_last": 1, "ends": 1})],
            "mem0.write": [("LOOP", {"count": 0, "wait": cycle + 7}),
                           ("WRITE", {"address": 1, "address_terms": terms, "source_west": 1,
                                      "source_last": 1, "ends": 1})]}


def test_tiles_with_sync_are_refused():
    with pytest.raises(ValueError, match="Emulator cannot run tiles with sync"):
        Machine(pair(replace(NANO, sync=True)))


def test_second_run_finds_what_the_first_left():
    binary = SystemBinary([tile_binary(NANO, copy_up(), {name: [(0, 63, 1)] for name in copy_up()},
                                       {"mem0": {0: WORD}})])
    machine = Machine(single(NANO), garbage=5)
    machine.load(binary)
    for step in range(3):
        result = machine.start(first_step=step)
        assert result.faults == [{}]
        assert issued(NANO, result, "mem0.read") == [(1, step)]
        assert [row[:4] for row in events(result.writes)] == [(4, 0, 1, step), (9, 0, 0, step + 1)]
    assert machine.sram(0)["mem0"][:4].tobytes() == WORD * 4


def test_accumulators_weights_and_fifos_stay():
    first = {"mem1.read": moment(0, "READ", west_en=1),
             # written in 1 at mem1 (3), at mxm0 (0) in 4
             "mxm0.weight": moment(4, "LW", source_west=1, source_last=1, row=2)}
    second = {"host.recv": moment(3, "RECV", west_en=1, west=1),
              # written in 4 at c2c (5), at mxm0 in 9
              "mxm0.act": [*moment(9, "ABC", source=1, source_west=1, source_last=1, install=1,
                                   clear=1)]}
    third = {"mxm0.act": moment(0, "ACC", east_en=1, mode=2),
             # written in 4 at mxm0, at mem3 (7) in 11
             "mem3.write": moment(11, "WRITE", address=3)}
    machine = Machine(single(NANO))
    for programs, host in ((first, [(0, 2, b"\0\0\x02\0")]), (second, []), (third, [])):
        machine.load(SystemBinary([tile_binary(NANO, programs, sram={"mem1": {0: WORD}})]))
        result = machine.start(host_input=host)
    assert machine.sram(0)["mem3"][3].tobytes() == bytes(2 * byte for byte in WORD)
    assert set(result.faults[0]) == {Fault.STREAM_LOST}     # the three other planes, and E0


def test_value_under_way_is_read_by_the_next_run():
    # READ in 0 writes E0 at mem0 (2) in 1; the queue halts in 1, the next start is START_LEAD + 1
    # behind that cycle at the earliest
    floorplan = ("mem0", *(f"mem{i}" for i in range(1, 20)), "vxm", "c2c")
    cfg = replace(NANO, floorplan=floorplan)
    machine = Machine(single(cfg))
    machine.load(SystemBinary([tile_binary(cfg, {"mem0.read": moment(0, "READ", east_en=1)},
                                           sram={"mem0": {0: WORD}})]))
    first = machine.start(drain=False)
    assert first.faults == [{}]
    assert first.cycles == 1
    start = machine.time + START_LEAD
    machine.load(SystemBinary([tile_binary(cfg, {"mem15.write": moment(9, "WRITE",
                                                                       source_last=1)})]))
    # written in 1 of the first run, 15 hops away in 16 of it; 9 of the second: 7 later
    assert start == START_LEAD + 7
    second = machine.start()
    assert second.faults == [{}]
    assert [row[:4] for row in events(second.writes)] == [(10, 0, 15, 0)]
    assert machine.sram(0)["mem15"][0].tobytes() == WORD


def test_drained_run_ends_when_the_last_value_is_gone():
    machine = Machine(single(NANO))
    machine.load(SystemBinary([tile_binary(NANO, {"mem0.read": moment(0, "READ", east_en=1)})]))
    result = machine.start(at=10)
    assert result.faults == [{Fault.STREAM_LOST: (6, "mem3 E0")}]
    assert machine.time == 10 + 6 + 1
    # sticky: an earlier run's fault is shown at its cycle before this start, until it is cleared
    result = machine.start(at=100, max_cycles=10)
    assert result.faults == [{Fault.STREAM_LOST: (6 - 90, "mem3 E0")}]
    machine.clear_faults()
    assert machine.start().faults == [{Fault.STREAM_LOST: (6, "mem3 E0")}]


def test_drained_run_ends_when_the_last_vector_has_arrived():
    machine = Machine(pair(NANO, latency=50))
    machine.load(SystemBinary([tile_binary(NANO, {"link0.send": moment(5, "SEND", links=1)})] * 2))
    result = machine.start(at=10)
    # 2 flits
    assert result.arrivals["cycle"].tolist() == [57, 57]
    assert machine.time == 10 + 57 + 1
    result = machine.start(at=100, drain=False)
    assert len(result.arrivals) == 0 and machine.time == 107
    result = machine.start()
    assert result.arrivals["cycle"].tolist() == [157 - 112, 157 - 112, 57, 57]


def test_start_in_time_and_one_cycle_late():
    machine = Machine(single(NANO))
    machine.load(SystemBinary([tile_binary(NANO, {"mem0.read": moment(3, "READ")})]))
    result = machine.start(at=START_LEAD)
    assert issued(NANO, result, "mem0.read") == [(3, 0)]
    now = machine.time
    result = machine.start(at=now + START_LEAD - 1)
    assert len(result.issues) == 0 and result.cycles == 0
    assert result.faults == [{Fault.START_PAST: (1 - START_LEAD, "host")}]


def test_tiles_may_start_apart_and_cycles_count_from_each_ones_start():
    system = pair(NANO, latency=4)
    sender = tile_binary(NANO, {"link0.send": moment(5, "SEND", links=1)})
    receiver = tile_binary(NANO, {"link0.recv": moment(20, "RECV")})
    arrivals = []
    for starts in ((50, 50), (50, 53), (50, 47)):
        machine = Machine(system)
        machine.load(SystemBinary([sender, receiver]))
        result = machine.start(at=starts)
        assert issued(NANO, result, "link0.send", tile=0) == [(5, 0)]
        assert issued(NANO, result, "link0.recv", tile=1) == [(20, 0)]
        arrivals += result.arrivals["cycle"].tolist()
    # 2 flits, 4 cycles of latency
    assert arrivals == [11, 8, 14]


def test_events_are_sorted_by_cycle_tile_and_unit():
    system = pair(NANO, latency=4)
    tile = tile_binary(NANO, {name: moment(5, op, **fields) for name, op, fields in (
        ("host.recv", "RECV", {}), ("link0.send", "SEND", {}), ("mem3.read", "READ", {}),
        ("mem0.read", "READ", {}))})
    machine = Machine(system)
    machine.load(SystemBinary([tile, tile]))
    result = machine.start(at=(60, 50))
    keys = [(row["cycle"], row["tile"], row["unit"]) for row in result.issues]
    assert keys == sorted(keys) and len(keys) == 8


def test_fewer_programs_than_tiles_leave_the_others_alone():
    machine = Machine(pair(NANO))
    machine.load(SystemBinary([tile_binary(NANO, {"mem0.read": moment(2, "READ")})]))
    result = machine.start()
    assert result.issues["tile"].tolist() == [0]
    assert len(result.faults) == 2


def test_host_access_while_the_tile_runs_is_an_error():
    machine = Machine(single(NANO))
    machine.load(SystemBinary([tile_binary(NANO, {"mem0.read": moment(20, "READ")})]))
    assert machine.start(host_commands=[(0, 30), (0, 12), (0, 15)]).faults == \
        [{Fault.HOST_BUSY: (12, "host")}]
    machine.clear_faults()
    # READ in 20, HALT in 21
    assert machine.start(host_commands=[(0, 22)]).faults == [{}]
    assert machine.start(host_commands=[(0, 21)]).faults == [{Fault.HOST_BUSY: (21, "host")}]


def test_run_that_was_given_up_names_its_queues_and_cannot_go_on():
    machine = Machine(pair(NANO))
    endless = tile_binary(NANO, {"mem0.read": [("LOOP", {"count": 2**20 - 1}),
                                               ("READ", {"wait": 255, "ends": 1})]})
    machine.load(SystemBinary([endless, tile_binary(NANO, {})]))
    result = machine.start(max_cycles=600)
    assert result.running == [(0, "mem0.read")]
    assert result.issues["cycle"].tolist() == [1, 257, 513]
    with pytest.raises(RuntimeError, match="still running"):
        machine.start()


def test_results_do_not_depend_on_garbage():
    tables = {name: [(0, 63, 1)] for name in copy_up()}
    found = []
    for seed in (None, 1, 2):
        machine = Machine(single(NANO), garbage=seed)
        machine.load(SystemBinary([tile_binary(NANO, copy_up(), tables, {"mem0": {0: WORD}})],
                                  steps=1))
        result = machine.start()
        defined = machine.defined(0)
        found.append((events(result.issues), events(result.writes),
                      {name: words[defined[name]].tobytes()
                       for name, words in machine.sram(0).items()}))
    assert found[0] == found[1] == found[2]


def test_garbage_fills_the_sram_and_is_repeatable():
    first, again, other = (Machine(single(NANO), garbage=seed).sram(0) for seed in (1, 1, 2))
    for name, words in first.items():
        np.testing.assert_array_equal(words, again[name])
        assert (words != other[name]).mean() > 0.9


@pytest.mark.parametrize("vector, cycle", [(b"abc", 5), (b"abcd", -START_LEAD - 1)])
def test_host_input_that_cannot_be_is_refused(vector, cycle):
    machine = Machine(single(NANO))
    machine.load(SystemBinary([TileBinary()]))
    with pytest.raises(ValueError, match="Host input must be 4 bytes at machine cycle 0 or later"):
        machine.start(host_input=[(0, cycle, vector)])


def test_binary_of_another_configuration_is_refused():
    machine = Machine(single(NANO))
    with pytest.raises(BinaryError, match="lacks"):
        machine.load(SystemBinary([TileBinary(words={"mem7.read": [1]})]))
