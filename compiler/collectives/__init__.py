"""All-gather, reduce-scatter and all-reduce of vectors as statically scheduled programs."""

from .algorithms import ALGORITHMS, COLLECTIVES, vectors_of
from .bound import END, START, Bound, lower_bound
from .program import Choice, applicable, choose, collective_program, estimate, fastest

__all__ = ["ALGORITHMS", "COLLECTIVES", "END", "START", "Bound", "Choice", "applicable", "choose",
           "collective_program", "estimate", "fastest", "lower_bound", "vectors_of"]
