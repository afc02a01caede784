"""Small programs that the mutations are applied to.

For two `nano` tiles (`workloads`):

``matvec``
    A product, half of whose input comes over a link: MEM, MXM, links; no loop.
``copy``
    Vectors between slices: nested loops, table entries, predicates.
``lanes``
    An int8 vector scaled by the VXM, one rotated by the SXM, one summed over its lanes.
``relay``
    Vectors that the other tile sends back with FORWARD, or with RECV as it keeps them; a SELECT.

For the machine of ``make sim`` (`decode_workload`):

``decode``
    Two steps of a small model on two tiles: attention, GATHER, predicates, special functions.
"""

from dataclasses import replace

import numpy as np

from compiler.decoder.program import compile_decoder
from compiler.lower.builder import Builder
from compiler.lower.chain import At, Chain
from compiler.lower.copy import copy_program
from compiler.lower.layout import Memory
from compiler.lower.matvec import matvec_program
from compiler.model.config import LayerConfig, ModelConfig
from compiler.model.weights import random_weights
from compiler.plan import expand, stepped
from compiler.program import from_plan
from compiler.quantise import quantise
from compiler.schedule.listing import schedule
from compiler.schedule.problem import Edge
from compiler.verify import verify
from hdl.arch.config import pair
from hdl.arch.isa import index_bits
from hdl.arch.presets import NANO
from hdl.arch.queues import queues
from hdl.arch.timing import departure, link_arrival, rules
from sim.bench.mutants import Workload
from sim.compiling import machine
from sim.decoding import with_prompt

__all__ = ["LATENCY", "decode_workload", "workloads"]

#: Cycles of the links; long enough to be shortened, short enough to be seen at once.
LATENCY = 5
_STEPS = 2
_SCALE = 0.75
_CONTEXT = 24
_PROMPT = [7]       #: the second step decodes the token that the first has chosen
_DECODE_TILES = 2

_LAYER = LayerConfig(heads=4, kv_heads=2, head_dim=16, window=16, k_eq_v=False, rope_theta=1e4,
                     rope_pairs=8)
#: Two sliding layers, which are one loop, and a full one.
_MODEL = ModelConfig(
    vocab=50, hidden=40, ffn=72, eps=1e-6, softcap=30.0, max_position=_CONTEXT, bos=2,
    layers=(_LAYER, _LAYER, replace(_LAYER, kv_heads=1, head_dim=32, window=None, k_eq_v=True,
                                    rope_theta=1e6, rope_pairs=4)))


def workloads(seed):
    """Those for two `nano` tiles, with operands drawn from ``seed``."""
    rng = np.random.default_rng([seed, 0])
    system = pair(NANO, latency=LATENCY)
    lanes, slices = NANO.lanes, len(NANO.slices("mem"))
    weights = rng.integers(-128, 128, (2 * lanes + 1, lanes + 1)).astype(np.int8)
    vector = rng.integers(-32639, 32640, len(weights))
    contents = rng.integers(0, 256, (system.tiles, slices, 6, lanes), np.uint8)
    return [_assembled("matvec", *matvec_program(system, weights, vector)),
            _assembled("copy", *copy_program(system, contents, 3, 2)),
            _assembled("lanes", *_lanes_program(system, contents)),
            _assembled("relay", *_relay_program(system, contents))]


def decode_workload(seed):
    """A decode with weights drawn from ``seed``, for a part of `sim.compiling.machine`."""
    rng = np.random.default_rng([seed, 3])
    texts = [rng.integers(0, _MODEL.vocab, _MODEL.max_position) for _ in range(2)]
    whole = machine()
    model = quantise(random_weights(_MODEL, seed), texts, whole.tile.lanes, late_norms=True)
    program = compile_decoder(whole.restrict(_DECODE_TILES), model, _CONTEXT)
    return _workload("decode", with_prompt(program, _PROMPT, _STEPS), whole)


def _assembled(name, plan, memory):
    program = from_plan(plan, memory)
    program.binary = replace(program.binary, steps=_STEPS)
    return _workload(name, program, program.system)


def _workload(name, program, whole):
    system, binary = program.system, program.binary
    verify(system, binary)
    reads = set()
    issues = expand(program.plan, _STEPS)["issues"]
    for number, queue in enumerate(queues(system.tile)):
        if queue.kind == "mem_read":
            width, = index_bits(system.tile, queue.kind)
            mine = issues[issues["unit"] == number]
            reads |= {(int(tile), queue.slice, int(index) & (1 << width) - 1)
                      for tile, index in zip(mine["tile"], mine["index"], strict=True)}
    return Workload(name, system, program.plan, binary, tuple(sorted(reads)), whole)


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
    return stepped(system, schedule(cfg, builder.clusters, builder.edges)), builder.memory


def _relay_program(system, contents):
    """Tile 0 sends words to tile 1, which sends them back and to its host, and keeps every other
    one; tile 1 takes what is positive of a word, and 5 elsewhere."""
    cfg = system.tile
    memory = Memory(system)
    names = cfg.slices("mem")
    sources, targets = zip(*((memory.place("source", tile, names, 6, contents[tile]),
                              memory.place("target", tile, names, 6))
                             for tile in range(system.tiles)), strict=True)
    clusters, edges, before = [], [], ()
    onward = [0, len(cfg.ports)]        # link 0 and the host's
    for word in range(3):
        out = Chain(cfg, f"send {word}", 0)
        out.send(out.read(At(("mem0",), sources[0].address + word)), [0])
        hop = Chain(cfg, f"pass on {word}", 1)
        if word % 2:
            hop.write(hop.recv(0, links=onward), At(("mem0",), targets[1].address + word))
        else:
            hop.forward(0, onward)
        back = Chain(cfg, f"receive {word}", 0)
        back.write(back.recv(0), At(("mem3",), targets[0].address + word))
        clusters += [out.cluster(), hop.cluster(), back.cluster()]
        hops = [next(slot for slot in cluster.slots if slot.op in ("SEND", "FORWARD", "RECV"))
                for cluster in clusters[-3:]]
        edges += [Edge(slot, later, _flight(system, slot)) for slot, later
                  in zip(hops, hops[1:], strict=False)]
        edges += [Edge(slot, later, 1) for slot, later in zip(before, hops, strict=False)]
        before = hops
    chosen = Chain(cfg, "select", 1)
    value = chosen.alu("FROM_INT8", chosen.read(At(("mem1",), sources[1].address)))
    positive = chosen.alu("MAX", value, 0.0, on=0)
    chosen.write(chosen.alu("TO_INT8", chosen.alu("SELECT", positive, 5.0, on=1)),
                 At(("mem2",), targets[1].address))
    clusters.append(chosen.cluster())
    return stepped(system, schedule(cfg, clusters, edges)), memory


def _flight(system, slot):
    """Cycles from a SEND, FORWARD or RECV that sends on link 0 to the earliest RECV of it."""
    link, kind = system.outgoing(slot.tile, 0), slot.queue.partition(".")[2]
    return link_arrival(system.tile, 0, link.latency, 0, 0, departure(system.tile, kind)) + \
        rules(system.tile).arrival_to_recv
