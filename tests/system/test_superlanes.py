"""Tiles of several superlanes, on RTL: every event as planned, and the exact result."""

from dataclasses import replace

import numpy as np
import pytest

from compiler.plan import expand
from hdl.arch.config import pair
from hdl.arch.presets import NANO
from sim.conformance import check
from sim.emulate import run_emulator
from sim.events import Events
from sim.rtl.build import build_rtl
from sim.rtl.run import run_rtl
from tests.system.smoke import smoke_program

#: Three superlanes: each of its 16 columns has three arrays of 16 rows.
SYSTEM = pair(replace(NANO, lanes=48), latency=3)


def test_units_of_several_superlanes_work_together(rng, seed, tmp_path):
    program = smoke_program(SYSTEM, rng)
    emulator, = run_emulator(SYSTEM, program.binary, garbage=seed)
    rtl, = run_rtl(build_rtl(SYSTEM), SYSTEM, program.binary, run_dir=tmp_path, seed=seed).runs
    report = check(SYSTEM, program.binary, plan=Events(**expand(program.plan, 1)),
                   emulator=emulator, rtl=rtl)
    assert report.ok, report.lines()
    assert len(report.comparisons) == 3
    for tile in range(SYSTEM.tiles):
        words = [program.symbols[f"{name}@{tile}"] for name in ("y.mxm0", "turned")]
        before, after = (rtl.sram[tile][NANO.slices("mem").index(word.slices[0]), word.address]
                         for word in words)
        np.testing.assert_array_equal(after, np.roll(before, SYSTEM.tile.lanes // 2 + 1))


def test_waves_of_several_superlanes_are_refused():
    with pytest.raises(ValueError, match="^Build of kind waves must be of tiles of one superlane, "
                                         "not of 48 lanes$"):
        build_rtl(SYSTEM, kind="waves")
