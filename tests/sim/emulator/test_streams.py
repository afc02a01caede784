"""Single values on streams, with the cycles worked out from docs/architecture.md.

NANO: mxm0 sxm0 mem0 mem1 vxm c2c mem2 mem3, so mem0 is at 2, mem1 at 3, mem2 at 6, mem3 at 7.
"""

from dataclasses import replace

import pytest

from hdl.arch.errors import Fault
from hdl.arch.presets import NANO
from tests.sim.emulator.support import events, issued, run_tile

WORD = b"\x01\x80\xff\x7f"
OTHER = b"abcd"


def at(cycle, op, **fields):
    """Lines that issue ``op`` in ``cycle``, the first of their queue."""
    return [("NOP", {"wait": cycle - 1}), (op, fields)] if cycle else [(op, fields)]


def read(cycle, stream, **fields):
    return at(cycle, "READ", east_en=1, east=stream, **fields)


def read_west(cycle, stream, **fields):
    return at(cycle, "READ", west_en=1, west=stream, **fields)


def write(cycle, stream, west=0, last=1, **fields):
    return at(cycle, "WRITE", source=stream, source_west=west, source_last=last, **fields)


def run(programs, **contents):
    sram = {name: {0: content} for name, content in (contents or {"mem0": WORD}).items()}
    return run_tile(NANO, programs, sram=sram)


def writes(result):
    return [(cycle, unit, address, data) for cycle, _, unit, address, data in events(result.writes)]


def test_value_is_read_one_hop_per_cycle_further_east():
    # READ in 3 writes E5 at mem0 in 4; mem2 is 4 hops east: in 8; the SRAM is written in 9
    machine, result = run({"mem0.read": read(3, 5), "mem2.write": write(8, 5, address=6)})
    assert issued(NANO, result, "mem0.read") == [(3, 0)]
    assert issued(NANO, result, "mem2.write") == [(8, 6)]
    assert writes(result) == [(9, 2, 6, WORD)]
    assert machine.sram(0)["mem2"][6].tobytes() == WORD
    assert result.faults == [{}]
    # the write queue halts in 9, the cycle behind its WRITE
    assert result.cycles == 9


def test_value_moves_west_too():
    # READ at mem3 in 0 writes W1 at position 7 in 1; mem0 is 5 hops west: in 6
    _, result = run({"mem3.read": read_west(0, 1), "mem0.write": write(6, 1, west=1)}, mem3=WORD)
    assert writes(result) == [(7, 0, 0, WORD)]
    assert result.faults == [{}]


@pytest.mark.parametrize("cycle", [7, 9])
def test_read_one_cycle_off_finds_nothing_and_the_value_is_lost(cycle):
    _, result = run({"mem0.read": read(3, 5), "mem2.write": write(cycle, 5)})
    # written at position 2 in 4, so at position 7, the last, in 9
    assert result.faults == [{Fault.STREAM_INVALID: (cycle, "mem2 E5"),
                              Fault.STREAM_LOST: (9, "mem3 E5")}]
    assert writes(result) == [(cycle + 1, 2, 0, bytes(4))]


def test_westward_value_is_lost_at_the_westernmost_slice():
    # written at position 3 in 1, at position 0 in 4
    _, result = run({"mem1.read": read_west(0, 2)}, mem1=WORD)
    assert result.faults == [{Fault.STREAM_LOST: (4, "mxm0 W2")}]


def test_value_written_at_the_last_position_is_lost_at_once():
    _, result = run({"mem3.read": read(5, 2)}, mem3=WORD)
    assert result.faults == [{Fault.STREAM_LOST: (6, "mem3 E2")}]


def test_several_slices_read_one_value_and_one_clears_it():
    _, result = run({"mem0.read": read(0, 0), "mem1.write": write(2, 0, last=0),
                     "mem2.write": write(5, 0, last=0), "mem3.write": write(6, 0)})
    assert writes(result) == [(3, 1, 0, WORD), (6, 2, 0, WORD), (7, 3, 0, WORD)]
    assert result.faults == [{}]


def test_cleared_value_does_not_move_on():
    _, result = run({"mem0.read": read(0, 0), "mem1.write": write(2, 0), "mem2.write": write(5, 0)})
    assert result.faults == [{Fault.STREAM_INVALID: (5, "mem2 E0")}]


def test_slice_reads_what_arrives_and_writes_in_its_place():
    # mem0's word is at mem1 in 2: taken there with `last`, and mem1's own word put in its place
    _, result = run({"mem0.read": read(0, 0), "mem1.read": read(1, 0), "mem1.write": write(2, 0),
                     "mem2.write": write(5, 0)}, mem0=WORD, mem1=OTHER)
    assert writes(result) == [(3, 1, 0, WORD), (6, 2, 0, OTHER)]
    assert result.faults == [{}]


def test_write_over_a_value_that_was_not_cleared_is_a_fault():
    _, result = run({"mem0.read": read(0, 0), "mem1.read": read(1, 0), "mem2.write": write(5, 0)},
                    mem0=WORD, mem1=OTHER)
    assert writes(result) == [(6, 2, 0, OTHER)]
    assert result.faults == [{Fault.STREAM_OVERWRITE: (2, "mem1 E0")}]


def test_both_directions_and_equal_numbers_do_not_meet():
    _, result = run({"mem1.read": at(0, "READ", east_en=1, east=3, west_en=1, west=3),
                     "mem0.write": write(2, 3, west=1), "mem2.write": write(4, 3)}, mem1=WORD)
    assert writes(result) == [(3, 0, 0, WORD), (5, 2, 0, WORD)]
    assert result.faults == [{}]


def test_two_writers_in_one_cycle_conflict():
    # the receive sides of two links write at one position: both find nothing and write zeros in 3
    _, result = run({"link0.recv": at(2, "RECV", east_en=1, east=1),
                     "host.recv": at(2, "RECV", east_en=1, east=1), "mem2.write": write(4, 1)})
    faults, = result.faults
    assert faults[Fault.STREAM_CONFLICT] == (3, "c2c E1")
    assert Fault.STREAM_OVERWRITE not in faults and Fault.STREAM_LOST not in faults


def test_two_last_reads_in_one_cycle_conflict():
    _, result = run({"mem0.read": read(0, 1),   # at c2c, 3 hops, in 4
                     "link0.send": at(4, "SEND", source=1, source_last=1),
                     "host.send": at(4, "SEND", source=1, source_last=1)})
    assert result.faults == [{Fault.STREAM_CONFLICT: (4, "c2c E1")}]


def test_one_last_read_and_one_without_do_not_conflict():
    _, result = run({"mem0.read": read(0, 1), "link0.send": at(4, "SEND", source=1),
                     "host.send": at(4, "SEND", source=1, source_last=1)})
    assert result.faults == [{}]


def test_read_in_the_cycle_of_the_write_collides_and_gives_the_old_word():
    # WRITE in 8 writes word 6 of mem2 in 9; READ of mem2 in 9 collides, in 10 sees it
    collision = {Fault.SRAM_COLLISION: (9, "mem2.read")}
    for cycle, seen, faults in ((8, OTHER, {}), (9, OTHER, collision), (10, WORD, {})):
        machine, result = run_tile(
            NANO, {"mem0.read": read(3, 5), "mem2.write": write(8, 5, address=6),
                   "mem2.read": read(cycle, 0, address=6), "mem3.write": write(cycle + 2, 0)},
            sram={"mem0": {0: WORD}, "mem2": {6: OTHER}})
        assert machine.sram(0)["mem3"][0].tobytes() == seen
        assert result.faults == [faults]


def test_read_of_another_word_does_not_collide():
    _, result = run({"mem0.read": read(3, 5), "mem2.write": write(8, 5, address=6),
                     "mem2.read": read(9, 0, address=7), "mem3.write": write(11, 0)})
    assert result.faults == [{}]


def test_addresses_beyond_the_slice_read_zero_and_write_nothing():
    cfg = replace(NANO, mem_words=40)
    machine, result = run_tile(
        cfg, {"mem0.read": read(3, 5, address=40), "mem2.write": write(8, 5, address=39),
              "mem1.read": read(20, 5, address=39), "mem3.write": write(25, 5, address=63)},
        sram={"mem1": {39: WORD}, "mem2": {39: OTHER}})
    assert writes(result) == [(9, 2, 39, bytes(4))]
    assert result.faults == [{Fault.SRAM_ADDRESS: (3, "mem0.read")}]
    # that of the WRITE shows when it is alone
    machine, result = run_tile(
        cfg, {"mem1.read": read(20, 5, address=39), "mem3.write": write(25, 5, address=63)})
    assert result.faults == [{Fault.SRAM_ADDRESS: (25, "mem3.write")}]
    assert len(result.writes) == 0 and not machine.defined(0)["mem3"].any()


def test_defined_words_are_those_loaded_or_written():
    machine, _ = run({"mem0.read": read(3, 5), "mem2.write": write(8, 5, address=6)})
    assert {name: mask.nonzero()[0].tolist() for name, mask in machine.defined(0).items()} == \
        {"mem0": [0], "mem1": [], "mem2": [6], "mem3": []}
