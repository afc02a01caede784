"""Issues of one queue: LOOP, REPEAT, indices, predicates and what stops a queue."""

from dataclasses import replace

import pytest

from hdl.arch.binary import SystemBinary, TileBinary
from hdl.arch.config import single
from hdl.arch.encoding import crc16, encode
from hdl.arch.errors import Fault
from hdl.arch.isa import word_bits, word_bytes
from hdl.arch.presets import DEMO, NANO
from sim.emulator import Machine
from tests.sim.emulator.support import assemble, issued, run_tile

QUEUE = "mem1.read"


def issues(lines, table=(), cfg=NANO, queue=QUEUE, **options):
    _, result = run_tile(cfg, {queue: lines}, {queue: list(table)}, **options)
    return issued(cfg, result, queue)


def loop(count, **fields):
    return ("LOOP", {"count": count, **fields})


def read(address, **fields):
    return ("READ", {"address": address, **fields})


def repeat(count, interval, stride, **fields):
    return ("REPEAT", {"count": count, "interval": interval, "address_stride": stride, **fields})


def test_words_follow_each_other_after_their_wait():
    lines = [read(1), read(2, wait=3), ("NOP", {}), read(3), ("NOP", {"wait": 2, "more": 1}),
             read(4)]
    # 0; 1, and 3 idle; NOP in 5; 6; NOP of 1 + 2 + 256 cycles from 7 on; 266
    assert issues(lines) == [(0, 1), (1, 2), (6, 3), (266, 4)]


def test_repeat_issues_the_word_before_it_again():
    # READ in 0 idles in 1; REPEAT from 2: r = 1, 2, 3 in 2, 5, 8, then one idle cycle; next in 10
    lines = [read(10, wait=1), repeat(3, 3, 4, wait=1), read(50)]
    assert issues(lines) == [(0, 10), (2, 14), (5, 18), (8, 22), (10, 50)]


def test_repeat_behind_repeat_starts_from_the_first_repetition():
    lines = [read(10), repeat(2, 1, 1), repeat(2, 2, 5)]
    assert issues(lines) == [(0, 10), (1, 11), (2, 12), (3, 15), (5, 20)]


def test_repeat_of_count_and_interval_zero_is_one_repetition():
    assert issues([read(10), repeat(0, 0, 1), read(20)]) == [(0, 10), (1, 11), (2, 20)]
    assert issues([read(10), repeat(3, 0, 1), read(20)]) == \
        [(0, 10), (1, 11), (2, 12), (3, 13), (4, 20)]


def test_address_wraps_at_its_width():
    assert issues([read(62), repeat(3, 1, 1)]) == [(0, 62), (1, 63), (2, 0), (3, 1)]
    assert issues([read(1), repeat(3, 1, -1)]) == [(0, 1), (1, 0), (2, 63), (3, 62)]


def test_loop_takes_one_slot_once_and_its_end_nothing():
    # LOOP in 0; body of 2 cycles from 1, 3 times; then 7
    lines = [loop(3), read(1), read(2, ends=1), read(3)]
    assert issues(lines) == [(1, 1), (2, 2), (3, 1), (4, 2), (5, 1), (6, 2), (7, 3)]


def test_several_loops_end_behind_one_word():
    # LOOP in 0; (LOOP, READ, READ) twice: LOOP in 1 and in 4
    lines = [loop(2), loop(2), read(1, ends=2), read(9)]
    assert issues(lines) == [(2, 1), (3, 1), (5, 1), (6, 1), (7, 9)]


def test_terms_are_those_of_the_open_loops():
    # the READ behind the inner loop names the inner level too, but that is not open there
    terms = (1, 2, 0)
    lines = [loop(2), loop(2), read(0, address_terms=terms, ends=1),
             read(0, address_terms=terms, ends=1)]
    assert issues(lines, [(0, 7, 10), (0, 7, 1)]) == \
        [(2, 0), (3, 1), (4, 0), (6, 10), (7, 11), (8, 10)]


def test_repeat_behind_the_end_of_a_loop_has_no_term_of_it():
    lines = [loop(3), read(20, address_terms=(1, 0, 0), ends=1), repeat(2, 1, 1)]
    assert issues(lines, [(0, 7, 5)]) == [(1, 20), (2, 25), (3, 30), (4, 21), (5, 22)]


def test_indices_are_the_sum_of_shifted_and_masked_loop_indices():
    table = [(1, 0x1, 16), (0, 0x3, -3), (2, 0xFFFFF, 7), (0, 0x2, 100), (3, 0x7, 1)]
    terms, counts = (4, 2, 1, 5), (5, 3, 6, 9)
    lines = [*[loop(count) for count in counts],
             read(1000, address_terms=terms), repeat(2, 2, 11, ends=4)]
    entries = [(0, 0, 0), *table]
    expected = []
    for i in range(counts[0]):
        for j in range(counts[1]):
            for k in range(counts[2]):
                for n in range(counts[3]):
                    total = 1000
                    for entry, index in zip(terms, (i + 6, j, k, n), strict=True):
                        shift, mask, step = entries[entry]
                        total += (index // 2 ** shift & mask) * step
                    expected += [total % 16384, (total + 11) % 16384, (total + 22) % 16384]
    found = issues(lines, table, cfg=DEMO, first_step=6)
    assert [index for _, index in found] == expected
    # READ, two repetitions 2 apart: a body of 4 cycles (READ 1, REPEAT 2 + 1)
    innermost = [cycle for cycle, _ in found[:3 * counts[3]]]
    assert innermost == [4 + 4 * n + at for n in range(counts[3]) for at in (0, 1, 3)]
    # each level adds its own LOOP word to the period of the one around it
    period, size = 4 * counts[3], 3 * counts[3]
    for level in (2, 1, 0):
        assert found[size][0] - found[0][0] == period + 1
        period, size = (period + 1) * counts[level], size * counts[level]


def test_two_indices_have_terms_of_their_own():
    lines = [loop(3), ("ABC", {"accumulator": 1, "accumulator_terms": (1, 0, 0), "activation": 0,
                               "activation_terms": (2, 0, 0), "buffered": 1}),
             ("REPEAT", {"count": 1, "interval": 1, "accumulator_stride": 1,
                         "activation_stride": -1, "ends": 1})]
    found = issues(lines, [(0, 3, 1), (0, 3, 2)], queue="mxm0.act")
    pairs = [(1, 0), (2, 3), (2, 2), (3, 1), (3, 0), (0, 3)]
    assert [index for _, index in found] == [a | b << 2 for a, b in pairs]


def test_step_level_counts_from_the_first_step():
    lines = [loop(0), loop(2), read(0, address_terms=(1, 2, 0), ends=2)]
    found = issues(lines, [(0, 0xFFFFF, 4), (0, 1, 1)], first_step=5, steps=3)
    assert found == [(2, 20), (3, 21), (5, 24), (6, 25), (8, 28), (9, 29)]


def test_every_outermost_loop_is_the_step_level():
    lines = [loop(1), read(0, address_terms=(1, 0, 0), ends=1),
             loop(2), read(0, address_terms=(1, 0, 0), ends=1)]
    assert issues(lines, [(0, 63, 1)], first_step=7) == [(1, 7), (3, 7), (4, 8)]


def test_step_counts_modulo_its_width():
    lines = [loop(3), read(0, address_terms=(1, 0, 0), ends=1), ("HALT", {})]
    machine = Machine(single(NANO))
    machine.load(SystemBinary([TileBinary({QUEUE: assemble(NANO, QUEUE, lines)},
                                          {QUEUE: [(0, 0, 0), (16, 63, 1)]})]))
    result = machine.start(first_step=2**20 - 1)
    assert issued(NANO, result, QUEUE) == [(1, 15), (2, 0), (3, 0)]


def test_predicate_suppresses_the_write_alone():
    lines = [loop(0), ("WRITE", {"address": 8, "address_terms": (2, 0, 0), "predicate": 1,
                                 "source": 1, "source_last": 1, "ends": 1})]
    # mem0's words 0 .. 5 pass mem1 in 2, 3, ...; the WRITE issues in 2, 3, ... behind NOP and LOOP
    word = bytes(range(24))
    machine, result = run_tile(
        NANO, {"mem0.read": [read(0, east_en=1, east=1), repeat(5, 1, 1)],
               "mem1.write": [("NOP", {}), *lines]},
        {"mem1.write": [(1, 3, 2), (0, 7, 1)]}, {"mem0": {0: word}}, first_step=2, steps=6)
    assert issued(NANO, result, "mem1.write") == [(2 + i, 8 + (2 + i) % 8) for i in range(6)]
    # (step >> 1) & 3 == 2: steps 4 and 5, with words 2 and 3
    assert [(row["cycle"], row["address"], row["data"].tobytes()) for row in result.writes] == \
        [(5, 12, word[8:12]), (6, 13, word[12:16])]
    assert result.faults == [{}]        # every value was taken


def test_issue_shows_the_crc_of_the_unit_word():
    word = encode(NANO, "mem_read", "READ", address=3)
    _, result = run_tile(NANO, {QUEUE: [read(3), repeat(1, 1, 1)]})
    assert result.issues["crc"].tolist() == [crc16(word, word_bytes(NANO, "mem_read"))] * 2


def run_words(words, cfg=NANO, **options):
    machine = Machine(single(cfg))
    machine.load(SystemBinary([TileBinary({QUEUE: words})]))
    return machine.start(**options)


@pytest.mark.parametrize("lines, cycle, addresses", [
    ([read(1), read(2, ends=1)], 1, [1]),
    ([read(1), loop(2), read(2, ends=2)], 2, [1]),
    ([read(1), *[loop(2)] * 4], 4, [1]),
    ([read(1), loop(2, ends=1)], 1, [1]),
    ([read(1), loop(2), loop(2, ends=1)], 2, [1]),
    ([repeat(1, 1, 1)], 0, []),
    ([read(1), loop(2), repeat(1, 1, 1)], 2, [1]),
    ([read(1, wait=5), ("NOP", {"wait": 7}), repeat(1, 1, 1)], 14, [1]),
    ([read(1), read(2, wait=4)], 6, [1, 2]),
    ([read(1), loop(3), ("NOP", {"ends": 1, "wait": 1})], 8, [1]),
    ([read(1), ("HALT", {"ends": 1})], 1, [1]),
], ids=["ends without loop", "more ends than loops", "loop too deep", "ends of a loop word",
        "ends of an inner loop word", "repeat of nothing", "repeat behind loop",
        "repeat behind nop", "past the last word", "past the last word behind a loop",
        "ends of a halt"])
def test_word_at_fault_halts_the_queue_and_issues_nothing(lines, cycle, addresses):
    result = run_words(assemble(NANO, QUEUE, lines))
    assert result.faults == [{Fault.ICU_WORD: (cycle, QUEUE)}]
    assert result.cycles == cycle
    assert result.issues["index"].tolist() == addresses


def test_unknown_opcode_halts():
    words = assemble(NANO, QUEUE, [read(1)]) + [31] + assemble(NANO, QUEUE, [read(2)])
    result = run_words(words)
    assert result.faults == [{Fault.ICU_WORD: (1, QUEUE)}]
    assert len(result.issues) == 1


def test_halt_in_an_open_loop_halts_in_its_first_iteration():
    _, result = run_tile(NANO, {QUEUE: [loop(5), read(1), ("HALT", {}), read(2, ends=1)]})
    assert issued(NANO, result, QUEUE) == [(1, 1)]
    assert result.faults == [{}]


def test_bits_outside_the_fields_have_no_effect():
    halt = encode(NANO, "mem_read", "HALT")
    result = run_words([halt | 1 << word_bits(NANO, "mem_read") - 1])
    assert result.faults == [{}] and result.cycles == 0


def test_long_loops_are_given_up_at_the_limit():
    lines = [loop(2**20 - 1), loop(2**20 - 1), read(1, address_terms=(0, 1, 0), wait=9, ends=2)]
    result = run_words(assemble(NANO, QUEUE, lines), max_cycles=1000)
    # READ in 2, 12, ...: below 1000 100 of them
    assert [row["cycle"] for row in result.issues] == list(range(2, 1000, 10))
    assert result.running == [(0, QUEUE)]
    assert result.cycles == 1000


def test_waits_of_many_millions_of_cycles_cost_nothing():
    lines = [loop(1000), ("NOP", {"more": 2**20 - 1}), read(1, ends=1)]
    result = run_words(assemble(NANO, QUEUE, lines), max_cycles=1 << 40)
    period = 1 + (2**20 - 1) * 256 + 1
    assert result.issues["cycle"].tolist() == [period * (i + 1) for i in range(1000)]


def test_long_programs_are_expanded_in_pieces(rng):
    """More issues than are expanded at once, in loops that are and are not small."""
    cfg = replace(DEMO, icu_words=2048)
    table = [(int(rng.integers(0, 4)), int(rng.integers(0, 1 << 20)), int(rng.integers(-9, 9)))
             for _ in range(7)]
    counts = (3, 40, 70, 3)
    lines = [loop(counts[0]), read(5, address_terms=(1, 2, 3, 4), wait=2), loop(counts[1]),
             loop(counts[2]), read(7, address_terms=(5, 6, 7, 1)), loop(counts[3]),
             read(9, address_terms=(2, 3, 4, 5)), repeat(2, 1, 3, ends=1),
             read(11, address_terms=(6, 7, 1, 2), ends=1), repeat(4000, 2, 1, ends=1),
             read(13, address_terms=(3, 4, 5, 6), ends=1)]
    entries = [(0, 0, 0), *table]

    def term(terms, *indices):
        return sum((index >> entries[entry][0] & entries[entry][1]) * entries[entry][2]
                   for entry, index in zip(terms, indices, strict=False))

    expected, t = [], 1
    for i in range(counts[0]):
        expected.append((t, 5 + term((1,), i)))
        t += 3 + 1
        for j in range(counts[1]):
            t += 1
            for k in range(counts[2]):
                expected.append((t, 7 + term((5, 6, 7), i, j, k)))
                t += 2
                for n in range(counts[3]):
                    base = 9 + term((2, 3, 4, 5), i, j, k, n)
                    expected += [(t + r, base + 3 * r) for r in range(3)]
                    t += 3
                expected.append((t, 11 + term((6, 7, 1), i, j, k)))
                t += 1
            expected += [(t + 2 * (r - 1), 11 + r + term((6, 7), i, j)) for r in range(1, 4001)]
            t += 2 * 3999 + 1
        expected.append((t, 13 + term((3,), i)))
        t += 1
    found = issues(lines, table, cfg=cfg)
    assert found == [(cycle, address % 16384) for cycle, address in expected]
