"""Matching two tables of events, as `docs/architecture.md` defines it.

Events of one queue (or slice, or link) are matched by equal cycle: their payload is equal (*equal*)
or not (*wrong*).  What is left is matched by equal payload, in order (*off-cycle*, once for the
pair).  The rest is *missing* (expected only) or *unplanned* (observed only).  Where a table has
several events of one queue in one cycle, those of equal payload are matched first.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["CATEGORIES", "ConformanceError", "Match", "match"]

CATEGORIES = ("missing", "unplanned", "off_cycle", "wrong")

#: Cycles of two tables may span this many, so that queue and cycle fit one 64-bit key.
_MAX_SPAN = 1 << 32


class ConformanceError(ValueError):
    """Tables that cannot be compared."""


@dataclass(frozen=True)
class Match:
    """How two tables of one kind of event correspond.

    Attributes
    ----------
    expected, observed : structured array
        The tables, sorted by tile, unit, cycle.
    equal : int
        Number of events that agree in queue, cycle and payload.
    wrong, off_cycle : int array of shape (n, 2)
        Pairs of an index into ``expected`` and one into ``observed``.
    missing, unplanned : int array of shape (n,)
        Indices into ``expected`` and into ``observed``.
    """

    expected: np.ndarray
    observed: np.ndarray
    equal: int
    wrong: np.ndarray
    off_cycle: np.ndarray
    missing: np.ndarray
    unplanned: np.ndarray

    @property
    def faults(self):
        """Number of differences."""
        return sum(len(getattr(self, category)) for category in CATEGORIES)


def match(expected, observed, payload):
    """`Match` of two tables.

    Parameters
    ----------
    expected, observed : structured array
        With fields ``cycle``, ``tile``, ``unit`` and those of ``payload``.
    payload : tuple of str
        Fields in which matched events must agree: integers, or arrays of bytes.

    Raises
    ------
    ConformanceError
        If a field is missing or of another shape, or the cycles span more than 2**32.
    """
    _check_fields(expected, observed, payload)
    (expected, keys_e), (observed, keys_o) = _sorted(expected, observed)
    # By far most events agree, so pair by queue and cycle first and look at payloads of pairs only.
    left, right = _pair(keys_e, keys_o)
    same = _same(expected, left, observed, right, payload)
    equal = int(np.count_nonzero(same))
    rest_e, rest_o = _without(len(expected), left[same]), _without(len(observed), right[same])
    if not len(rest_e) and not len(rest_o):
        nothing, no_pair = np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
        return Match(expected, observed, equal, no_pair, no_pair, nothing, nothing)
    values_e, values_o = _payload_ids(expected[rest_e], observed[rest_o], payload)
    keys_e, keys_o = keys_e[rest_e], keys_o[rest_o]
    queue_e, queue_o = _queues(expected[rest_e]), _queues(observed[rest_o])
    alive_e, alive_o = np.arange(len(rest_e)), np.arange(len(rest_o))
    pairs = []
    for columns_e, columns_o in (((keys_e, values_e), (keys_o, values_o)),
                                 ((keys_e,), (keys_o,)),
                                 ((queue_e, values_e), (queue_o, values_o))):
        group_e, group_o = _group_ids([c[alive_e] for c in columns_e],
                                      [c[alive_o] for c in columns_o])
        left, right = _pair(group_e, group_o)
        pairs.append(np.stack([rest_e[alive_e[left]], rest_o[alive_o[right]]], axis=1))
        alive_e, alive_o = np.delete(alive_e, left), np.delete(alive_o, right)
    return Match(expected, observed, equal + len(pairs[0]), pairs[1], pairs[2],
                 rest_e[alive_e], rest_o[alive_o])


def _check_fields(expected, observed, payload):
    for table, role in ((expected, "expected"), (observed, "observed")):
        names = table.dtype.names or ()
        for name in ("cycle", "tile", "unit", *payload):
            if name not in names:
                raise ConformanceError(f"Table of {role} events has no field {name!r}")
    for name in payload:
        shapes = expected.dtype[name].shape, observed.dtype[name].shape
        if shapes[0] != shapes[1]:
            raise ConformanceError(f"Field {name!r} has shape {shapes[0]} in the expected events, "
                                   f"{shapes[1]} in the observed: compare machines of equal lanes")


def _queues(table):
    return table["tile"].astype(np.uint64) << np.uint64(16) | table["unit"].astype(np.uint64)


def _sorted(*tables):
    """Each table sorted by tile, unit, cycle, with its keys in that order."""
    filled = [table["cycle"] for table in tables if len(table)]
    low = min((int(cycles.min()) for cycles in filled), default=0)
    span = max((int(cycles.max()) for cycles in filled), default=0) - low + 1
    if span > _MAX_SPAN:
        raise ConformanceError(f"Events span {span} cycles: compare at most {_MAX_SPAN} at once")
    for table in tables:
        key = _queues(table) * np.uint64(span) + (table["cycle"] - low).astype(np.uint64)
        if np.all(key[1:] >= key[:-1]):
            yield table, key
        else:
            order = np.argsort(key, kind="stable")
            yield table[order], key[order]


def _pair(left, right):
    """Indices (into left, into right) of equal keys: the n-th of a key with the n-th, in order."""
    if np.array_equal(left, right):
        everything = np.arange(len(left))
        return everything, everything
    order_l, order_r = np.argsort(left, kind="stable"), np.argsort(right, kind="stable")
    sorted_l, sorted_r = left[order_l], right[order_r]
    rank = np.arange(len(left)) - np.searchsorted(sorted_l, sorted_l, "left")
    place = np.searchsorted(sorted_r, sorted_l, "left") + rank
    found = place < np.searchsorted(sorted_r, sorted_l, "right")
    return order_l[found], order_r[place[found]]


def _same(expected, left, observed, right, payload):
    """Whether the payloads of pairs of events are equal."""
    same = np.ones(len(left), bool)
    for name in payload:
        differs = expected[name][left] != observed[name][right]
        same &= ~(differs.any(axis=1) if differs.ndim > 1 else differs)
    return same


def _without(count, indices):
    keep = np.ones(count, bool)
    keep[indices] = False
    return np.flatnonzero(keep)


def _columns(table, payload):
    """Payload fields as columns of 64-bit numbers."""
    columns = []
    for name in payload:
        field = table[name]
        if field.ndim == 1:
            columns.append(field.astype(np.uint64))
        else:                           # bytes: eight at a time
            padded = np.zeros((len(field), -(-field.shape[1] // 8) * 8), np.uint8)
            padded[:, :field.shape[1]] = field
            columns += list(padded.view(np.uint64).T)
    return columns


def _payload_ids(expected, observed, payload):
    return _group_ids(_columns(expected, payload), _columns(observed, payload),
                      len(expected), len(observed))


def _group_ids(columns_e, columns_o, count_e=None, count_o=None):
    """Numbers that are equal exactly where all columns are, over both sides."""
    if not columns_e:
        return np.zeros(count_e, np.int64), np.zeros(count_o, np.int64)
    columns = [np.concatenate(pair) for pair in zip(columns_e, columns_o, strict=True)]
    order = np.lexsort(columns[::-1])
    new = np.zeros(len(order), bool)
    for column in columns:
        new[1:] |= column[order[1:]] != column[order[:-1]]
    ids = np.empty(len(order), np.int64)
    ids[order] = np.cumsum(new)
    return ids[:len(columns_e[0])], ids[len(columns_e[0]):]
