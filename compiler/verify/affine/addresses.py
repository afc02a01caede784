"""Addresses as affine sets: what LOOPs add to an index, over all iterations, without them.

A LOOP adds ``((i >> shift) & mask) * step``.  It takes few values, and of each only the first
iteration that has it matters here, because time grows with every loop index: the first time of a
sum of such terms is the sum of the first times.
"""

from functools import lru_cache

import numpy as np

__all__ = ["Offsets", "bounds", "first_times", "offsets"]


@lru_cache(maxsize=1 << 10)
def first_times(term, index, count, predicate=None):
    """Values that ``term`` (shift, mask, step) takes in ``count`` iterations from ``index`` on.

    Returns
    -------
    (array, array)
        Values, and the first iteration, from 0 on, that has each; with a ``predicate`` (shift,
        mask, match) only iterations in which it holds count.
    """
    shift, mask, step = term
    at = np.arange(index, index + count, dtype=np.int64)
    number = np.arange(count, dtype=np.int64)
    if predicate is not None:
        holds = (at >> predicate[0] & predicate[1]) == predicate[2]
        at, number = at[holds], number[holds]
    values, first = np.unique((at >> shift & mask) * step, return_index=True)
    return values, number[first]


def bounds(word, path):
    """Least and greatest number that the loops of ``path`` add to the first index of ``word``; a
    predicate is not looked at."""
    low = high = 0
    for level, *term in word.terms[0]:
        values, _ = first_times(tuple(term), path[level].index, path[level].count)
        low, high = low + int(values[0]), high + int(values[-1])
    return low, high


class Offsets:
    """Sums of terms modulo ``modulo + 1``: ``value``, and ``time`` of the first that gives it, in
    cycles behind that of the first iteration of all loops."""

    def __init__(self, modulo):
        self._modulo = modulo
        self.value, self.time = np.zeros((2, 1), np.int64)

    def add(self, values, times):
        """Add one of ``values`` to each sum, at its time."""
        if len(values) == 1 and len(self.value) == 1:
            self.value, self.time = (self.value + values) & self._modulo, self.time + times
            return
        value = (self.value[:, None] + values).reshape(-1) & self._modulo
        time = (self.time[:, None] + times).reshape(-1)
        order = np.lexsort((time, value))
        self.value, first = np.unique(value[order], return_index=True)
        self.time = time[order][first]


def offsets(word, path, modulo):
    """`Offsets` of what the loops of ``path`` add to the first index of ``word`` wherever its
    predicate holds; none if it never does."""
    terms = {level: tuple(term) for level, *term in word.terms[0]}
    found = Offsets(modulo)
    for level, loop in enumerate(path):
        predicate = word.predicate if level == 0 else None
        if level in terms or predicate:
            values, first = first_times(terms.get(level, (0, 0, 0)), loop.index, loop.count,
                                        predicate)
            found.add(values, first * loop.body.period)
    if not path and word.predicate and word.predicate[2]:
        found.add(*np.zeros((2, 0), np.int64))      # the step is 0, so is what is compared
    return found
