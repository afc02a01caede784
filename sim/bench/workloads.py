"""Small programs for two `nano` tiles that the mutations are applied to.

``matvec``
    A product, half of whose input comes over a link: MEM, MXM, links; no loop.
``copy``
    Vectors between slices: nested loops, table entries, predicates.
``lanes``
    An int8 vector scaled by the VXM, one rotated by the SXM, one summed over its lanes.
"""

from dataclasses import replace

import numpy as np

from compiler.lower.builder import Builder
from compiler.lower.chain import At, Chain
from compiler.lower.copy import copy_program
from compiler.lower.matvec import matvec_program
from compiler.plan import Plan, Region, expand
from compiler.program import from_plan
from compiler.schedule.listing import schedule
from compiler.verify import verify
from hdl.arch.config import pair
from hdl.arch.isa import index_bits
from hdl.arch.presets import NANO
from hdl.arch.queues import queues
from sim.bench.mutants import Workload

__all__ = ["LATENCY", "workloads"]

#: Cycles of the links; long enough to be shortened, short enough to be seen at once.
LATENCY = 5
_STEPS = 2
_SCALE = 0.75


def workloads(seed):
    """All workloads, with operands drawn from ``seed``."""
    rng = np.random.default_rng([seed, 0])
    system = pair(NANO, latency=LATENCY)
    lanes, slices = NANO.lanes, len(NANO.slices("mem"))
    weights = rng.integers(-128, 128, (2 * lanes + 1, lanes + 1)).astype(np.int8)
    vector = rng.integers(-32639, 32640, len(weights))
    contents = rng.integers(0, 256, (system.tiles, slices, 6, lanes), np.uint8)
    return [_workload("matvec", *matvec_program(system, weights, vector)),
            _workload("copy", *copy_program(system, contents, 3, 2)),
            _workload("lanes", *_lanes_program(system, contents))]


def _workload(name, plan, memory):
    program = from_plan(plan, memory)
    plan, binary = program.plan, replace(program.binary, steps=_STEPS)
    verify(plan.system, binary)
    cfg = plan.system.tile
    reads = set()
    issues = expand(plan, _STEPS)["issues"]
    for number, queue in enumerate(queues(cfg)):
        if queue.kind == "mem_read":
            width, = index_bits(cfg, queue.kind)
            mine = issues[issues["unit"] == number]
            reads |= {(int(tile), queue.slice, int(index) & (1 << width) - 1)
                      for tile, index in zip(mine["tile"], mine["index"], strict=True)}
    return Workload(name, plan.system, plan, binary, tuple(sorted(reads)))


def _lanes_program(system, contents):
    cfg = system.tile
    builder = Builder(system)
    for tile in range(system.tiles):
        source = builder.memory.place("source", tile, ("mem0", "mem1", "mem2", "mem3"), 6,
                                      contents[tile])
        target = builder.memory.place("target", tile, ("mem0", "mem1", "mem2", "mem3"), 6)
        for word in range(3):
            scale = Chain(cfg, f"scale {word}", tile)
            value = scale.alu("FROM_INT8", scale.read(At(("mem0",), source.address + word)))
            product = scale.alu("MUL", value, _SCALE)
            scale.write(scale.alu("TO_INT8", product), At(("mem3",), target.address + word))
            builder.add(scale.cluster())
            turn = Chain(cfg, f"turn {word}", tile)
            moved = turn.move("ROTATE", turn.read(At(("mem2",), source.address + word)), "sxm0",
                              amount=1)
            turn.write(moved, At(("mem1",), target.address + word))
            builder.add(turn.cluster())
        total = Chain(cfg, "sum", tile)
        value = total.alu("FROM_INT8", total.read(At(("mem1",), source.address)))
        total.write(total.alu("TO_INT8", total.reduce("MAX", value)),
                    At(("mem2",), target.address))
        builder.add(total.cluster())
    body = schedule(cfg, builder.clusters, builder.edges)
    step = Region(start=0, period=body.end, count=None, issues=body.issues)
    return Plan(Region(0, body.end, 1, children=[step]), system), builder.memory
