"""Which position the vectors of a step have, in terms of the step."""

from typing import NamedTuple

from ..errors import CompileError
from ..plan import Term

__all__ = ["AttentionOrder", "StepPosition", "positions_of"]


class StepPosition(NamedTuple):
    """Position ``(step << bits) + number`` of a vector that goes through every step.

    Attributes
    ----------
    bits : int
        Of a step that has ``1 << bits`` positions of one sequence; 0 where it has one.
    number : int
        Which of them.
    """

    bits: int = 0
    number: int = 0

    def field(self, shift, mask, step):
        """``((position >> shift) & mask) * step`` as a constant and loop terms; ``mask``: ones."""
        low = min(max(self.bits - shift, 0), mask.bit_length())     # bits that `number` decides
        rest = mask >> low
        terms = (Term(0, max(shift - self.bits, 0), rest, step << low),) if rest else ()
        return (self.number >> shift & mask) * step, terms

    def predicate(self, mask, match):
        """Whether ``position & mask == match``: a Term for a WRITE, None for always, False for
        never."""
        known = (1 << self.bits) - 1
        if (self.number ^ match) & mask & known:
            return False
        rest = mask >> self.bits
        return Term(0, 0, rest, match >> self.bits) if rest else None


def positions_of(batch, consecutive, positions):
    """`StepPosition` of each vector of a step.

    Parameters
    ----------
    batch : int
    consecutive : bool
        They are positions of one sequence; otherwise all have the step's.
    positions : int
        Context.

    Raises
    ------
    CompileError
        When positions cannot be dealt out to steps.
    """
    if not consecutive:
        return [StepPosition()] * batch
    if batch & batch - 1:
        raise CompileError(f"Consecutive positions of a step must be a power of two, not {batch}")
    if positions % batch:
        raise CompileError(f"Context must be a multiple of the {batch} positions of a step, not "
                           f"{positions}")
    return [StepPosition(batch.bit_length() - 1, number) for number in range(batch)]


class AttentionOrder:
    """Caches of a layer, and who appends to them and reads them in which order.

    Sequences have caches of their own.  Consecutive positions of one sequence share them: all are
    appended, then all attend together, as each sees what is not behind it.  Where a window makes
    positions replace others that are still needed, one after the other is appended and attends.

    Parameters
    ----------
    batch : int
    consecutive : bool
    replaced : bool
        Positions replace others.

    Attributes
    ----------
    caches : int
        How many there are of each kind.
    groups : list of list of int
        Sequences that attend together.
    together : bool
        There is more than one in a group.
    in_turn : bool
        Each group appends what it has, and attends, behind the group before it.
    """

    def __init__(self, batch, consecutive, replaced):
        numbers = list(range(batch))
        self.caches = 1 if consecutive else batch
        self.in_turn = consecutive and replaced and batch > 1
        self.together = consecutive and not replaced and batch > 1
        self.groups = [numbers] if self.together else [[number] for number in numbers]

    def cache(self, caches, sequence):
        """That of a sequence."""
        return caches[sequence if self.caches > 1 else 0]
