"""The programs that are compared: messages, collectives and a layer, for planned links and for a
conventional network."""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import numpy as np

from compiler.collectives import collective_program
from compiler.decoder.compilation import Compilation
from compiler.decoder.exchange import deliver
from compiler.decoder.machine import Machine
from compiler.lower.builder import Builder
from compiler.lower.chain import At
from compiler.lower.layout import vector_quads
from compiler.packets import (
    MessageBuilder,
    PacketCompilation,
    Stages,
    complete_tensors,
    packet_collective,
)
from compiler.plan import stepped
from compiler.program import from_plan
from compiler.reference import PlainModel
from compiler.schedule.listing import schedule
from sim.collectives import expected, operands, result_of
from sim.decoding import written_vectors

__all__ = ["COMPLETE", "KINDS", "PACKETS", "SCHEDULED", "Case", "collective", "layer", "message"]

#: Planned links; the same, but a tensor leaves when it is complete; a conventional network.
KINDS = SCHEDULED, COMPLETE, PACKETS = "scheduled", "whole tensors", "packets"
#: What makes each tensor that a layer exchanges, and the exchange: operations of the compiler.
PRODUCTS = {"attended": ("attention output", "exchange attended"),
            "o": ("o projection", "exchange o"), "gated": ("gated network", "exchange gated"),
            "down": ("down projection", "exchange down")}


@dataclass(frozen=True)
class Case:
    """A program and what is to be known of it.

    Attributes
    ----------
    name, kind : str
    program : Program
    steps : int
    agrees : callable
        Whether an `Observation` has the right results.
    finish : callable
        The cycle of an `Observation` in which the last result of the first step is written.
    starts : list of list of int, or None
        As of `sim.conformance.stages.check_stages`; None where every cycle is planned.
    spans : dict
        By product of a layer, both by tile, in the tile's time, None where there is nothing: the
        last cycle of what makes it, and the last in which its exchange writes.
    """

    name: str
    kind: str
    program: object
    steps: int
    agrees: object
    finish: object
    starts: list | None = None
    spans: dict = field(default_factory=dict)


def message(system, kind, vectors, sources=(0,), target=1, seed=1):
    """``vectors`` fp32 vectors from the SRAM of each of ``sources`` to that of ``target``, all at
    once."""
    data = np.random.default_rng([seed, vectors]).integers(
        -2**31, 2**31, (len(sources) * vectors, system.tile.lanes)).astype(np.int32)
    builder = (MessageBuilder if kind == PACKETS else Builder)(system)
    # all of a source lie in one quad, so that the last vector has as far to go as the first
    first, *_, last = vector_quads(system.tile)
    planes = np.ascontiguousarray(data.view(np.uint8).reshape(*data.shape, 4).transpose(2, 0, 1))
    builder.memory.place("y0", target, last, len(data))
    machine = Machine(system)
    for index, source in enumerate(sources):
        mine = slice(index * vectors, (index + 1) * vectors)
        builder.memory.place("x0", source, first, vectors, planes[:, mine])
    for number, index in product(range(vectors), range(len(sources))):
        to = index * vectors + number
        deliver(builder, machine, f"vector {to}", sources[index], At(first, number),
                {target: At(last, to)})
    if kind != PACKETS and machine.relays:
        builder.reorder_wires()
    if kind == PACKETS:
        body = Stages(builder)
        body.park(body.queues)
    else:
        body = schedule(system.tile, builder.clusters, builder.edges)
    program = from_plan(stepped(system, body), builder.memory)

    def agrees(observed):
        return np.array_equal(result_of(program, observed.sram, target, data), data)

    return Case(f"message {vectors}", kind, program, 1, agrees, _last_write,
                body.starts if kind == PACKETS else None)


def collective(system, kind, name, algorithm, vectors, seed=1):
    """A collective of int32 vectors."""
    data = operands(system, name, vectors, np.random.default_rng([seed, vectors]))
    wanted, starts = expected(name, data), None
    if kind == PACKETS:
        plan, memory, body = packet_collective(system, name, algorithm, data)
        starts = body.starts
    else:
        plan, memory = collective_program(system, name, algorithm, data)
    program = from_plan(plan, memory)

    def agrees(observed):
        return all(np.array_equal(result_of(program, observed.sram, tile, want), want)
                   for tile, want in enumerate(wanted))

    return Case(f"{name} {algorithm} {vectors}", kind, program, 1, agrees, _last_write, starts)


def _last_write(observed):
    return int(observed.events.writes["cycle"].max())


class _Complete(Compilation):
    """Planned links, but a tensor leaves when it is complete."""

    def schedule(self, builder):
        """See `Compilation`."""
        complete_tensors(builder)
        return super().schedule(builder)


def layer(system, kind, model, inputs, *, positions=None, shards=None, batch=1, search=True):
    """One layer of a model.

    Parameters
    ----------
    inputs : array of float32 (steps, hidden)
        Of every sequence of a batch.
    """
    made = {SCHEDULED: Compilation, COMPLETE: _Complete, PACKETS: PacketCompilation}[kind]
    compilation = made(system, model, positions or len(inputs), search=search, shards=shards,
                       batch=batch)
    program = compilation.layers(inputs)
    wanted = PlainModel(model, positions or len(inputs), program.shards).layers(inputs)
    starts = compilation.starts if kind == PACKETS else None
    return Case(f"layer on {system.tiles}, batch {batch}", kind, program, len(inputs),
                partial(_layers_agree, program, wanted), partial(_layer_ends, program), starts,
                _spans(compilation))


def _layers_agree(program, wanted, observed):
    """Whether all tiles have the residual stream of the plain model behind the layer."""
    # three times a step: the input, behind attention, behind the gated network
    streams = written_vectors(program, observed.events.writes, "x")[2::3]
    tiles = streams.reshape(len(wanted), program.system.tiles, -1)[..., :wanted.shape[1]]
    return all(np.array_equal(tiles[:, tile].view(np.uint32), wanted.view(np.uint32))
               for tile in range(program.system.tiles))


def _layer_ends(program, observed):
    """The cycle in which the first step's residual stream behind the layer is whole."""
    writes, mems, last = observed.events.writes, program.system.tile.slices("mem"), 0
    for tile in range(program.system.tiles):
        symbol = program.symbols[f"shared.x@{tile}"]
        mine = writes[(writes["tile"] == tile)
                      & np.isin(writes["unit"], [mems.index(name) for name in symbol.slices])
                      & (writes["address"] >= symbol.address)
                      & (writes["address"] < symbol.address + symbol.words)]
        # three times a step: the input, behind attention, behind the gated network
        last = max(last, int(np.sort(mine["cycle"])[3 * symbol.words * len(symbol.slices) - 1]))
    return last


def _spans(compilation):
    """`Case.spans` of the last region of a compilation of layers."""
    region = compilation.regions[-1]
    first = sum(one.body.end for one in compilation.regions[:-1])
    last = {True: defaultdict(int), False: defaultdict(int)}        # writes alone, or all
    start = region.body.start
    for cluster, operation in zip(region.builder.clusters, region.builder.operations, strict=True):
        for slot in cluster.slots:
            key, at = (operation, cluster.tile), first + start[cluster] + slot.offset
            last[False][key] = max(last[False][key], at)
            if slot.op == "WRITE":
                last[True][key] = max(last[True][key], at)
    tiles = range(compilation.system.tiles)
    return {name: ([last[False].get((makes, tile)) for tile in tiles],
                   [last[True].get((exchange, tile)) for tile in tiles])
            for name, (makes, exchange) in PRODUCTS.items()}
