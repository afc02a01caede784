"""Programs on RTL, in Verilator, against the emulator and against plans worked out by hand."""

import copy

import numpy as np
import pytest

from hdl.arch import isa
from hdl.arch.binary import BinaryError, SystemBinary, TileBinary
from hdl.arch.encoding import encode
from hdl.arch.errors import Fault
from hdl.arch.presets import NANO
from sim.conformance import check
from sim.emulate import run_emulator
from sim.events import FaultEvent
from sim.rtl.build import build_rtl
from sim.rtl.recorder import FILES, TraceError, read_events, read_faults, read_host
from sim.rtl.run import run_rtl
from tests.sim.rtl.programs import INNER, LATENCY, SYSTEM, copy_binary, copy_plan

ZERO = "0 missing, 0 unplanned, 0 off-cycle, 0 wrong"
BINARY = copy_binary()
RUNS = [(0, 4), (4, 1), (3, 2)]     # first step, steps; without reset in between


@pytest.fixture(scope="module")
def model():
    """Two nano tiles."""
    return build_rtl(SYSTEM)


@pytest.fixture
def both(model, tmp_path, seed):
    """Run a program on emulator and RTL; ``mutant`` overrides options of the RTL alone."""

    def go(binary, runs=None, mutant=None, **options):
        emulator = run_emulator(SYSTEM, binary, garbage=seed, runs=runs, **options)
        options = {"binary": binary, "garbage": seed, "runs": runs, **options, **(mutant or {})}
        rtl = run_rtl(model, SYSTEM, run_dir=tmp_path / "run", **{"seed": seed, **options})
        return emulator, rtl.runs

    return go


def compared(binary, emulator, rtl, number=0, plan=None):
    return check(SYSTEM, binary, plan=plan, emulator=emulator[number], rtl=rtl[number])


def test_plan_emulator_and_rtl_agree_in_runs_without_reset(both):
    emulator, rtl = both(BINARY, RUNS)
    assert len(emulator) == len(rtl) == len(RUNS)
    for number, (first_step, steps) in enumerate(RUNS):
        report = compared(BINARY, emulator, rtl, number, copy_plan(first_step, steps))
        even = sum(step % 2 == 0 for step in range(first_step, first_step + steps))
        vectors = 2 * INNER
        assert report.lines() == [
            f"conformance: {5 * steps * vectors} of {5 * steps * vectors} planned instructions, "
            f"{steps * vectors} link vectors, {(steps + even) * vectors} SRAM writes; {ZERO}"]
        assert len(report.comparisons) == 3
        assert report.ok


def test_words_arrive_where_they_should(both, seed):
    _, rtl = both(BINARY, [(0, 4)])
    source = np.arange(30 * NANO.lanes, dtype=np.uint8).reshape(30, NANO.lanes)
    np.testing.assert_array_equal(rtl[0].sram[0][2, 20:44], source[1:25])
    for step in (0, 2):
        np.testing.assert_array_equal(rtl[0].sram[1][1, 30 + 6 * step:36 + 6 * step],
                                      source[1 + 6 * step:7 + 6 * step])


def test_initial_state_does_not_matter(both, seed):
    _, first = both(BINARY)
    _, second = both(BINARY, mutant={"seed": seed % (2**31 - 1) + 1})
    assert check(SYSTEM, BINARY, emulator=first[0], rtl=second[0]).ok


def test_garbage_shows_where_nothing_was_loaded(both, seed):
    # The programs' events do not depend on it, the final contents do.
    emulator, rtl = both(BINARY, mutant={"garbage": seed + 1})
    report = compared(BINARY, emulator, rtl)
    assert report.comparisons["emulator", "RTL"].ok
    assert report.problems[0].startswith("final SRAM: words of tile 0 that differ: ")


def with_word(tile, queue, number, word):
    binary = copy.deepcopy(BINARY)
    binary.tiles[tile].words[queue][number] = word
    return binary


def test_changed_word_of_the_rtl_alone_is_named(both):
    old = BINARY.tiles[1].words["mem1.write"][3]
    assert old & 31 == isa.MemWriteOp.WRITE.value
    emulator, rtl = both(BINARY, mutant={"binary": with_word(1, "mem1.write", 3, old ^ 1 << 16)})
    report = compared(BINARY, emulator, rtl)
    first = report.comparisons["emulator", "RTL"].first
    plan = copy_plan(0, 4).issues
    mine = plan[(plan["tile"] == 1) & (plan["unit"] == 3)]
    assert (first.tile, first.queue, first.cycle, first.mnemonic, first.category) == (
        1, "mem1.write", mine["cycle"].min(), "WRITE", "wrong")
    assert first.expected.startswith("`write wait=1 address=30 ")
    assert "with address 30 at cycle" in first.expected
    assert first.observed.startswith("a word with CRC 0x")
    assert "with address 31 at cycle" in first.observed
    assert len(report.comparisons["emulator", "RTL"].matches["issues"].wrong) == len(mine)
    assert not report.ok


def test_later_word_of_the_rtl_alone_is_off_cycle(both):
    first_word = BINARY.tiles[0].words["mem0.read"][0]
    later = encode(NANO, "mem_read", "LOOP", count=0, wait=1)
    assert first_word == encode(NANO, "mem_read", "LOOP", count=0)
    emulator, rtl = both(BINARY, mutant={"binary": with_word(0, "mem0.read", 0, later)})
    report = compared(BINARY, emulator, rtl)
    first = report.comparisons["emulator", "RTL"].first
    assert (first.tile, first.queue, first.cycle, first.mnemonic, first.category) == (
        0, "mem0.read", 2, "READ", "off-cycle")
    assert first.observed.endswith("at cycle 3")


@pytest.mark.parametrize("latency", [LATENCY - 1, LATENCY + 1])
def test_other_link_latency_is_named(both, latency):
    emulator, rtl = both(BINARY, mutant={"latencies": [latency, LATENCY]})
    report = compared(BINARY, emulator, rtl, plan=copy_plan(0, 4))
    planned = int(copy_plan(0, 4).arrivals["cycle"].min())
    for pair in (("plan", "RTL"), ("emulator", "RTL")):
        first = next(difference for difference in report.comparisons[pair].differences(100)
                     if difference.kind == "arrivals")
        assert (first.tile, first.queue, first.cycle, first.mnemonic, first.category) == (
            1, "link0", planned, "arrival", "off-cycle")
        assert first.observed.endswith(f"at cycle {planned + latency - LATENCY}")
    assert report.comparisons["plan", "emulator"].ok
    assert not report.ok


@pytest.mark.parametrize("offset", [-1, 1, 40])
def test_offset_start_shows_at_the_arrivals(both, offset):
    offsets = [0, offset] if offset > 0 else [-offset, 0]
    emulator, rtl = both(BINARY, mutant={"offsets": offsets})
    report = compared(BINARY, emulator, rtl)
    first = next(difference for difference in report.comparisons["emulator", "RTL"].differences(99)
                 if difference.kind == "arrivals")
    assert (first.tile, first.queue, first.category) == (1, "link0", "off-cycle")
    assert first.observed.endswith(f"at cycle {first.cycle - offset}")
    issued = report.comparisons["emulator", "RTL"].matches["issues"]
    assert issued.faults == 0


def test_same_offset_on_both_sides_agrees(both):
    # The machines do the same wrong thing: one cycle early for the receiver, what it reads is old.
    emulator, rtl = both(BINARY, offsets=[0, 1])
    assert compared(BINARY, emulator, rtl).ok
    emulator, rtl = both(BINARY, offsets=[1, 0])
    report = compared(BINARY, emulator, rtl)
    assert report.comparisons["emulator", "RTL"].matches["arrivals"].faults == 0
    assert rtl[0].faults == emulator[0].faults
    assert rtl[0].faults[1] >> Fault.FIFO_UNDERFLOW & 1


def test_another_program_between_runs_finds_sram_as_it_was(both):
    later = 12      # words behind those that the first program writes
    old = BINARY.tiles[0].words["mem2.write"]
    number = next(i for i, word in enumerate(old) if word & 31 == isa.MemWriteOp.WRITE.value)
    other = with_word(0, "mem2.write", number,
                      encode(NANO, "mem_write", "WRITE", wait=1, address=20 + later, source=5,
                             source_last=1, address_terms=(2, 1)))
    other.tiles[0].sram = {"mem0": {0: bytes(30 * NANO.lanes)}}     # must not be loaded
    emulator, rtl = both(BINARY, [(0, 1), (1, 2)], reloads={1: other},
                         patches=[[], [(0, "mem0", 9, bytes(NANO.lanes))]])
    assert compared(BINARY, emulator, rtl).ok
    report = compared(other, emulator, rtl, 1)
    assert report.ok, report.lines()
    before, after = rtl[0].sram[0], rtl[1].sram[0]
    np.testing.assert_array_equal(after[2, 20:26], before[2, 20:26])
    expected = before[0, 7:19].copy()
    expected[2] = 0
    np.testing.assert_array_equal(after[2, 26 + later:38 + later], expected)


def one_queue(name, words, tile=0):
    tiles = [TileBinary(), TileBinary()]
    tiles[tile].words[name] = words
    return SystemBinary(tiles)


def test_watchdog_names_what_has_not_halted(both):
    endless = [encode(NANO, "mem_read", "LOOP", count=1000),
               encode(NANO, "mem_read", "READ", wait=200, ends=1),
               encode(NANO, "mem_read", "HALT")]
    binary = one_queue("mem3.read", endless, tile=1)
    emulator, rtl = both(binary, [(0, 1), (0, 1)], limit=500)
    assert len(rtl) == 1        # no further run is started
    assert rtl[0].running == emulator[0].running == ((1, "mem3.read"),)
    assert rtl[0].sram is None
    report = compared(binary, emulator, rtl)
    assert "RTL: tile 1, mem3.read has not halted" in report.problems


def test_running_past_the_last_word_is_a_fault(both):
    binary = one_queue("mem0.read", [encode(NANO, "mem_read", "READ", address=5)] * 3)
    emulator, rtl = both(binary)
    report = compared(binary, emulator, rtl)
    assert report.comparisons["emulator", "RTL"].ok
    assert rtl[0].faults == emulator[0].faults == (1 << Fault.ICU_WORD, 0)
    assert rtl[0].fault_events == emulator[0].fault_events == (
        FaultEvent(0, Fault.ICU_WORD, 3, "mem0.read"),)
    assert not report.ok


def test_program_of_one_tile_on_a_machine_of_two(both):
    binary = SystemBinary(copy_binary().tiles[:1], steps=2)
    emulator, rtl = both(binary)
    report = compared(binary, emulator, rtl)
    found = report.comparisons["emulator", "RTL"]
    assert found.ok
    assert found.planned == (copy_plan(0, 2).issues["tile"] == 0).sum()
    assert len(rtl[0].sram) == 1
    # Nobody takes what arrives at the tile that runs nothing.
    assert len(rtl[0].events.arrivals) == NANO.port(0).fifo
    assert rtl[0].faults == emulator[0].faults == (0, 1 << Fault.FIFO_OVERFLOW)


def host_tile():
    """A tile that sends six words to the host."""
    host = len(NANO.ports)
    t_d = 1
    reads = [encode(NANO, "mem_read", "READ", address=7, east_en=1, east=1, wait=1),
             encode(NANO, "mem_read", "REPEAT", count=5, interval=2, address_stride=1),
             encode(NANO, "mem_read", "HALT")]
    sends = [encode(NANO, "send", "NOP", wait=t_d + NANO.hops("mem0", "c2c") - 1),
             encode(NANO, "send", "SEND", links=1 << host, source=1, source_last=1, wait=1),
             encode(NANO, "send", "REPEAT", count=5, interval=2),
             encode(NANO, "send", "HALT")]
    return TileBinary(words={"mem0.read": reads, "host.send": sends},
                      sram={"mem0": {7: bytes(range(6 * NANO.lanes))}})


def test_program_of_a_part_of_the_machine(model, tmp_path, seed):
    part, binary = SYSTEM.restrict(1), SystemBinary([host_tile()])
    emulator = run_emulator(part, binary, garbage=seed)
    rtl = run_rtl(model, part, binary, machine=SYSTEM, run_dir=tmp_path, seed=seed)
    report = check(part, binary, emulator=emulator[0], rtl=rtl.runs[0])
    assert report.ok, report.lines()
    assert len(rtl.runs[0].host) == 6
    with pytest.raises(BinaryError, match="needs 2 tiles, the machine has 1"):
        run_rtl(model, SYSTEM, binary, machine=part, run_dir=tmp_path, seed=seed)


def test_vectors_to_the_host(both):
    t_d = 1
    binary = SystemBinary([TileBinary(), host_tile()])
    emulator, rtl = both(binary)
    report = compared(binary, emulator, rtl)
    assert report.ok, report.lines()
    assert rtl[0].host["data"].tobytes() == bytes(range(6 * NANO.lanes))
    assert set(rtl[0].host["tile"]) == {1}
    sent = t_d + NANO.hops("mem0", "c2c")
    assert list(rtl[0].host["cycle"]) == [
        sent + 2 * i + NANO.host.flits(NANO.lanes) + SYSTEM.host_latency for i in range(6)]


def test_file_that_was_cut_off_is_refused(both, tmp_path):
    both(BINARY)
    readers = {"host": read_host, "faults": read_faults}
    for kind, file in FILES.items():
        path = tmp_path / "run" / file
        raw = path.read_bytes()
        for keep in (0, 5, len(raw) - 1, len(raw) - 8, len(raw) // 2):
            path.write_bytes(raw[:keep])
            with pytest.raises(TraceError, match=f"{file} was cut off: see sim.log beside it"):
                readers.get(kind, read_events)(tmp_path / "run", NANO)
        path.unlink()
        with pytest.raises(TraceError, match=f"{file} was not recorded"):
            readers.get(kind, read_events)(tmp_path / "run", NANO)
        path.write_bytes(raw)
