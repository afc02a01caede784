import re
from collections import Counter

import numpy as np
import pytest

from compiler.plan import expand
from hdl.arch.encoding import decode
from hdl.arch.queues import queues
from sim.bench.mutants import SIDES, mutants
from sim.bench.workloads import decode_workload, workloads


@pytest.fixture(scope="module")
def some():
    return workloads(1)


@pytest.fixture(scope="module")
def found(some):
    return mutants(np.random.default_rng(1), some, 150)


def parts(binary):
    """Every word, table entry and SRAM byte of a binary, by where it is."""
    flat = {}
    for number, tile in enumerate(binary.tiles):
        for name, words in tile.words.items():
            flat |= {(number, name, "word", at): word for at, word in enumerate(words)}
        for name, table in tile.tables.items():
            flat |= {(number, name, "entry", at): entry for at, entry in enumerate(table)}
        for name, runs in tile.sram.items():
            for address, data in runs.items():
                flat |= {(number, name, "byte", address, at): byte
                         for at, byte in enumerate(data)}
    return flat


def events(plan):
    return {kind: Counter(table.tolist()) for kind, table in expand(plan, 2).items()}


def test_every_side_is_mutated(found):
    assert {mutant.side for mutant in found} == set(SIDES)
    assert {mutant.workload.name for mutant in found} == {"matvec", "copy", "lanes", "relay"}
    assert len({(m.workload.name, m.side, m.what) for m in found}) == len(found)


def test_one_side_is_changed_and_no_other(found):
    for mutant in found:
        workload = mutant.workload
        changed = {"plan": mutant.plan is not workload.plan,
                   "binary": mutant.binary is not workload.binary,
                   "latencies": mutant.latencies != workload.latencies}
        wanted = {"plan": "plan", "hardware": "latencies"}.get(mutant.side, "binary")
        assert [name for name, other in changed.items() if other] == [wanted]


def test_one_thing_is_changed(found):
    for mutant in found:
        if mutant.side == "hardware":
            pairs = zip(mutant.latencies, mutant.workload.latencies, strict=True)
            assert sum(new != old for new, old in pairs) == 1
            continue
        if mutant.side == "plan":
            continue
        old, new = parts(mutant.workload.binary), parts(mutant.binary)
        differ = [place for place in old if new.get(place) != old[place]]
        assert new.keys() <= old.keys()
        if mutant.what.endswith("flipped"):
            place, = differ
            if place[2] != "entry":
                assert (old[place] ^ new[place]).bit_count() == 1
        elif mutant.what.endswith("swapped with the next"):
            first, second = differ
            assert (old[first], old[second]) == (new[second], new[first])
        else:
            assert len(old) - len(new) == 1
            queue = differ[0][:3]
            assert all(place[:3] == queue for place in differ)


def test_unmutated_workloads_stay_as_they_are(some, found):
    for workload, fresh in zip(some, workloads(1), strict=True):
        assert parts(workload.binary) == parts(fresh.binary)
        assert events(workload.plan) == events(fresh.plan)


def test_plan_mutants_have_other_events(found):
    mine = [mutant for mutant in found if mutant.side == "plan"]
    assert mine
    equal = [mutant.what for mutant in mine
             if events(mutant.plan) == events(mutant.workload.plan)]
    assert equal == []


def test_mutants_are_reproducible(some, found):
    again = mutants(np.random.default_rng(1), some, 150)
    other = mutants(np.random.default_rng(2), some, 150)
    texts = [[(m.side, m.what) for m in one] for one in (found, again, other)]
    assert texts[0] == texts[1] != texts[2]


def opcodes(workload):
    """Opcode of every word, by tile, queue and number."""
    kinds = {queue.name: queue.kind for queue in queues(workload.system.tile)}
    return {(tile, name, at): decode(workload.system.tile, kinds[name], word).op
            for tile, content in enumerate(workload.binary.tiles)
            for name, words in content.words.items() for at, word in enumerate(words)}


def mutated_opcodes(found):
    """Opcodes of the words that mutants of binaries change."""
    seen, of = set(), {}
    for mutant in found:
        place = re.match(r"tile (\d) (\S+) word (\d+):", mutant.what)
        if place:
            name = mutant.workload.name
            of[name] = of.get(name) or opcodes(mutant.workload)
            seen.add(of[name][int(place[1]), place[2], int(place[3])])
    return seen


def test_opcodes_of_few_words_are_mutated_too(found):
    assert {"FORWARD", "SELECT", "ROTATE"} <= mutated_opcodes(found)


def test_all_parts_of_a_decode_are_mutated():
    of_decode = mutants(np.random.default_rng(3), [decode_workload(1)], 120)
    seen = mutated_opcodes(of_decode)
    assert {"GATHER", "EXP2", "ABC", "LW", "SUM", "CMP_EQ", "WRITE", "SEND", "RECV"} <= seen
    assert len(seen) > 20
    tables = {mutant.what.split()[2] for mutant in of_decode if " table entry " in mutant.what}
    assert any(name.endswith(".write") for name in tables)      # predicates among them
    assert any(name.endswith(".read") for name in tables)
