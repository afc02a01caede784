"""Products compiled for one to four tiles: exact on the emulator, every event as planned."""

from dataclasses import replace

import numpy as np
import pytest

from compiler.assemble import assemble
from compiler.errors import AllocationError, CompileError
from compiler.lower.matvec import matvec_program
from compiler.plan import expand
from compiler.verify import verify
from hdl.arch.config import PortConfig, TileConfig, all_to_all, pair, ring, single
from hdl.arch.presets import DEMO, FPGA, NANO
from sim.emulator.machine import Machine

ROOMY_NANO = replace(NANO, mem_words=512, icu_words=1024)
UNEVEN = TileConfig(lanes=8, streams=8, mem_words=512, accumulators=3, activations=4,
                    floorplan=("mem0", "mem1", "mem2", "mem3", "c2c", "mxm0", "mem4"),
                    ports=(PortConfig(bytes=3), PortConfig(bytes=16), PortConfig(bytes=8)))
#: The four slices nearest to mxm0 lie on both sides of mxm1.
BETWEEN = replace(UNEVEN, floorplan=(
    "mxm0", "c2c", "mem0", "mxm1", "mem1", "mem2", "mem3", "mem4"))
SYSTEMS = {
    "between": single(BETWEEN), "between pair": all_to_all(BETWEEN, 2),
    "nano": single(ROOMY_NANO), "nano pair": pair(ROOMY_NANO, latency=4), "fpga": single(FPGA),
    "demo": single(DEMO), "demo pair": pair(DEMO), "demo 4": all_to_all(DEMO, 4, (3, 7, 16)),
    "uneven 3": all_to_all(UNEVEN, 3, (1, 9)), "demo 2 of 4": all_to_all(DEMO, 4).restrict(2),
}


def _outputs(machine, system, memory, count):
    """The result vector, gathered from all tiles."""
    lanes = system.tile.lanes
    blocks = -(-count // lanes)
    out = np.zeros((blocks, lanes), np.float32)
    for tile in range(system.tiles):
        sram = machine.sram(tile)
        for name, symbol in memory.symbols.items():
            if name.startswith("y.mxm") and symbol.tile == tile:
                number = int(name.removeprefix("y.mxm").split("@")[0])
                planes = [sram[slice_][symbol.address:][:symbol.words] for slice_ in symbol.slices]
                mine = np.stack(planes, axis=-1).copy().view("<f4")[..., 0]
                first = tile + system.tiles * number
                out[first::system.tiles * len(system.tile.slices("mxm"))] = mine
    return out.reshape(-1)[:count]


def _run(system, k, n, rng, steps=1):
    weights = rng.integers(-128, 128, (k, n)).astype(np.int8)
    x = rng.integers(-32639, 32640, k)
    plan, memory = matvec_program(system, weights, x)
    binary, plan = assemble(plan)
    memory.fill(binary)
    binary.steps = steps
    assert verify(system, binary) > 0
    machine = Machine(system, garbage=3)
    machine.load(binary)
    result = machine.start()
    want = (x.astype(object) @ weights.astype(object)).astype(np.float64).astype(np.float32)
    np.testing.assert_array_equal(_outputs(machine, system, memory, n), want)
    assert not any(result.faults) and not result.running
    planned = expand(plan, steps)
    np.testing.assert_array_equal(result.issues, planned["issues"])
    for name in ("writes", "arrivals"):
        for column in planned[name].dtype.names:
            np.testing.assert_array_equal(getattr(result, name)[column], planned[name][column])


@pytest.mark.parametrize("name", SYSTEMS)
def test_products_of_odd_sizes_are_exact_and_as_planned(name, rng):
    lanes = SYSTEMS[name].tile.lanes
    for k, n in ((1, 1), (lanes - 1, lanes + 1), (lanes, 2 * lanes + 1), (2 * lanes + 1, lanes)):
        _run(SYSTEMS[name], k, n, rng)


def test_every_step_does_the_same(rng):
    _run(SYSTEMS["nano pair"], 9, 6, rng, steps=3)


def test_a_larger_product(rng):
    _run(SYSTEMS["demo 4"], 100, 150, rng)


@pytest.mark.parametrize("weights,x,message", [
    (np.zeros((2, 2)), np.zeros(2, int), r"Matrix must be int8 \(K, N\)"),
    (np.zeros((2, 2), np.int8), np.zeros(3, int), r"Matrix must be int8 \(K, N\)"),
    (np.zeros((2, 0), np.int8), np.zeros(2, int), "Matrix must have rows and columns"),
    (np.zeros((1, 1), np.int8), np.array([40000]), "Vector elements must be in -32639..32639"),
])
def test_wrong_operands_are_refused(weights, x, message):
    with pytest.raises(CompileError, match=message):
        matvec_program(single(NANO), weights, x)


def test_a_missing_link_is_named():
    with pytest.raises(CompileError, match="needs a link from tile 0 to tile 2"):
        matvec_program(ring(DEMO, 4), np.ones((16, 16), np.int8), np.ones(16, int))


def test_a_matrix_that_does_not_fit_is_refused_with_the_words_it_needs():
    with pytest.raises(AllocationError, match=r"needs 1,600 bytes of SRAM \(100 words "):
        matvec_program(single(NANO), np.ones((40, 40), np.int8), np.ones(40, int))
