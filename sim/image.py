"""Contents of SRAM before a run: garbage wherever the program puts nothing.

Emulator and RTL start from the same words, so that their final contents can be compared whole; and
a program that reads a word nobody wrote behaves otherwise under another seed.
"""

import numpy as np

__all__ = ["garbage", "initial_sram", "word_runs"]


def garbage(seed, tile, unit, words, lanes):
    """Random bytes of shape (words, lanes) that depend on all of the arguments."""
    count = words * lanes
    raw = np.random.PCG64(np.random.SeedSequence([seed, tile, unit])).random_raw(-(-count // 8))
    return raw.astype("<u8").view(np.uint8)[:count].reshape(words, lanes)


def initial_sram(system, binary, seed):
    """Contents of every tile of ``binary``, its images over garbage.

    Parameters
    ----------
    system : hdl.arch.config.SystemConfig
    binary : hdl.arch.binary.SystemBinary
    seed : int
        Not negative.

    Returns
    -------
    list of array
        By tile: uint8 of shape (slices, words, lanes).

    Raises
    ------
    hdl.arch.binary.BinaryError
        If the binary does not fit the system.
    """
    binary.check(system)
    cfg = system.tile
    contents = []
    for number, tile in enumerate(binary.tiles):
        rows = np.stack([garbage(seed, number, unit, cfg.mem_words, cfg.lanes)
                         for unit in range(len(cfg.slices("mem")))])
        for unit, name in enumerate(cfg.slices("mem")):
            for address, run in tile.sram.get(name, {}).items():
                data = np.frombuffer(run, np.uint8).reshape(-1, cfg.lanes)
                rows[unit, address:address + len(data)] = data
        contents.append(rows)
    return contents


def word_runs(tile, name, words):
    """SRAM words of one slice, bytes by address, as runs of neighbours.

    Returns
    -------
    list of (int, str, int, bytes)
        Tile, slice, address, and whole words from there on: what the host writes.
    """
    runs, last = [], None
    for address in sorted(words):
        if address - 1 != last:
            runs.append((address, []))
        runs[-1][1].append(words[address])
        last = address
    return [(tile, name, address, b"".join(content)) for address, content in runs]
