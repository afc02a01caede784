"""Vectors that tiles pass on: as verified, as planned, and where they should be."""

import numpy as np
import pytest

from compiler.errors import CompileError
from compiler.lower.builder import Builder
from compiler.lower.chain import Chain
from compiler.plan import expand
from compiler.verify import verify_both
from hdl.arch.timing import link_arrival, rules
from sim.conformance import check
from sim.emulate import run_emulator
from sim.events import Events
from tests.support.relay import SYSTEM, WORDS, contents, relay_program, through, written


def run(program, steps=1):
    program.binary.steps = steps
    verify_both(SYSTEM, program.binary)
    seen, = run_emulator(SYSTEM, program.binary, garbage=1)
    report = check(SYSTEM, program.binary, plan=Events(**expand(program.plan, steps)),
                   emulator=seen)
    assert report.ok, report.lines()
    return seen


def test_forwarded_vectors_arrive_in_order_and_as_planned(rng):
    words = contents(rng)
    program = relay_program(words, through)
    np.testing.assert_array_equal(written(program, run(program, steps=2).sram, 2), words)


def test_a_forwarded_vector_arrives_as_early_as_the_timing_table_says(rng):
    events = expand(relay_program(contents(rng), through).plan, 1)
    one, two = (events["arrivals"][events["arrivals"]["tile"] == tile]["cycle"] for tile in (1, 2))
    take = one[0] + rules(SYSTEM.tile).arrival_to_recv
    assert two[0] == link_arrival(SYSTEM.tile, 0, SYSTEM.links[0].latency, take)
    assert len(one) == len(two) == WORDS
    # a wire carries one vector every so many cycles; none of the tiles slows that down
    assert two[-1] - two[0] == (WORDS - 1) * SYSTEM.tile.port(0).flits(SYSTEM.tile.lanes)


def test_forward_of_what_nobody_sent_is_refused():
    builder = Builder(SYSTEM)
    chain = Chain(SYSTEM.tile, "early", 1)
    chain.forward(0, [0])
    with pytest.raises(CompileError, match="early: nothing was sent on link 0 to tile 1"):
        builder.add(chain.cluster())
