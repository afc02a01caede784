"""From a program to one with room for more positions, on a machine that stays loaded.

What does not depend on the context lies in front of what does, at the same addresses in both
programs as long as they have equal shares by layer; so of SRAM little is written anew.
"""

import numpy as np

from hdl.arch import isa
from hdl.arch.queues import queues
from sim.image import word_runs

__all__ = ["differing_words", "held_words", "instruction_bytes"]


def differing_words(old, new):
    """SRAM words that program ``new`` needs and ``old`` has not left there, but for KV caches.

    Parameters
    ----------
    old, new : compiler.program.Program
        Of one model.

    Returns
    -------
    (list, list)
        Words as of `sim.image.word_runs`: of weights and constants, where the images of both
        programs differ; and what depends on the context, all of it.
    """
    constants, context = [], []
    lanes = new.system.tile.lanes
    for number, tile in enumerate(new.binary.tiles):
        records = {symbol.address: name.partition("@")[0].partition(" ")[0]
                   for name, symbol in new.symbols.items()
                   if symbol.tile == number and "." not in name}
        end = old.symbols[f"context@{number}"].address
        for name, runs in tile.sram.items():
            known = _words(old.binary.tiles[number].sram.get(name, {}), lanes)
            for address, content in runs.items():
                mine = _words({address: content}, lanes)
                if records[address] == "context":
                    context += word_runs(number, name, mine)
                elif records[address] != "caches":
                    constants += word_runs(number, name, {
                        at: word for at, word in mine.items()
                        if at >= end or known.get(at) != word})
    return constants, context


def _words(runs, lanes):
    """Words by address."""
    return {address + i: content[i * lanes:(i + 1) * lanes]
            for address, content in runs.items() for i in range(len(content) // lanes)}


def held_words(cfg, sram, words):
    """Whether SRAM holds these words.

    Parameters
    ----------
    sram : list of array
        By tile: uint8 of shape (slices, words, lanes).
    words : list of (int, str, int, bytes)
        As of `sim.image.word_runs`.
    """
    names = cfg.slices("mem")
    return all(np.array_equal(
        sram[tile][names.index(name), address:].reshape(-1)[:len(content)],
        np.frombuffer(content, np.uint8)) for tile, name, address, content in words)


def instruction_bytes(system, binary):
    """Bytes of the words and tables of a `SystemBinary`."""
    cfg, total = system.tile, 0
    for queue in queues(cfg):
        entry = -(-isa.table_layout(cfg, queue.kind).size // 8)
        for tile in binary.tiles:
            total += len(tile.words.get(queue.name, ())) * isa.word_bytes(cfg, queue.kind)
            total += len(tile.tables.get(queue.name, ())) * entry
    return total
