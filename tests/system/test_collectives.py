"""Collectives on RTL: every event as planned and every sum right, in two runs without reset."""

from dataclasses import replace

import numpy as np
import pytest

from compiler.plan import expand
from hdl.arch.config import PortConfig, all_to_all, ring
from hdl.arch.presets import NANO
from sim.collectives import compile_collective, expected, operands, result_of
from sim.conformance import check
from sim.emulate import run_emulator
from sim.events import Events
from sim.rtl.build import build_rtl
from sim.rtl.run import run_rtl

TILE = replace(NANO, floorplan=("mem0", "mem1", "mem2", "mem3", "vxm", "c2c", "mem4", "mem5",
                                "mem6", "mem7"), ports=(PortConfig(bytes=2, fifo=8),) * 2)


@pytest.mark.parametrize("name,system,algorithm", [
    ("collective", all_to_all(TILE, 3, 5), "two_shot"),
    ("collective-ring", ring(TILE, 3, 5), "ring")])
def test_sums_are_right_and_as_planned_in_two_runs(name, system, algorithm, rng, seed, tmp_path):
    data = operands(system, "all_reduce", 4, rng)
    program = compile_collective(system, "all_reduce", algorithm, data)
    runs = [(0, 1), (1, 1)]
    emulator = run_emulator(system, program.binary, garbage=seed, runs=runs)
    rtl = run_rtl(build_rtl(system, name=name), system, program.binary, run_dir=tmp_path,
                  seed=seed, runs=runs).runs
    assert len(rtl) == len(runs)
    for planned, observed in zip(emulator, rtl, strict=True):
        report = check(system, program.binary, plan=Events(**expand(program.plan, 1)),
                       emulator=planned, rtl=observed)
        assert report.ok, report.lines()
        for tile, want in enumerate(expected("all_reduce", data)):
            np.testing.assert_array_equal(result_of(program, observed.sram, tile, want), want)
