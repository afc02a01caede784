"""What a decode has left in the SRAMs of an emulator."""

import numpy as np

__all__ = ["fp32_vector"]


def fp32_vector(system, machine, program, name, size):
    """An fp32 vector of which each tile holds a part, as float32 (size,)."""
    parts = []
    for tile in range(system.tiles):
        symbol = program.symbols[f"shared.{name}@{tile}"]
        sram = machine.sram(tile)
        planes = [sram[slice_][symbol.address:][:symbol.words] for slice_ in symbol.slices]
        parts.append(np.stack(planes, -1).copy().view("<f4").reshape(-1))
    return np.concatenate(parts)[:size]
