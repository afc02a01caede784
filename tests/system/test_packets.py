"""Collectives over a conventional network on RTL: every sum right, every issue at its distance
behind a release, whatever the network does in between."""

from dataclasses import replace

import numpy as np
import pytest

from compiler.collectives import COLLECTIVES
from compiler.packets import packet_collective
from compiler.program import from_plan
from hdl.arch.config import PortConfig, all_to_all
from hdl.arch.packets import around
from hdl.arch.presets import NANO
from sim.bench.batch import Task, run_batch
from sim.collectives import expected, operands, result_of
from sim.conformance.stages import check_stages
from sim.rtl.build import build_rtl
from sim.rtl.run import run_rtl

TILE = replace(NANO, sync=True, ports=(PortConfig(bytes=4, fifo=64),) * 3, floorplan=(
    "mem0", "mem1", "mem2", "mem3", "vxm", "c2c", "mem4", "mem5", "mem6", "mem7"))
SYSTEM = all_to_all(TILE, 4)
#: Tile 0 reaches tile 2 through tile 1.
NETWORK = around(SYSTEM, latency=5, depth=24, outbox=128)
SETTINGS = [{"chunk": 1, "depth": 4}, {"chunk": 4, "arbiter": 1}, {"chunk": 11, "arbiter": 3},
            {"chunk": 4, "handshake": 0}]


@pytest.fixture(scope="module")
def model():
    return build_rtl(SYSTEM, packets=NETWORK, name="packets")


def compiled(name, algorithm, vectors, rng):
    data = operands(SYSTEM, name, vectors, rng)
    plan, memory, stages = packet_collective(SYSTEM, name, algorithm, data)
    return from_plan(plan, memory), stages.starts, expected(name, data)


def _check(program, starts, wanted, observed):
    found = check_stages(program.plan, starts, observed)
    assert found.ok, found.problems
    for tile, want in enumerate(wanted):
        np.testing.assert_array_equal(result_of(program, observed.sram, tile, want), want)
    return found


def test_collectives_with_small_and_large_packets(model, rng, seed, tmp_path):
    made = [compiled(name, algorithm, vectors, rng) for name in COLLECTIVES
            for algorithm, vectors in (("one_shot", 5), ("ring", 2))]
    tasks = [(case, setting) for case in made for setting in SETTINGS]
    results = run_batch(model, SYSTEM, [
        Task(program.binary, 20_000, knobs=NETWORK.knobs(**setting))
        for (program, *_), setting in tasks], run_dir=tmp_path, seed=seed, network=NETWORK)
    late = {}
    for number, ((case, _), result) in enumerate(zip(tasks, results, strict=True)):
        assert not result.network_faults()
        found = _check(*case, result.runs[0])
        late.setdefault(number // len(SETTINGS), set()).add(
            tuple(int(one.max()) for one in found.late))
    # what the network does shows in the releases and nowhere else
    assert all(len(some) > 1 for some in late.values())


def test_two_runs_without_reset(model, rng, seed, tmp_path):
    program, starts, wanted = compiled("all_reduce", "two_shot", 4, rng)
    result = run_rtl(model, SYSTEM, program.binary, run_dir=tmp_path, seed=seed, network=NETWORK,
                     knobs=NETWORK.knobs(chunk=2), runs=[(0, 1), (1, 1)], limit=20_000,
                     offsets=[0, 40, 7, 90])
    assert len(result.runs) == 2 and not result.network_faults()
    for observed in result.runs:
        _check(program, starts, wanted, observed)
