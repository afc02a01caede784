"""The verifier accepts what the compiler makes and names what a careless hand breaks."""

import copy

import numpy as np
import pytest

from compiler.assemble import assemble
from compiler.errors import VerifyError
from compiler.lower.copy import copy_program
from compiler.lower.matvec import matvec_program
from compiler.verify import verify
from hdl.arch.binary import SystemBinary, TileBinary
from hdl.arch.config import all_to_all, pair, single
from hdl.arch.encoding import decode, encode
from hdl.arch.presets import DEMO, NANO
from hdl.arch.queues import queues

PAIR = pair(NANO, latency=4)


def _matvec(system, k, n, rng):
    plan, memory = matvec_program(system, rng.integers(-127, 128, (k, n), dtype=np.int8),
                                  rng.integers(-32639, 32640, k))
    binary, _ = assemble(plan)
    memory.fill(binary)
    return binary


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("system,k,n", [
    (single(NANO), 1, 1), (single(NANO), 5, 9), (PAIR, 8, 8), (PAIR, 3, 4),
    (pair(DEMO), 33, 47), (all_to_all(DEMO, 4, latency=(3, 7, 11)), 64, 80)])
def test_compiled_products_are_legal(system, k, n, steps, rng):
    binary = _matvec(system, k, n, rng)
    binary.steps = steps
    assert verify(system, binary) > 0


def test_compiled_copies_are_legal(rng):
    system = single(NANO)
    plan, memory = copy_program(system, rng.integers(0, 256, (1, 4, 6, 4), dtype=np.uint8), 3, 2)
    binary, _ = assemble(plan)
    memory.fill(binary)
    binary.steps, binary.first_step = 5, 3
    assert verify(system, binary) == 5 * 3 * 2 * 4 * 2      # steps, chunks, words, slices, r + w


def _hand(system, *programs):
    """One step of hand-written queues; each program is (tile, queue, [(op, fields), ...])."""
    binary = SystemBinary([TileBinary() for _ in range(system.tiles)])
    kinds = {queue.name: queue.kind for queue in queues(system.tile)}
    for tile, queue, words in programs:
        coded = [encode(system.tile, kinds[queue], op, **fields) for op, fields in words]
        coded.append(encode(system.tile, kinds[queue], "HALT"))
        binary.tiles[tile].words[queue] = coded
        binary.tiles[tile].tables[queue] = [(0, 0, 0)]
    for tile in binary.tiles:
        tile.sram = {name: {0: bytes(4 * 4)} for name in system.tile.slices("mem")}
    return binary


# nano: mxm0 sxm0 mem0 mem1 vxm c2c mem2 mem3; mem0 to mem1 is one hop, to mem2 four.
READ = ("READ", {"east_en": 1, "east": 2})
WRITE = ("WRITE", {"source": 2, "source_last": 1})


def _after(cycles):
    return ("NOP", {"wait": cycles - 1})


def test_a_copy_by_hand_is_legal():
    binary = _hand(PAIR, (0, "mem0.read", [READ]), (0, "mem1.write", [_after(2), WRITE]))
    assert verify(PAIR, binary) == 2


@pytest.mark.parametrize("message,programs", [
    ("Cycle 1: mem1.write reads tile 0 position 3 stream E2, which carries no value",
     [(0, "mem0.read", [READ]), (0, "mem1.write", [_after(1), WRITE])]),
    ("leaves the last position unread",
     [(0, "mem0.read", [READ])]),
    ("leaves the last position unread",
     [(0, "mem0.read", [READ]),
      (0, "mem1.write", [_after(2), ("WRITE", {"source": 2})])]),
    ("Cycle 2: mem1.read writes over the value of mem0.read on tile 0 position 3 stream E2",
     [(0, "mem0.read", [READ]), (0, "mem1.read", [_after(1), READ]),
      (0, "mem2.write", [_after(4), WRITE])]),
    ("Cycle 5: .* clears tile 0 position 5 stream E2 a second time",
     [(0, "mem0.read", [_after(1), READ]),
      (0, "link0.send", [_after(5), ("SEND", {"source": 2, "source_last": 1, "links": 1})]),
      (0, "host.send", [_after(5), ("SEND", {"source": 2, "source_last": 1, "links": 2})])]),
    ("Cycle 3: tile 0 mem1 reads word 0 in the cycle in which it is written",
     [(0, "mem0.read", [READ]), (0, "mem1.write", [_after(2), WRITE]),
      (0, "mem1.read", [_after(3), READ]), (0, "mem2.write", [_after(7), WRITE])]),
    ("reads word 9, which nobody has written",
     [(0, "mem0.read", [("READ", {"address": 9, "east_en": 1, "east": 2})]),
      (0, "mem1.write", [_after(2), WRITE])]),
    ("Cycle 3: tile 1 link 0 has no vector to take",
     [(1, "link0.recv", [_after(3), ("RECV", {"east_en": 1})]),
      (1, "mem2.write", [_after(5), ("WRITE", {"source_last": 1})])]),
    ("Of 1 vectors that arrive at tile 1 link 0, 0 are taken",
     [(0, "mem0.read", [READ]),
      (0, "link0.send", [_after(4), ("SEND", {"source": 2, "source_last": 1, "links": 1})])]),
    ("tile 0 link 0 is still sending",
     [(0, "mem0.read", [READ, READ]),
      (0, "link0.send", [_after(4)] + 2 * [("SEND", {"source": 2, "source_last": 1,
                                                      "links": 1})])]),
    ("installs weights of which 4 rows are not loaded",
     [(0, "mem0.read", [("READ", {"west_en": 1})]),
      (0, "mxm0.act", [_after(3), ("ABC", {"install": 1, "clear": 1, "source_west": 1,
                                           "source_last": 1})])]),
    ("multiplies before weights are installed",
     [(0, "mem0.read", [("READ", {"west_en": 1})]),
      (0, "mxm0.act", [_after(3), ("ABC", {"clear": 1, "source_west": 1, "source_last": 1})])]),
    ("reads accumulator 0, whose sum was never begun",
     [(0, "mxm0.act", [("ACC", {"east_en": 1})]),
      *((0, f"mem{i}.write", [_after(6 + i + 2 * (i > 1)), ("WRITE", {"source": i,
                                                                     "source_last": 1})])
        for i in range(4))]),
    ("halts inside a LOOP", [(0, "mem0.read", [("LOOP", {"count": 2})])]),
    ("repeats nothing", [(0, "mem0.read", [("REPEAT", {"count": 2})])]),
    ("ends more LOOPs than are open", [(0, "mem0.read", [("NOP", {"ends": 1})])]),
])
def test_each_fault_is_named(message, programs):
    with pytest.raises(VerifyError, match=message):
        verify(PAIR, _hand(PAIR, *programs))


def test_a_queue_without_halt_is_refused():
    binary = _hand(PAIR, (0, "mem0.read", []))
    binary.tiles[0].words["mem0.read"] = [0]
    with pytest.raises(VerifyError, match="runs past its last word without HALT"):
        verify(PAIR, binary)


def test_a_full_fifo_is_refused():
    sends = [("SEND", {"source": 2, "source_last": 1, "links": 1, "wait": 1})] * 6
    binary = _hand(PAIR, (0, "mem0.read", [("READ", {**READ[1], "wait": 1})] * 6),
                   (0, "link0.send", [_after(4), *sends]),
                   (1, "link0.recv", [_after(60)] + [("RECV", {"east_en": 1})] * 6),
                   (1, "mem2.write", [_after(62)] + [("WRITE", {"source_last": 1})] * 6))
    with pytest.raises(VerifyError, match="a vector arrives at the full FIFO of tile 1 link 0"):
        verify(PAIR, binary)


def test_single_changes_of_a_product_are_found(rng):
    """Every one-cycle delay of a word is found: nothing in the schedule may slip unnoticed."""
    binary = _matvec(PAIR, 8, 8, rng)
    kinds = {queue.name: queue.kind for queue in queues(NANO)}
    found = total = 0
    for tile in range(2):
        for queue, words in binary.tiles[tile].words.items():
            for at, word in enumerate(words[:-1]):
                insn = decode(NANO, kinds[queue], word)
                if insn.fields["wait"] == 255:
                    continue
                mutant = copy.deepcopy(binary)
                fields = {**insn.fields, "wait": insn.fields["wait"] + 1}
                mutant.tiles[tile].words[queue][at] = encode(NANO, kinds[queue], insn.op, **fields)
                total += 1
                try:
                    verify(PAIR, mutant)
                except VerifyError:
                    found += 1
    # A wait behind the last issue of a step shifts nothing in a single step.
    assert total > 50
    assert found >= total - len(binary.tiles[0].words) - len(binary.tiles[1].words)
