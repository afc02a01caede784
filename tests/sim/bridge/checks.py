"""What must come out of a tile behind any bridge."""

import numpy as np

from sim.emulate import run_emulator
from sim.image import initial_sram
from sim.products import result_of
from tests.sim.bridge.programs import ECHOED, SIZE, SYSTEM, echo, product

__all__ = ["LIMIT", "check_echo", "check_product"]

LIMIT = 10_000


async def check_product(board, seed):
    """Load, run and read back a product: as in NumPy, and SRAM as in the emulator.

    Returns the program and the `sim.bridge.board.BoardRun`.
    """
    program, expected = product(seed)
    loader = await board.load(program.binary, initial_sram(SYSTEM, program.binary, seed))
    await board.play(loader.clear())
    seen = await board.run(loader, 0, 1, limit=LIMIT)
    assert seen.faults == (0,) and seen.running == () and len(seen.host) == 0
    sram = await board.read_sram(loader)
    np.testing.assert_array_equal(result_of(program, sram, SIZE), expected)
    emulator, = run_emulator(SYSTEM, program.binary, garbage=seed, runs=[(0, 1)], limit=LIMIT)
    np.testing.assert_array_equal(sram[0], emulator.sram[0])
    return program, seen


async def check_echo(board, seed):
    """Vectors to the tile come back, and lie in its SRAM."""
    binary = echo()
    vectors = np.random.default_rng(seed).integers(0, 256, (ECHOED, SYSTEM.tile.lanes), np.uint8)
    vectors[0] = 0          # zeros count too
    loader = await board.load(binary, initial_sram(SYSTEM, binary, seed))
    await board.put(vectors)
    seen = await board.run(loader, 0, 1, limit=LIMIT)
    assert seen.faults == (0,) and seen.running == ()
    np.testing.assert_array_equal(seen.host["data"], vectors)
    unit = SYSTEM.tile.slices("mem").index("mem2")
    np.testing.assert_array_equal((await board.read_sram(loader))[0][unit, 5:5 + ECHOED], vectors)
