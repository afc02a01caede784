"""Decoder programs: a model's whole decode, or its layers alone."""

import numpy as np

from ..bounds import bounds_of
from .compilation import UNROLLED, Compilation

__all__ = ["compile_decoder", "compile_layers"]


def compile_decoder(system, model, positions, *, bounds=False, search=True, shards=None, batch=1,
                    consecutive=False, unrolled=UNROLLED, report=None):
    """A model's whole decode: one step a position, from the token to the next token.

    Parameters
    ----------
    system : SystemConfig
    model : QuantisedModel
        Its lanes must be those of the tiles.
    positions : int
        Context: steps that can be run, from step 0 on.
    bounds : bool
        Whether to compute `Program.bounds`, which takes about half as long as the rest.
    search : bool
        Whether to try several orders and to improve the schedule; without, compiling takes a
        fraction of the time, a step some per cent more.
    shards : int or sequence of int, optional
        In how many shares tiles have the positions of a layer, all alike or by layer: a power of
        two that divides the tiles; fewer where it has fewer slots than four for each.  Chosen for
        each layer if None.
    batch : int
        Sequences that go through every step side by side, each at the step's position.
    consecutive : bool
        They are positions of one sequence: number ``j`` of step ``s`` is position ``s * batch +
        j``.  Then ``batch`` must be a power of two that divides ``positions``.
    unrolled : int
        Blocks of a KV cache on a tile up to which attention has no loop (`chunks.attend`).
    report : callable, optional
        Called with a text that says what has just been done, every second or so.

    Returns
    -------
    Program
        On every tile, word ``s`` of symbol ``context.forced tokens`` holds the token of step ``s``
        (fp32 in every lane, byte planes), or -1 to take the one chosen in the step before.  After
        each step ``shared.next token`` holds the chosen token, ``shared.scores`` and
        ``shared.logits`` the tile's part of both, and tile 0 has sent the chosen token to the host.
        Of a batch these are those of sequence 0; a number behind the name says which of the others,
        and tile 0 sends the chosen tokens in order.  Of consecutive positions there is one table of
        forced tokens, by position; none may be left to the tiles.

    Raises
    ------
    CompileError
        When the model cannot be split over the tiles or does not fit.
    """
    compilation = Compilation(system, model, positions, search, shards, batch, consecutive,
                              unrolled, report)
    program = compilation.decoder()
    if bounds:
        program.bounds = bounds_of(compilation, report)
    return program


def compile_layers(system, model, inputs, *, positions=None, search=True, shards=None,
                   apart=False, batch=1, consecutive=False):
    """The decoder layers of a model alone, on given inputs: one step a position.

    Parameters
    ----------
    system, model
        As in `compile_decoder`.
    inputs : array of float32 (steps, hidden)
        Residual stream that enters the first layer at each position.
    positions : int, optional
        Context, if more than there are inputs; these then begin anew after the power of two that
        holds them.
    search, shards
        As in `compile_decoder`.
    apart : bool
        Attention of the one layer apart from what is before and behind it, to be looked at by
        itself: see `compilation.Compilation.layers`.
    batch, consecutive
        As in `compile_decoder`; sequences all have the same inputs.

    Returns
    -------
    Program
        After each step, symbol ``shared.x`` holds the residual stream behind the last layer, on
        every tile.

    Raises
    ------
    CompileError
        When the model cannot be split over the tiles or does not fit.
    """
    inputs = np.asarray(inputs, np.float32)
    positions = positions or len(inputs)
    compilation = Compilation(system, model, positions, search, shards, batch, consecutive,
                              positions if apart else UNROLLED)
    return compilation.layers(inputs, apart)
