"""Vectors that tiles pass on: as verified, as planned, and where they should be."""

import numpy as np
import pytest

from compiler.errors import CompileError
from compiler.lower.builder import Builder
from compiler.lower.chain import At, Chain
from compiler.plan import expand
from compiler.verify import verify_both
from hdl.arch.timing import link_arrival, rules
from sim.conformance import check
from sim.emulate import run_emulator
from sim.events import Events
from tests.support.relay import SYSTEM, WORDS, contents, kept, relay_program, through, written


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


def test_vectors_that_are_kept_and_passed_on_are_in_both_places(rng):
    words = contents(rng)
    program = relay_program(words, kept)
    sram = run(program, steps=2).sram
    for tile in (1, 2):
        np.testing.assert_array_equal(written(program, sram, tile), words)


@pytest.mark.parametrize("hop", [through, kept])
def test_a_vector_on_its_way_arrives_as_early_as_the_timing_table_says(hop, rng):
    events = expand(relay_program(contents(rng), hop).plan, 1)
    one, two = (events["arrivals"][events["arrivals"]["tile"] == tile]["cycle"] for tile in (1, 2))
    take = one[0] + rules(SYSTEM.tile).arrival_to_recv
    assert two[0] == link_arrival(SYSTEM.tile, 0, SYSTEM.links[0].latency, take)
    assert len(one) == len(two) == WORDS
    # a wire carries one vector every so many cycles; none of the tiles slows that down
    assert two[-1] - two[0] == (WORDS - 1) * SYSTEM.tile.port(0).flits(SYSTEM.tile.lanes)


def test_two_drivers_of_a_wire_are_kept_apart(rng):
    # tile 1 sends words of its own while it passes on those of tile 0
    words = contents(rng)

    def busy(builder, number, at):
        kept(builder, number, at)
        own = Chain(SYSTEM.tile, f"own {number}", 1)
        own.send(own.read(at), [0])
        builder.add(own.cluster())
        taken = Chain(SYSTEM.tile, f"taken {number}", 2)
        taken.forward(0, [0])
        builder.add(taken.cluster())
        back = Chain(SYSTEM.tile, f"back {number}", 0)
        back.write(back.recv(0), At(("mem2",), number))
        builder.add(back.cluster())

    # what tile 1 passes on is what tile 2 forwards, and what it sends itself is what tile 2 keeps
    program = relay_program(words, busy)
    sram = run(program).sram
    np.testing.assert_array_equal(written(program, sram, 2), words)
    np.testing.assert_array_equal(sram[0][2, :WORDS], words)


def test_forward_of_what_nobody_sent_is_refused():
    builder = Builder(SYSTEM)
    chain = Chain(SYSTEM.tile, "early", 1)
    chain.forward(0, [0])
    with pytest.raises(CompileError, match="early: nothing was sent on link 0 to tile 1"):
        builder.add(chain.cluster())
