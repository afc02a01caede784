"""Checks of a program file's contents, before anything is made of them: files are untrusted."""

import numpy as np

from hdl.arch import isa
from hdl.arch.queues import queues

from .bounds import Bounds, RegionBound
from .errors import ProgramError
from .lower.layout import Symbol

__all__ = ["ISSUE", "REGION", "TERM", "bounds_from", "check_plan_arrays", "rows_of", "symbols_from"]

#: Record formats of the plan's arrays.
TERM = np.dtype([("issue", "<u4"), ("index", "i1"), ("level", "i1"), ("shift", "u1"),
                 ("mask", "<u4"), ("step", "<i4")])     #: index -1: the predicate
REGION = np.dtype([("parent", "<i4"), ("start", "<i8"), ("period", "<i8"), ("count", "<i8")])
ISSUE = np.dtype([("region", "<u4"), ("tile", "<u2"), ("queue", "<u2"), ("start", "<i8"),
                  ("word", "u1", (24,)), ("index", "<u4", (2,))])
#: In `REGION`: as many runs as the host asks for.
STEPS = -1

_MOST_CYCLES = 1 << 40
_MOST_ISSUES = 1 << 32      #: of a step


def _require(condition, message):
    if not np.all(condition):
        raise ProgramError(message)


def rows_of(arrays, name, dtype, columns=None):
    """Array ``name``: ``dtype``, of one dimension or with ``columns`` (None: any number, two
    dimensions are then not asked for).

    Raises
    ------
    ProgramError
    """
    _require(name in arrays, f"its array {name} is missing")
    array = arrays[name]
    _require(array.dtype == dtype, f"its array {name} has elements of a wrong type")
    _require(array.ndim == (1 if columns is None else 2)
             and (columns is None or array.shape[1] == columns),
             f"its array {name} has the wrong shape {array.shape}")
    return array


def symbols_from(values, system):
    """`Symbol` by name, of the JSON object ``values``.

    Raises
    ------
    ProgramError
        When one lies outside of the machine.
    """
    cfg = system.tile
    found = {}
    for name, fields in values.items():
        symbol = Symbol(**{**fields, "slices": tuple(fields["slices"])})
        numbers = (symbol.tile, symbol.address, symbol.words)
        _require(all(type(number) is int and number >= 0 for number in numbers)
                 and symbol.tile < system.tiles
                 and set(symbol.slices) <= set(cfg.slices("mem"))
                 and symbol.address + symbol.words <= cfg.mem_words,
                 f"its symbol {name[:40]!r} is no piece of SRAM")
        found[name] = symbol
    return found


def bounds_from(values):
    """`Bounds` of a JSON array.

    Raises
    ------
    ProgramError
    """
    regions, *rest = values
    bounds = Bounds([RegionBound(*region) for region in regions], *rest)
    names = [bounds.model_binds, *(region.binds for region in bounds.regions)]
    numbers = [bounds.model, bounds.barrier, bounds.schedule,
               *(number for region in bounds.regions for number in region[:3])]
    _require(all(isinstance(name, str) for name in names)
             and all(type(number) is int and 0 < number < _MOST_CYCLES for number in numbers),
             "its bounds are no cycles")
    return bounds


def check_plan_arrays(regions, issues, terms, system):
    """Refuse a plan of which no `Plan` can be made, or only one without end.

    Parameters
    ----------
    regions, issues, terms : arrays of `REGION`, `ISSUE`, `TERM`
    system : SystemConfig

    Raises
    ------
    ProgramError
    """
    depth, runs = _check_regions(regions)
    all_queues = queues(system.tile)
    _require(issues["region"] < len(regions), "its plan has an instruction in no region")
    _require(issues["tile"] < system.tiles, "its plan has an instruction on a tile it lacks")
    _require(issues["queue"] < len(all_queues), "its plan has an instruction for no queue")
    _require((issues["start"] >= 0) & (issues["start"] < _MOST_CYCLES),
             "its plan has an instruction outside of all time")
    total = sum(runs[region] * int(count) for region, count
                in enumerate(np.bincount(issues["region"], minlength=len(regions))))
    _require(total <= _MOST_ISSUES, f"a step of its plan has {total} instructions")
    _require(terms["issue"] < len(issues), "its plan has a term of no instruction")
    mine = issues[terms["issue"]]
    indices = np.array([len(isa.KINDS[queue.kind].indices) for queue in all_queues])
    _require((terms["index"] >= -1) & (terms["index"] < indices[mine["queue"]]),
             "its plan has a term of no index")
    limit = np.where(terms["index"] < 0, 0, np.array(depth)[mine["region"]])
    _require((terms["level"] >= 0) & (terms["level"] <= limit) & (terms["shift"] < 32),
             "its plan has a term of no loop around the instruction")


def _check_regions(regions):
    """Depth of each region (the root is -1) and its runs in one step."""
    _require(len(regions) > 1 and tuple(regions[["parent", "count"]][0]) == (-1, 1),
             "its plan does not begin with a root and the steps")
    _require((regions["start"] >= 0) & (regions["start"] < _MOST_CYCLES)
             & (regions["period"] >= 0) & (regions["period"] < _MOST_CYCLES),
             "its plan has a region outside of all time")
    depth, runs = [-1], [1]
    for number, (parent, _, _, count) in enumerate(regions.tolist()[1:], 1):
        _require(0 <= parent < number, f"region {number} of its plan lies in none before it")
        depth.append(depth[parent] + 1)
        _require(count == STEPS if depth[-1] == 0 else 1 <= count < 1 << isa.COUNTER_BITS,
                 f"region {number} of its plan has {count} runs")
        runs.append(runs[parent] * max(1, count))
    return depth, runs
