"""What only the affine verifier must get right: loops that it skips through."""

from dataclasses import replace

import pytest

from compiler.errors import VerifyError
from compiler.verify import VerdictsDiffer, both, verify, verify_both, verify_expanded
from compiler.verify.affine import Run, timeline
from hdl.arch.config import all_to_all, pair, single
from hdl.arch.encoding import decode, encode
from hdl.arch.presets import DEMO, NANO
from tests.compiler.verify.programs import after, decode_program, hand, matvec

SINGLE = single(NANO)
PAIR = pair(NANO, latency=4)


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    monkeypatch.setattr(timeline, "WORTH", 0)
    monkeypatch.setattr(timeline, "WINDOW", 1)


def test_steps_cost_nothing():
    system = all_to_all(DEMO, 4).restrict(1)
    binary = decode_program(system)
    runs = []
    for steps in (8, 64, 100_000):
        binary.steps = steps
        runs.append(Run(system, binary))
    assert [run.total for run in runs] == [steps * runs[0].total // 8 for steps in (8, 64, 100_000)]
    assert runs[0].listed == runs[1].listed == runs[2].listed < runs[0].total / 2


def test_layers_cost_nothing():
    system = all_to_all(DEMO, 4).restrict(1)
    listed = [Run(system, decode_program(system, layers=layers, steps=1)).listed
              for layers in (8, 30)]
    assert listed[0] == listed[1]


def _looped(offset, words, cycles, count=0, period=20):
    """A queue: behind ``offset`` cycles a LOOP of ``period`` cycles, ``cycles`` of them with
    ``words``."""
    op, fields = after(period - cycles)
    return [after(offset), ("LOOP", {"count": count}), *words, (op, {**fields, "ends": 1})]


def _copying(read, write, reread, tables, steps, first_step=0, words=64):
    """mem0 to mem1, and mem1 is read in the cycle of that write; each step takes 20 cycles.

    ``read``, ``write`` and ``reread`` are the fields of the three addresses.
    """
    binary = hand(
        SINGLE,
        (0, "mem0.read", _looped(1, [("READ", {"east_en": 1, "east": 2, **read})], 1)),
        (0, "mem1.write", _looped(3, [("WRITE", {"source": 2, "source_last": 1, **write})], 1)),
        (0, "mem1.read", _looped(4, [("READ", {"east_en": 1, "east": 1, **reread})], 1)),
        (0, "mem2.write", _looped(8, [("WRITE", {"source": 1, "source_last": 1})], 1)),
        tables=tables, words=words)
    binary.steps, binary.first_step = steps, first_step
    return binary


def _line(system, binary):
    with pytest.raises(VerifyError) as error:
        verify_both(system, binary)
    return str(error.value)


def test_a_read_meets_a_write_in_one_far_step():
    """The write goes up by one word in 4 steps, the read down: they meet once."""
    tables = {"mem1.write": [(2, 31, 1)], "mem1.read": [(2, 31, -1)]}
    binary = _copying({}, {"address": 5, "address_terms": (1,)},
                      {"address": 63, "address_terms": (1,)}, tables, 115)
    assert verify_both(SINGLE, binary) == 4 * 115
    assert Run(SINGLE, binary).listed < 100
    binary.steps = 130                                  # 29 each: 34, in step 116
    assert _line(SINGLE, binary) == \
        f"Cycle {4 + 1 + 20 * 116}: tile 0 mem1 reads word 34 in the cycle in which it is written"
    binary.first_step = 1                               # one step sooner
    assert f"Cycle {4 + 1 + 20 * 115}:" in _line(SINGLE, binary)


@pytest.mark.parametrize("match,meets", [(3, True), (1, False)])
def test_a_write_that_its_predicate_suppresses_meets_nobody(match, meets):
    """Cache append: steps 4n + match write word 8 + n, word 17 is read in step 39 alone."""
    tables = {"mem1.write": [(2, 15, 1), (0, 3, match)],
              "mem1.read": [(0, 63, 1)]}
    binary = _copying({}, {"address": 8, "address_terms": (1,), "predicate": 2},
                      {"address": 42, "address_terms": (1,)}, tables, 60)
    if meets:
        assert _line(SINGLE, binary) == (
            f"Cycle {5 + 20 * 39}: tile 0 mem1 reads word 17 in the cycle in which it is written")
    else:
        assert verify_both(SINGLE, binary) == 4 * 60


@pytest.mark.parametrize("late", [0, 1])
def test_a_word_is_read_only_behind_its_first_write(late):
    """Step n writes word 8 + n / 2 in odd steps and reads the word of the step before."""
    tables = {"mem1.write": [(1, 15, 1), (0, 1, 1)], "mem1.read": [(1, 15, 1)]}
    binary = _copying({}, {"address": 8, "address_terms": (1,), "predicate": 2},
                      {"address": 7 + late, "address_terms": (1,)}, tables, 32, words=8)
    if late:
        assert _line(SINGLE, binary) == \
            "Cycle 5: tile 0 mem1 reads word 8, which nobody has written"
    else:
        assert verify_both(SINGLE, binary) == 4 * 32


def test_an_address_leaves_the_slice_in_a_far_step():
    odd = single(replace(NANO, mem_words=40))
    binary = hand(odd, (0, "mem0.read", _looped(1, [("READ", {"address_terms": (1,)})], 1)),
                  tables={"mem0.read": [(3, 63, 1)]}, words=40)
    binary.steps = 320
    assert verify_both(odd, binary) == 320
    binary.steps = 330
    assert _line(odd, binary) == \
        f"Cycle {2 + 320 * 20}: tile 0 mem0.read address 40 is outside the slice"


def test_accumulators_that_steps_select_are_followed_until_they_repeat():
    """Step n sums up in accumulator n modulo 4, and reads it or the one behind it."""
    load = {"source": 4, "source_west": 1, "source_last": 1}
    read = ("READ", {"west_en": 1, "west": 4})

    def binary(steps, behind):
        sums = [("ABC", {"clear": 1, "accumulator_terms": (1,), **load}), after(5),
                ("ACC", {"accumulator": behind, "accumulator_terms": (1,)})]
        found = hand(
            SINGLE,
            (0, "mem0.read", [read, ("REPEAT", {"count": 3, "interval": 1}), after(1), read,
                              *_looped(14, [read], 1)]),
            (0, "mxm0.weight", [after(3), ("LW", load),
                                ("REPEAT", {"count": 3, "interval": 1, "row_stride": 1})]),
            (0, "mxm0.act", [after(8), ("ABC", {"install": 1, "clear": 1, **load}),
                             *_looped(14, sums, 7)]),
            tables={"mxm0.act": [(0, 3, 1)]})
        found.steps = steps
        return found
    assert verify_both(SINGLE, binary(100, 0)) == 4 + 1 + 4 + 1 + 3 * 100
    assert Run(SINGLE, binary(100, 0)).listed < 60
    assert _line(SINGLE, binary(100, 1)) == \
        "Cycle 30: tile 0 mxm0 reads accumulator 1, whose sum was never begun"


def _flow(extra, count=40, take=9):
    """Two vectors a step over a link of depth 4, ``take`` cycles after the first is there."""
    send = ("SEND", {"source": 2, "source_last": 1, "links": 1})
    read = ("READ", {"east_en": 1, "east": 2})
    write = ("WRITE", {"source_last": 1})
    at = 1 + 4 + 2 + 4 + take
    receive = ("RECV", {"east_en": 1})
    binary = hand(
        PAIR,
        (0, "mem0.read", _looped(1, [read, after(1), read], 3)),
        (0, "link0.send", _looped(5, [send, after(1), send], 3)),
        (1, "link0.recv", _looped(at, [receive, receive], 2, period=20 + extra)),
        (1, "mem2.write", _looped(at + 2, [write, write], 2, period=20 + extra)))
    binary.steps = count
    return binary


def test_vectors_in_flight_at_the_end_of_a_step_are_followed():
    for take in (9, 21):                            # within the step, and in the next
        assert verify_both(PAIR, _flow(0, take=take)) == 2 * 4 * 40
        assert Run(PAIR, _flow(0, take=take)).listed < 2 * 4 * 20


@pytest.mark.parametrize("extra,message", [
    (1, "a vector arrives at the full FIFO of tile 1 link 0"),
    (-1, "tile 1 link 0 has no vector to take")])
def test_a_receiver_that_drifts_is_refused(extra, message):
    assert message in _line(PAIR, _flow(extra))


def _entries(gap, first_read):
    """Results kept ``gap`` cycles apart in one entry of alu0, read ``first_read`` cycles behind the
    first of them and long after the second."""
    keep = ("PASS", {"a": 3, "keep": 1})
    read = ("PASS", {"a": 2})
    words = [keep, after(gap - 1), keep, after(first_read - gap - 1), read, after(9), read]
    binary = hand(SINGLE, (0, "alu0", _looped(1, words, first_read + 11, period=40)))
    binary.steps = 50
    return binary


def test_an_entry_that_is_kept_again_too_soon_is_read_in_between():
    """Depth 6: the first result is there 6 cycles behind its issue, until the second is."""
    assert verify_both(SINGLE, _entries(4, 8)) == verify_both(SINGLE, _entries(4, 9)) == 4 * 50
    assert _line(SINGLE, _entries(4, 10)) == \
        "Cycle 6: tile 0 alu0 PASS keeps entry 0 less than 6 cycles behind a result that nobody " \
        "has read"
    # further apart, an unread result does no harm
    assert verify_both(SINGLE, _entries(6, 12)) == 4 * 50


def test_loops_that_queues_do_not_share_are_gone_through():
    """mem0 reads in a REPEAT inside its loop, mem1 writes in a LOOP of another shape."""
    reads = [("READ", {"east_en": 1, "wait": 1}), ("REPEAT", {"count": 3, "interval": 2})]
    for at in (1, 2):
        binary = hand(
            SINGLE,
            (0, "mem0.read", _looped(at, reads, 7, count=6, period=8)),
            (0, "mem1.write", [after(3), ("LOOP", {"count": 24}),
                               ("WRITE", {"source_last": 1, "wait": 1, "ends": 1})]))
        if at == 1:
            # LOOP words of one cycle each: the reads come two cycles before the writes, as planned
            assert verify_both(SINGLE, binary) == 48
            assert Run(SINGLE, binary).listed < 48      # the one period divides the other
        else:
            assert _line(SINGLE, binary) == \
                "Cycle 4: mem1.write reads tile 0 position 3 stream E0, which carries no value"


def test_a_queue_that_ends_its_loop_early_is_found(rng):
    binary = matvec(PAIR, 8, 8, rng, steps=60)
    queue = binary.tiles[1].words["mxm0.act"]
    assert verify_both(PAIR, binary) > 0
    binary.tiles[1].words["mxm0.act"] = [word + (59 << 16) if word & 31 == 2 else word
                                         for word in queue]     # LOOP 59 instead of the steps
    assert "leaves the last position unread" in _line(PAIR, binary)


def test_a_queue_whose_steps_are_longer_is_found_at_once():
    """Its period and that of the others have a common multiple of many thousand steps."""
    system = all_to_all(DEMO, 4).restrict(1)
    binary = decode_program(system, layers=2, steps=3)
    words = binary.tiles[0].words["mem3.read"]
    op, fields = decode(DEMO, "mem_read", words[-2])
    assert fields["ends"] == 1
    words[-2] = encode(DEMO, "mem_read", op, **{**fields, "wait": fields["wait"] + 1})
    line = _line(system, binary)
    binary.steps = 1_000_000
    with pytest.raises(VerifyError) as error:
        verify(system, binary)
    assert str(error.value) == line


def test_verdicts_that_differ_are_an_error(rng, monkeypatch):
    binary = matvec(SINGLE, 5, 9, rng)
    monkeypatch.setattr(both, "verify_expanded", lambda system, binary: 1)
    with pytest.raises(VerdictsDiffer, match="on the expansion: 1"):
        verify_both(SINGLE, binary)
    assert verify_both(SINGLE, binary, limit=1) == verify(SINGLE, binary) == \
        verify_expanded(SINGLE, binary)


def test_results_do_not_depend_on_the_size_of_batches(rng, monkeypatch):
    binary = matvec(pair(DEMO), 33, 47, rng, steps=3)
    expected = Run(pair(DEMO), binary).total
    monkeypatch.setattr(timeline, "BATCH", 50)
    assert Run(pair(DEMO), binary).total == expected
    monkeypatch.setattr(timeline, "WORTH", 1 << 40)
    run = Run(pair(DEMO), binary)
    assert run.listed == run.total == expected and run.skipped == 0
