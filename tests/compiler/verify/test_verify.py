"""The verifier accepts what the compiler makes and names what a careless hand breaks."""

import copy
import dataclasses

import pytest

from compiler.errors import VerifyError
from compiler.verify import verify, verify_both, verify_expanded
from hdl.arch.config import all_to_all, pair, single
from hdl.arch.encoding import decode, encode
from hdl.arch.presets import DEMO, FPGA, NANO
from tests.compiler.verify.programs import after, copies, decode_program, hand, kinds, matvec

PAIR = pair(NANO, latency=4)


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("system,k,n", [
    (single(NANO), 1, 1), (single(FPGA), 9, 13), (single(NANO), 5, 9), (PAIR, 8, 8), (PAIR, 3, 4),
    (pair(DEMO), 33, 47), (all_to_all(DEMO, 4, latency=(3, 7, 11)), 64, 80)])
def test_compiled_products_are_legal(system, k, n, steps, rng):
    assert verify_both(system, matvec(system, k, n, rng, steps)) > 0


def test_compiled_copies_are_legal(rng):
    # steps, chunks, words, slices, read and write
    assert verify_both(single(NANO), copies(rng)) == 5 * 3 * 2 * 4 * 2


@pytest.mark.parametrize("tiles,changes", [
    (1, {}), (2, {"layers": 2, "heads": 4, "size": 40, "steps": 2}),
    (4, {"layers": 4, "heads": 4, "size": 40, "steps": 1})])
def test_compiled_decodes_are_legal(tiles, changes):
    system = all_to_all(DEMO, 4, latency=(3, 16, 9)).restrict(tiles)
    assert verify_both(system, decode_program(system, **changes)) > 10_000


# nano: mxm0 sxm0 mem0 mem1 vxm c2c mem2 mem3; mem0 to mem1 is one hop, to mem2 four.
READ = ("READ", {"east_en": 1, "east": 2})
WRITE = ("WRITE", {"source": 2, "source_last": 1})
# mem0 to mxm0 is two hops.
LOAD = ("READ", {"west_en": 1, "west": 4})
FROM_LOAD = {"source": 4, "source_west": 1, "source_last": 1}


def test_a_copy_by_hand_is_legal():
    binary = hand(PAIR, (0, "mem0.read", [READ]), (0, "mem1.write", [after(2), WRITE]))
    assert verify_both(PAIR, binary) == 2


@pytest.mark.parametrize("message,programs", [
    ("Cycle 1: mem1.write reads tile 0 position 3 stream E2, which carries no value",
     [(0, "mem0.read", [READ]), (0, "mem1.write", [after(1), WRITE])]),
    ("leaves the last position unread",
     [(0, "mem0.read", [READ])]),
    ("leaves the last position unread",
     [(0, "mem0.read", [READ]),
      (0, "mem1.write", [after(2), ("WRITE", {"source": 2})])]),
    ("Cycle 2: mem1.read writes over the value of mem0.read on tile 0 position 3 stream E2",
     [(0, "mem0.read", [READ]), (0, "mem1.read", [after(1), READ]),
      (0, "mem2.write", [after(4), WRITE])]),
    ("Cycle 5: .* clears tile 0 position 5 stream E2 a second time",
     [(0, "mem0.read", [after(1), READ]),
      (0, "link0.send", [after(5), ("SEND", {"source": 2, "source_last": 1, "links": 1})]),
      (0, "host.send", [after(5), ("SEND", {"source": 2, "source_last": 1, "links": 2})])]),
    ("Cycle 3: tile 0 mem1 reads word 0 in the cycle in which it is written",
     [(0, "mem0.read", [READ]), (0, "mem1.write", [after(2), WRITE]),
      (0, "mem1.read", [after(3), READ]), (0, "mem2.write", [after(7), WRITE])]),
    ("reads word 9, which nobody has written",
     [(0, "mem0.read", [("READ", {"address": 9, "east_en": 1, "east": 2})]),
      (0, "mem1.write", [after(2), WRITE])]),
    ("Cycle 3: tile 1 link 0 has no vector to take",
     [(1, "link0.recv", [after(3), ("RECV", {"east_en": 1})]),
      (1, "mem2.write", [after(5), ("WRITE", {"source_last": 1})])]),
    ("Of 1 vectors that arrive at tile 1 link 0, 0 are taken",
     [(0, "mem0.read", [READ]),
      (0, "link0.send", [after(4), ("SEND", {"source": 2, "source_last": 1, "links": 1})])]),
    ("tile 0 link 0 is still sending",
     [(0, "mem0.read", [READ, READ]),
      (0, "link0.send", [after(4)] + 2 * [("SEND", {"source": 2, "source_last": 1,
                                                      "links": 1})])]),
    ("Cycle 41: tile 0 link 0 is still sending",
     [(1, "mem0.read", [READ, after(1), READ]),
      (1, "link0.send", [after(4), ("SEND", {"source": 2, "source_last": 1, "links": 1, "wait": 1}),
                         ("SEND", {"source": 2, "source_last": 1, "links": 1})]),
      (0, "link0.recv", [after(40)] + 2 * [("RECV", {"links": 1, "east_en": 1})]),
      (0, "mem2.write", [after(42)] + 2 * [("WRITE", {"source_last": 1})])]),
    ("installs weights of which 4 rows are not loaded",
     [(0, "mem0.read", [("READ", {"west_en": 1})]),
      (0, "mxm0.act", [after(3), ("ABC", {"install": 1, "clear": 1, "source_west": 1,
                                           "source_last": 1})])]),
    ("multiplies before weights are installed",
     [(0, "mem0.read", [("READ", {"west_en": 1})]),
      (0, "mxm0.act", [after(3), ("ABC", {"clear": 1, "source_west": 1, "source_last": 1})])]),
    ("reads accumulator 0, whose sum was never begun",
     [(0, "mxm0.act", [("ACC", {"east_en": 1})]),
      *((0, f"mem{i}.write", [after(6 + i + 2 * (i > 1)), ("WRITE", {"source": i,
                                                                     "source_last": 1})])
        for i in range(4))]),
    ("Cycle 12: tile 0 mxm0 reads accumulator 0 before its sum is complete",
     [(0, "mem0.read", [LOAD, ("REPEAT", {"count": 3, "interval": 1}), after(1), LOAD, LOAD]),
      (0, "mxm0.weight", [after(3), ("LW", FROM_LOAD),
                          ("REPEAT", {"count": 3, "interval": 1, "row_stride": 1})]),
      (0, "mxm0.act", [after(8), ("ABC", {"install": 1, "clear": 1, **FROM_LOAD}),
                       ("ABC", FROM_LOAD), after(2), ("ACC", {})])]),
    ("Cycle 8: tile 0 mxm0 installs weights of which 2 rows are not loaded",
     [(0, "mem0.read", [LOAD, ("REPEAT", {"count": 3, "interval": 1}), after(1), LOAD]),
      (0, "mxm0.weight", [after(3), *(("LW", {"row": row, "columns": row % 2, **FROM_LOAD})
                                      for row in range(4))]),
      (0, "mxm0.act", [after(8), ("ABC", {"install": 1, "clear": 1, **FROM_LOAD})])]),
    ("Cycle 4: tile 0 sxm0 PERMUTE uses map 1, which no MAP has set",
     [(0, "mem0.read", [("READ", {"west_en": 1}), after(1), ("READ", {"west_en": 1})]),
      (0, "sxm0", [after(2), ("MAP", {"source_west": 1, "source_last": 1}), after(1),
                   ("PERMUTE", {"map": 1, "source_west": 1, "source_last": 1})])]),
    ("Cycle 0: tile 0 alu0 PASS reads a result of unit 1, which gives none",
     [(0, "alu0", [("PASS", {"a": 1, "a_source": 1})])]),
    ("Cycle 5: tile 0 alu0 PASS reads entry 3, which nobody has kept",
     [(0, "alu0", [("PASS", {"a": 3, "keep": 1, "entry": 3}), after(4),
                   ("PASS", {"a": 2, "a_source": 3})])]),
    ("Cycle 1: tile 0 alu0 PASS keeps entry 3 less than 6 cycles behind a result that nobody has",
     [(0, "alu0", [("PASS", {"a": 3, "keep": 1, "entry": 3})] * 2 + [
         after(5), ("PASS", {"a": 2, "a_source": 3})])]),
    ("Cycle 0: tile 0 alu0 EXP2 needs the feature 'special'", [(0, "alu0", [("EXP2", {"a": 3})])]),
    ("Cycle 0: tile 0 alu1 SELECT has no predicate: alu0 gives no result",
     [(0, "alu1", [("SELECT", {"a": 3, "b": 3})])]),
    ("Cycle 9: tile 0 mem0.read needs the port in the cycle of the GATHER before it",
     [(0, "alu0", [("PASS", {"a": 3, "west_en": 1})]),
      (0, "mem0.read", [after(8), ("GATHER", {"source_west": 1, "source_last": 1}),
                        ("READ", {})])]),
    ("halts inside a LOOP", [(0, "mem0.read", [("LOOP", {"count": 2})])]),
    ("repeats nothing", [(0, "mem0.read", [("REPEAT", {"count": 2})])]),
    ("ends more LOOPs than are open", [(0, "mem0.read", [("NOP", {"ends": 1})])]),
    ("ends a LOOP with a LOOP", [(0, "mem0.read", [("LOOP", {}), ("LOOP", {"ends": 1})])]),
    ("Tile 0 mem0.read nests more than 3 LOOPs", [(0, "mem0.read", [("LOOP", {})] * 4)]),
    ("Tile 0 mem0.read READ names table entry 2, its table has 1",
     [(0, "mem0.read", [("READ", {"address_terms": (0, 2)})])]),
])
def test_each_fault_is_named(message, programs):
    with pytest.raises(VerifyError, match=message):
        verify_both(PAIR, hand(PAIR, *programs))


def test_a_queue_without_halt_is_refused():
    binary = hand(PAIR, (0, "mem0.read", []))
    binary.tiles[0].words["mem0.read"] = [0]
    with pytest.raises(VerifyError, match="runs past its last word without HALT"):
        verify_both(PAIR, binary)


def test_a_full_fifo_is_refused():
    sends = [("SEND", {"source": 2, "source_last": 1, "links": 1, "wait": 1})] * 6
    binary = hand(PAIR, (0, "mem0.read", [("READ", {**READ[1], "wait": 1})] * 6),
                   (0, "link0.send", [after(4), *sends]),
                   (1, "link0.recv", [after(60)] + [("RECV", {"east_en": 1})] * 6),
                   (1, "mem2.write", [after(62)] + [("WRITE", {"source_last": 1})] * 6))
    with pytest.raises(VerifyError, match="a vector arrives at the full FIFO of tile 1 link 0"):
        verify_both(PAIR, binary)


def test_single_changes_of_a_product_are_found(rng):
    """Every one-cycle delay of a word is found: nothing in the schedule may slip unnoticed."""
    binary = matvec(PAIR, 8, 8, rng)
    queue_kinds = kinds(NANO)
    found = total = 0
    for tile in range(2):
        for queue, words in binary.tiles[tile].words.items():
            for at, word in enumerate(words[:-1]):
                insn = decode(NANO, queue_kinds[queue], word)
                if insn.fields["wait"] == 255:
                    continue
                mutant = copy.deepcopy(binary)
                fields = {**insn.fields, "wait": insn.fields["wait"] + 1}
                mutant.tiles[tile].words[queue][at] = encode(NANO, queue_kinds[queue],
                                                               insn.op, **fields)
                total += 1
                try:
                    verify_both(PAIR, mutant)
                except VerifyError:
                    found += 1
    # A wait behind the last issue of a step shifts nothing in a single step.
    assert total > 50
    assert found >= total - len(binary.tiles[0].words) - len(binary.tiles[1].words)


def _refused(system, binary):
    """What all three say of a binary that they refuse."""
    said = set()
    for function in (verify, verify_expanded, verify_both):
        with pytest.raises(VerifyError) as error:
            function(system, binary)
        said.add(str(error.value))
    assert len(said) == 1
    return said.pop()


def test_a_link_that_the_system_lacks_is_refused():
    programs = [(0, "mem0.read", [READ]),
                (0, "link0.send", [after(4), ("SEND", {"source": 2, "source_last": 1,
                                                       "links": 1})])]
    system = single(NANO)
    assert _refused(system, hand(system, *programs)) == \
        "Cycle 4: tile 0 sends on link 0, which leads nowhere"
    programs[1][2][1][1]["links"] = 2                       # the host
    assert verify_both(system, hand(system, *programs)) == 2


def test_what_does_not_fit_is_refused_before_anything_else():
    system = single(NANO)
    binary = hand(system, (0, "mem0.read", [READ]), (0, "mem1.write", [after(2), WRITE]))
    binary.tiles[0].tables["mem0.read"] = []
    assert _refused(system, binary) == \
        "Tile 0 mem0.read has an empty table: its first entry must be (0, 0, 0)"
    binary.tiles[0].tables["mem0.read"] = [(0, 0, 0), (32, 0, 0)]
    assert "it must be a shift below 32" in _refused(system, binary)
    binary.tiles[0].tables["mem0.read"] = [(0, 0, 0), (1, 2)]
    assert "has a table entry (1, 2)" in _refused(system, binary)
    del binary.tiles[0].tables["mem0.read"]                 # then it has entry 0 alone
    assert verify_both(system, binary) == 2
    binary.tiles[0].words["mem9.read"] = [0]
    assert "queue mem9.read, which the tile lacks" in _refused(system, binary)
    binary.tiles *= 2
    assert _refused(system, binary) == "Program needs 2 tiles, the machine has 1"


def test_tiles_with_sync_are_refused():
    system = pair(dataclasses.replace(NANO, sync=True))
    assert "Verifier cannot check tiles with sync" in _refused(system, hand(system))


def test_streams_beyond_those_of_the_tile_are_refused():
    narrow = single(dataclasses.replace(NANO, streams=12))
    binary = hand(narrow, (0, "mem0.read", [("READ", {"east_en": 1, "east": 13})]))
    assert _refused(narrow, binary) == "Tile 0 mem0.read READ names stream 13 of 12"


def test_quads_are_aligned():
    """The low bits of a quad's number are ignored."""
    binary = hand(PAIR, (0, "alu0", [("PASS", {"a": 3, "east_en": 1, "target": 5})]),
                  *((0, f"mem{2 + plane // 4}.write",
                     [after(8 + plane), ("WRITE", {"source": 4 + plane, "source_last": 1})])
                    for plane in range(1)))
    assert "stream E5 of tile 0 leaves the last position unread" in _refused(PAIR, binary)


def test_a_count_of_zero_means_the_steps_at_every_level():
    binary = hand(PAIR, (0, "alu0", [("LOOP", {}), ("LOOP", {}),
                                     ("PASS", {"a": 3, "ends": 2})]))
    binary.steps = 7
    assert verify_both(PAIR, binary) == 49
