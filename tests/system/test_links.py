"""Vectors that tiles pass on, on RTL: every event as planned, in two runs without reset."""

import numpy as np
import pytest

from compiler.plan import expand
from sim.conformance import check
from sim.emulate import run_emulator
from sim.events import Events
from sim.rtl.build import build_rtl
from sim.rtl.run import run_rtl
from tests.support.relay import SYSTEM, contents, kept, relay_program, through, written


@pytest.mark.parametrize("hop", [through, kept])
def test_vectors_pass_through_a_tile_as_planned(hop, rng, seed, tmp_path):
    words = contents(rng)
    program = relay_program(words, hop)
    runs = [(0, 1), (1, 2)]
    emulator = run_emulator(SYSTEM, program.binary, garbage=seed, runs=runs)
    rtl = run_rtl(build_rtl(SYSTEM, name="relay"), SYSTEM, program.binary, run_dir=tmp_path,
                  seed=seed, runs=runs).runs
    for number, (first, steps) in enumerate(runs):
        report = check(SYSTEM, program.binary, plan=Events(**expand(program.plan, steps, first)),
                       emulator=emulator[number], rtl=rtl[number])
        assert report.ok, report.lines()
        assert len(report.comparisons) == 3
        np.testing.assert_array_equal(written(program, rtl[number].sram, 2), words)
