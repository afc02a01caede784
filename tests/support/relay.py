"""Vectors that pass through tiles: programs for a ring of three small tiles."""

from dataclasses import replace

import numpy as np

from compiler.lower.builder import Builder
from compiler.lower.chain import At, Chain
from compiler.plan import stepped
from compiler.program import from_plan
from compiler.schedule.listing import schedule
from hdl.arch.config import ring
from hdl.arch.presets import NANO

__all__ = ["SYSTEM", "WORDS", "contents", "kept", "relay_program", "through", "written"]

#: Port 0 leads to the next tile, port 1 to the one before.
SYSTEM = ring(replace(NANO, ports=NANO.ports * 2), 3, latency=5)
WORDS = 7


def contents(rng):
    """What tile 0 sends: array of uint8 (WORDS, lanes)."""
    return rng.integers(0, 256, (WORDS, SYSTEM.tile.lanes), np.uint8)


def relay_program(words, hop):
    """Program in which tile 0 sends ``words`` to tile 1 and ``hop`` passes each on to tile 2, which
    writes them at symbol ``y``.

    Parameters
    ----------
    words : array of uint8 (n, lanes)
    hop : function (Builder, number of the word, At)
        Adds what tile 1 does with a word: the place is word ``n`` of its symbol ``y``.
    """
    builder = Builder(SYSTEM)
    x = builder.memory.place("x", 0, ("mem0",), len(words), [words])
    y = [builder.memory.place("y", tile, ("mem3",), len(words)) for tile in range(3)]
    for number in range(len(words)):
        send = Chain(SYSTEM.tile, f"send {number}", 0)
        send.send(send.read(At(x.slices, x.address + number)), [0])
        builder.add(send.cluster())
        hop(builder, number, At(y[1].slices, y[1].address + number))
        receive = Chain(SYSTEM.tile, f"receive {number}", 2)
        receive.write(receive.recv(0), At(y[2].slices, y[2].address + number))
        builder.add(receive.cluster())
    body = schedule(SYSTEM.tile, builder.clusters, builder.edges)
    return from_plan(stepped(SYSTEM, body), builder.memory)


def through(builder, number, _at):
    """A hop that forwards."""
    chain = Chain(builder.cfg, f"forward {number}", 1)
    chain.forward(0, [0])
    builder.add(chain.cluster())


def kept(builder, number, at):
    """A hop that keeps the word and passes it on in one instruction."""
    chain = Chain(builder.cfg, f"keep {number}", 1)
    chain.write(chain.recv(0, links=[0]), at)
    builder.add(chain.cluster())


def written(program, sram, tile):
    """The words that ``tile`` has at ``y``: array of uint8 (n, lanes)."""
    symbol = program.symbols[f"y@{tile}"]
    unit = SYSTEM.tile.slices("mem").index(symbol.slices[0])
    return sram[tile][unit, symbol.address:symbol.address + symbol.words]
