"""The host computes the K and V of a prompt and hands them over as the tiles would have them."""

import numpy as np

from compiler.decoder.partition import Partition
from compiler.decoder.slots import Slots, cache_slots, layer_groups
from compiler.reference import PlainModel
from sim.image import word_runs

__all__ = ["cache_words", "host_caches", "made_of"]


def host_caches(model, shards, tokens):
    """K and V of a text by the plain model, which has the machine's numerics.

    Parameters
    ----------
    model : QuantisedModel
    shards : sequence of int
        Of the program: see docs/numerics.md.
    tokens : list of int
        From position 0 on.

    Returns
    -------
    list of (array, array)
        By layer, int8, [positions, kv_heads, head_dim].
    """
    return PlainModel(model, shards=shards).keys_and_values(tokens)


def cache_words(program, model, caches, first, end):
    """SRAM words that hold K and V of positions ``first .. end - 1`` once all are written: where
    and as the tiles would have written them.

    Parameters
    ----------
    program : compiler.program.Program
        Of a decoder.
    model : QuantisedModel
        What it was made of.
    caches : list of (array, array)
        From `host_caches`, of at least ``end`` positions.

    Returns
    -------
    list of (int, str, int, bytes)
        Tile, slice, address, and whole words from there on.
    """
    cfg, found = program.system.tile, {}
    positions = program.symbols["context.forced tokens@0"].words
    layers = iter(zip(caches, program.shards, strict=True))
    for number, group in enumerate(layer_groups(model.layers)):
        mine = [next(layers) for _ in group]
        part = Partition(group[0], program.system.tiles, cfg.lanes, mine[0][1])
        slots = cache_slots(group[0].window, positions) // part.shards
        for tile in range(program.system.tiles):
            stride = program.symbols[f"caches {number}@{tile}"].words // len(group)
            for turn, head in enumerate(part.cached(tile)):
                for values, kind in enumerate(("keys", "values")):
                    rule = Slots(cfg, slots, values=bool(values), first=turn,
                                 shard=(tile % part.shards, part.shards))
                    homes = _homes(program, f"caches {number}.{kind} {head}.", tile)
                    content = np.stack([cache[values][:, head] for cache, _ in mine])
                    _place(found, rule, tile, homes, stride,
                           content.reshape(*content.shape[:2], part.vectors, cfg.lanes),
                           rule.held(first, end).tolist())
    return [run for place, words in sorted(found.items()) for run in word_runs(*place, words)]


def _homes(program, prefix, tile):
    """First word of a cache by the slices that it lies in."""
    return {symbol.slices: symbol.address for name, symbol in program.symbols.items()
            if name.startswith(prefix) and symbol.tile == tile}


def _place(found, rule, tile, homes, stride, content, positions):
    """Note words of one head, [layers, positions, vectors, lanes], by tile and slice, address."""
    for position in positions:
        for vector in range(content.shape[2]):
            slices, turn, word = rule.place(vector, position)
            words = found.setdefault((tile, slices[turn]), {})
            for layer, row in enumerate(content[:, position, vector]):
                words[homes[slices] + layer * stride + word] = row.tobytes()


def made_of(program, model):
    """Whether a program is of this compiler and has the numbers of a model: its gains in front of
    attention, which depend on weights and calibration text."""
    groups = layer_groups(model.layers)
    needed = {f"{name}@{tile}" for tile in range(program.system.tiles)
              for name in ("context", *(f"{kind} {number}" for number in range(len(groups))
                                        for kind in ("layers", "caches")))}
    return len(program.shards) == len(model.layers) and needed <= program.symbols.keys() and \
        all(_has_gains(program, number, group) for number, group in enumerate(groups))


def _has_gains(program, number, group):
    """Whether the layers of a group have their gains in tile 0 of a program."""
    expected = np.stack([layer.attention_gain for layer in group])
    gain = program.symbols.get(f"layers {number}.attention_gain@0")
    start, lanes = program.symbols[f"layers {number}@0"].address, program.system.tile.lanes
    planes = []
    for name in gain.slices if gain else ():
        image = program.binary.tiles[0].sram.get(name, {}).get(start, b"")
        words = np.frombuffer(image, np.uint8).reshape(-1, lanes)
        words = words[:len(words) // len(group) * len(group)].reshape(len(group), -1, lanes)
        planes.append(words[:, gain.address - start:][:, :gain.words])
    if len(planes) != 4 or len({plane.shape for plane in planes}) > 1:
        return False
    values = np.stack(planes, -1).copy().view("<f4").reshape(len(group), -1)
    return np.array_equal(values[:, :expected.shape[1]], expected)
