"""Collectives of every algorithm on every topology: exact, verified both ways, and as planned."""

from dataclasses import replace

import numpy as np
import pytest

from compiler.collectives import (
    ALGORITHMS,
    COLLECTIVES,
    applicable,
    choose,
    collective_program,
    estimate,
)
from compiler.errors import AllocationError, CompileError
from compiler.plan import expand
from compiler.verify import verify_both
from hdl.arch.config import PortConfig, TileConfig, all_to_all, dragonfly, pair, ring, single
from hdl.arch.presets import DEMO, NANO
from sim.collectives import compile_collective, expected, operands, result_of
from sim.conformance import check
from sim.emulate import run_emulator
from sim.events import Events


def demo(ports):
    return replace(DEMO, mem_words=512, ports=DEMO.ports[:1] * ports)


def small(ports, fifo=8):
    """4 lanes, two ALUs, and one quad of slices: a vector turns round in the VXM."""
    return TileConfig(lanes=4, streams=8, mem_words=128, accumulators=4, activations=4,
                      icu_words=512, floorplan=("mem0", "mem1", "mem2", "mem3", "vxm", "c2c"),
                      alus=NANO.alus, ports=(PortConfig(bytes=2, fifo=fifo),) * ports)


SYSTEMS = {
    "pair": pair(demo(1)), "3": all_to_all(demo(2), 3, (3, 40)), "4": all_to_all(demo(3), 4),
    "small 5": all_to_all(small(4), 5, 4), "ring 3": ring(demo(2), 3),
    "small ring 5": ring(small(2), 5, 9), "ring 4": ring(demo(2), 4),
    "dragonfly 2x2": dragonfly(demo(2), 2, 2, 5, 21), "dragonfly 3x2": dragonfly(small(2), 3, 2),
    "narrow ring 4": ring(small(2, fifo=4), 4, 30),
}


def run(system, collective, algorithm, vectors, rng, dtype=np.int32, runs=None):
    """Compile, verify and emulate; returns the cycles from the first issue to behind the last
    write."""
    data = operands(system, collective, vectors, rng, dtype)
    program = compile_collective(system, collective, algorithm, data)
    verify_both(system, program.binary)
    events = expand(program.plan, 1)
    for seen in run_emulator(system, program.binary, garbage=1, runs=runs):
        report = check(system, program.binary, plan=Events(**events), emulator=seen)
        assert report.ok, report.lines()
        for tile, want in enumerate(expected(collective, data)):
            np.testing.assert_array_equal(result_of(program, seen.sram, tile, want), want)
    return int(events["writes"]["cycle"].max()) + 1 - int(events["issues"]["cycle"].min())


@pytest.mark.parametrize("vectors", [1, 5])
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_algorithm_that_applies_is_exact_and_as_planned(name, vectors, rng):
    for collective in COLLECTIVES:
        found = applicable(SYSTEMS[name], collective, vectors)
        assert {"one_shot"} <= {choice.algorithm for choice in found}
        for algorithm, cycles in found:
            taken = run(SYSTEMS[name], collective, algorithm, vectors, rng)
            assert 0.94 <= cycles / taken <= 1.06, (collective, algorithm, cycles, taken)


@pytest.mark.parametrize("tiles", [7, 8])
def test_sums_of_more_operands_than_one_cycle_takes_are_estimated(tiles, rng):
    system = ring(demo(2), tiles)
    taken = run(system, "reduce_scatter", "one_shot", 1, rng)
    assert 0.97 <= estimate(system, "reduce_scatter", "one_shot", 1) / taken <= 1.03


@pytest.mark.parametrize("name,collective,missing", [
    ("4", "all_gather", {"two_shot"}), ("4", "all_reduce", set()),
    ("3", "all_reduce", {"hierarchical"}), ("pair", "all_reduce", {"hierarchical"}),
    ("dragonfly 3x2", "all_reduce", {"ring"}),
    ("dragonfly 2x2", "reduce_scatter", {"two_shot", "ring"})])
def test_algorithms_apply_where_they_should(name, collective, missing):
    found = {choice.algorithm for choice in applicable(SYSTEMS[name], collective, 2)}
    assert found == set(ALGORITHMS) - missing


@pytest.mark.parametrize("name", ["4", "ring 4", "dragonfly 2x2"])
def test_more_vectors_than_fifos_hold_are_exact(name, rng):
    for collective in COLLECTIVES:
        for algorithm, _ in applicable(SYSTEMS[name], collective, 21):
            run(SYSTEMS[name], collective, algorithm, 21, rng)


def test_ways_that_could_wait_for_each_other_in_circles_do_not(rng):
    # over three hops, from group to group and on: room on the next link is not enough
    system = dragonfly(small(4, fifo=4), 4, 4)
    found = applicable(system, "all_reduce", 2)
    assert [choice.algorithm for choice in found] == ["one_shot", "two_shot", "hierarchical"]
    run(system, "all_reduce", "one_shot", 2, rng)


@pytest.mark.parametrize("algorithm", ["one_shot", "two_shot"])
@pytest.mark.parametrize("name", ["4", "small 5", "ring 4"])
def test_float32_is_added_in_the_order_of_the_tiles(name, algorithm, rng):
    run(SYSTEMS[name], "all_reduce", algorithm, 3, rng, np.float32)


def test_two_runs_without_reset_do_the_same(rng):
    for name in ("4", "ring 3"):
        run(SYSTEMS[name], "all_reduce", "two_shot", 4, rng, runs=[(0, 1), (1, 1)])


def test_few_vectors_are_not_slowed_down_by_what_many_need(rng):
    system = SYSTEMS["4"]
    one = run(system, "all_reduce", "one_shot", 1, rng)
    # one vector: READ, the way to the C2C, a vector on the wire, RECV, the way to the VXM, two
    # levels of sums (four operands in one cycle), the way to the SRAM, WRITE
    cfg = system.tile
    assert one == 1 + cfg.hops("mem0", "c2c") + 8 + 16 + 1 + 1 + 1 + 2 * 6 + \
        cfg.hops("vxm", "mem7") + 1 + 1


@pytest.mark.parametrize("name,collective,vectors", [
    ("4", "all_reduce", 1), ("4", "all_reduce", 12), ("ring 4", "all_reduce", 1),
    ("ring 4", "all_reduce", 12), ("dragonfly 2x2", "all_gather", 4),
    ("ring 4", "reduce_scatter", 12)])
def test_the_choice_is_the_fastest(name, collective, vectors, rng):
    system = SYSTEMS[name]
    cycles = {algorithm: run(system, collective, algorithm, vectors, rng)
              for algorithm, _ in applicable(system, collective, vectors)}
    assert len(cycles) > 1
    assert cycles[choose(system, collective, vectors).algorithm] == min(cycles.values())


def test_the_choice_changes_with_size_and_latency():
    few, many = (choose(SYSTEMS["4"], "all_reduce", n).algorithm for n in (1, 32))
    assert (few, many) == ("one_shot", "two_shot")
    roomy = replace(demo(3), ports=(PortConfig(fifo=64),) * 3)
    near, far = (choose(all_to_all(roomy, 4, latency), "all_reduce", 8).algorithm
                 for latency in (16, 200))
    assert (near, far) == ("two_shot", "one_shot")



ZEROS = [np.zeros((2, 16), np.int32)] * 4


@pytest.mark.parametrize("system,collective,algorithm,data,message", [
    (SYSTEMS["4"], "all_gather", "two_shot", [np.zeros((1, 16), np.int32)] * 4,
     "Algorithm two_shot is for all_reduce: use one_shot"),
    (SYSTEMS["dragonfly 2x2"], "all_reduce", "ring", ZEROS,
     "Algorithm ring needs a link from every tile to the next"),
    (SYSTEMS["3"], "all_reduce", "hierarchical", ZEROS[:3],
     "Algorithm hierarchical needs groups of consecutive tiles"),
    (SYSTEMS["4"], "all_reduce", "ring", [zeros.astype(np.float32) for zeros in ZEROS],
     "Algorithm ring adds in another order than that of the tiles"),
    (SYSTEMS["4"], "all_reduce", "tree", ZEROS, "Algorithm must be one of one_shot, two_shot, "),
    (SYSTEMS["4"], "broadcast", "ring", ZEROS, "Collective must be one of all_gather, "),
    (SYSTEMS["4"], "all_reduce", "ring", ZEROS[:3], r"needs arrays \(n, 16\) of int32 or of float"),
    (SYSTEMS["4"], "all_gather", "ring", [*ZEROS[:3], ZEROS[0][:0]],
     "Collective all_gather of 6 vectors needs 2, 2, 1, 1 of the tiles, not 2, 2, 2, 0"),
    (replace(SYSTEMS["4"], links=SYSTEMS["4"].links[:2]), "all_reduce", "one_shot", ZEROS,
     "Collective needs a way over links from tile 0 to tile 3: use another topology"),
    (all_to_all(replace(demo(3), mem_words=4), 4), "all_reduce", "one_shot",
     [np.zeros((9, 16), np.int32)] * 4, "raise TileConfig.mem_words"),
])
def test_what_does_not_apply_is_one_clear_line(system, collective, algorithm, data, message):
    with pytest.raises(CompileError, match=message) as error:
        collective_program(system, collective, algorithm, data)
    assert "\n" not in str(error.value)


def test_tiles_without_quads_or_links_are_refused():
    for function in (choose, lambda *case: estimate(*case[:2], "one_shot", case[2])):
        with pytest.raises(AllocationError, match="need four mem slices on one side"):
            function(pair(NANO), "all_reduce", 1)
        with pytest.raises(CompileError, match="Collective needs at least 2 tiles"):
            function(single(DEMO), "all_reduce", 1)
        with pytest.raises(CompileError, match="needs a way over links from tile 0 to tile 1"):
            function(replace(pair(demo(1)), links=()), "all_reduce", 1)
