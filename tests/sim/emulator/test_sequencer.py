"""Expansion of words into issues against stepping through them cycle by cycle."""

import pytest

from hdl.arch import isa
from hdl.arch.presets import DEMO, NANO
from sim.emulator import sequencer
from sim.emulator.program import parse
from tests.sim.emulator.naive_icu import ICU_FAULT, queue_cycles
from tests.sim.emulator.test_random import random_words

KINDS = ("mem_read", "mem_write", "mxm_weight", "mxm_act", "recv")


def stepped(cfg, kind, words, table, first_step, steps, cycles):
    """(cycle, word, indices, step) of all issues, the halting cycle, whether it was a fault."""
    found, fault, cycle = [], False, 0
    source = queue_cycles(cfg, kind, words, table, first_step, steps)
    for cycle, happens in enumerate(source):
        if happens == ICU_FAULT:
            return found, cycle, True
        if happens is not None:
            word, _, _, indices, step, _ = happens
            found.append((cycle, word, tuple(indices), step))
        if cycle == cycles:
            return None
    return found, cycle + 1 if found or cycle else 0, fault


def expanded(cfg, kind, words, table, first_step, steps):
    program = parse(cfg, kind, words)
    source = sequencer.Sequencer(cfg, kind, program, table, first_step, steps)
    found = []
    count = len(isa.KINDS[kind].indices)
    for issues, until in source.chunks():
        assert not found or issues.cycle[0] > found[-1][0]
        assert issues.cycle[-1] < until
        for cycle, number, *indices, step in zip(
                issues.cycle.tolist(), issues.source.tolist(), *issues.indices.tolist(),
                issues.step.tolist(), strict=True):
            assert not any(indices[count:])
            found.append((cycle, program.sources[number].word, tuple(indices[:count]), step))
    return found, source.halt, not program.valid


@pytest.mark.parametrize("limit", [1, 4, 20, 1 << 13])
@pytest.mark.parametrize("cfg", [NANO, DEMO], ids=["nano", "demo"])
def test_expansion_is_the_list_of_issues(rng, monkeypatch, cfg, limit):
    """However much is expanded at once."""
    monkeypatch.setattr(sequencer, "_LIMIT", limit)
    compared, faults = 0, 0
    while compared < 100:
        kind = KINDS[compared % len(KINDS)]
        words = random_words(rng, cfg, kind, 4)
        table = [(0, 0, 0)] + [(int(rng.integers(0, 3)), int(rng.integers(0, 8)),
                                int(rng.integers(-3, 4))) for _ in range(7)]
        first_step, steps = int(rng.integers(0, 100)), int(rng.integers(1, 4))
        expected = stepped(cfg, kind, words, table, first_step, steps, 3000)
        if expected is None:
            continue
        assert expanded(cfg, kind, words, table, first_step, steps) == expected
        compared += 1
        faults += expected[2]
    assert 0 < faults < 50
