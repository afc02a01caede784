"""The cells of a synthesised design, by unit of the tile."""

import re
from collections import Counter, defaultdict

from hdl.arch import isa
from hdl.arch.queues import queues

__all__ = ["KINDS", "cells_by_unit", "not_inferred", "overflow", "totals", "unit_of"]

#: What is counted, by cell type, and how many of it a cell is.
KINDS = {"LUT4": ("LUT", 1), "CCU2C": ("LUT", 2), "TRELLIS_FF": ("FF", 1),
         "DP16KD": ("block RAM", 1), "MULT18X18D": ("DSP", 1),
         "TRELLIS_DPR16X4": ("LUT RAM", 1)}
#: LUTs that a LUT RAM takes: four that hold bits, two for what writes them.
_LUTS_OF_RAM = 6
_BLOCK_BITS = 18432
_OUTPUTS = {"LUT4": ("Z",), "CCU2C": ("S0", "S1"), "TRELLIS_FF": ("Q",), "PFUMX": ("Z",),
            "L6MUX21": ("Z",)}
_TILE = re.compile(r"(?:^|\.)tile\.([a-z]\w*)")


def unit_of(path):
    """Unit of a hierarchical name: that of the tile, ``tile`` for what is between them, ``board``
    for what is outside it, None for a name without one."""
    if path.startswith("$"):
        return None
    if found := _TILE.search(path):
        return found[1] if "." in path[found.start(1):] else "tile"
    return "board" if "." in path else None


def cells_by_unit(module):
    """Numbers of cells by unit and by what they are: dict of `Counter`.

    Parameters
    ----------
    module : dict
        Of `Synthesis.module`.

    LUTs have lost their names.  They count to the unit of the signal that they drive or, where
    that has no name either, to the unit of what it goes to.
    """
    named = {}
    for name, net in module["netnames"].items():
        unit = None if net["hide_name"] else unit_of(name)
        for bit in net["bits"] if unit else ():
            named.setdefault(bit, unit)
    units, readers, unknown = {}, defaultdict(list), []
    for name, cell in module["cells"].items():
        outputs = _OUTPUTS.get(cell["type"], ())
        driven = [bit for port in outputs for bit in cell["connections"].get(port, ())]
        units[name] = unit_of(name) or next((named[bit] for bit in driven if bit in named), None)
        for port, bits in cell["connections"].items():
            if port not in outputs:
                for bit in bits:
                    readers[bit].append(name)
        if units[name] is None:
            unknown.append((name, driven))
    while unknown:
        left = []
        for name, driven in unknown:
            units[name] = next((units[reader] for bit in driven for reader in readers[bit]
                                if units[reader]), None)
            if units[name] is None:
                left.append((name, driven))
        if len(left) == len(unknown):
            break
        unknown = left
    counts = defaultdict(Counter)
    for name, cell in module["cells"].items():
        if cell["type"] in KINDS:
            kind, number = KINDS[cell["type"]]
            counts[units[name] or "board"][kind] += number
    return dict(counts)


def totals(counts):
    """Sum of `cells_by_unit` over the units; LUT RAMs count as LUTs, too."""
    total = sum(counts.values(), Counter())
    total["LUT"] += _LUTS_OF_RAM * total["LUT RAM"]
    return total


def overflow(counts, part):
    """What a design needs more of than a `Part` has, as text; empty if it fits."""
    total = totals(counts)
    has = {"LUT": part.luts, "FF": part.flip_flops, "block RAM": part.block_rams,
           "DSP": part.multipliers}
    return ", ".join(f"{total[kind]:,} of {number:,} {kind}s" for kind, number in has.items()
                     if total[kind] > number)


def _blocks(words, bits):
    """Block RAMs that a memory needs at least."""
    return -(-words * bits // _BLOCK_BITS)


def not_inferred(cfg, counts):
    """Memories that are no block RAM and products that are no multiplier: one line for each.

    SRAM slices, the instruction words of every queue, and the int8 products of every MXM.
    """
    problems = []
    wanted = {name: _blocks(cfg.mem_words, 8 * cfg.lanes) for name in cfg.slices("mem")}
    wanted |= {f"icu_{queue.name.replace('.', '_')}":
               _blocks(cfg.icu_words, isa.word_bits(cfg, queue.kind)) for queue in queues(cfg)}
    for unit, blocks in wanted.items():
        has = counts.get(unit, Counter())
        if has["block RAM"] < blocks:
            problems.append(f"{unit} has {has['block RAM']} block RAMs, not {blocks}")
    problems += [f"{unit} has {counts[unit]['LUT RAM']} LUT RAMs" for unit in cfg.slices("mem")
                 if counts.get(unit, Counter())["LUT RAM"]]
    for unit in cfg.slices("mxm"):
        products = cfg.lanes * cfg.lanes
        if (has := counts.get(unit, Counter())["DSP"]) < products:
            problems.append(f"{unit} has {has} DSPs, not {products}")
    return problems
