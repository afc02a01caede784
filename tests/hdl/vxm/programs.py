"""Issues for tests of the VXM: one by hand, and random programs."""

from dataclasses import replace

import numpy as np

from hdl.arch.config import AluConfig
from hdl.arch.ops import ALU_FEATURE
from hdl.arch.presets import FPGA, NANO
from tests.hdl.vxm.model import BINARY, ENTRY, IMMEDIATE, RESULT, STREAM, UNARY, Issue, delay
from tests.support.exact import CORNERS, INT32_CORNERS

__all__ = ["CONFIGS", "PATTERNS", "issue", "random_program"]

#: Differing depths and features, and a ring of one.
CONFIGS = {
    "nano": NANO,
    "fpga": FPGA,
    "depths": replace(NANO, reduce_depth=1, alus=(
        AluConfig(features=("add",), depth=2), AluConfig(features=("mul", "add"), depth=9),
        AluConfig(features=("special",), depth=5))),
    "one": replace(NANO, streams=12, reduce_depth=3, alus=(
        AluConfig(features=("special", "mul", "add"), depth=3),)),
}
PATTERNS = np.array([*CORNERS, *INT32_CORNERS], np.uint32)

_OPERAND = ("", "_source", "_source_west", "_source_last")


def issue(cfg, cycle, unit, op, *, quad_a=None, quad_b=None, step=0, **fields):
    """`Issue` of ``op``; fields not given are 0, the result goes east onto stream 0."""
    names = [f"a{suffix}" for suffix in _OPERAND] + ["east_en", "west_en", "target"]
    if unit < len(cfg.alus):
        names += [f"b{suffix}" for suffix in _OPERAND] + ["immediate", "keep", "entry"]
    base = dict.fromkeys(names, 0) | {"east_en": 1}
    assert base.keys() >= fields.keys(), fields
    quads = {name: np.asarray(quad, np.uint32)
             for name, quad in (("a", quad_a), ("b", quad_b)) if quad is not None}
    return Issue(cycle, unit, op, base | fields, quads, step)


def available(cfg, unit):
    """Opcodes of a unit that it has the feature for."""
    if unit == len(cfg.alus):
        return ("SUM", "MAX", "MIN")
    return tuple(op for op in (*UNARY, *BINARY)
                 if ALU_FEATURE.get(op) in (None, *cfg.alus[unit].features))


def random_program(cfg, rng, cycles, *, density=0.6, legal=0.95):
    """Issues on all units within ``cycles``; all but ``1 - legal`` of the operands exist."""
    units = range(len(cfg.alus) + 1)
    exists = set()      # (unit, cycle) of results
    issues = []

    def operand(cycle, unit, name):
        kind = int(rng.choice([STREAM, RESULT, RESULT, RESULT, ENTRY, IMMEDIATE, 4]))
        source = int(rng.integers(cfg.streams))
        if kind == RESULT and rng.random() < legal:
            there = [other for other in units if (other, cycle) in exists]
            kind, source = (RESULT, int(rng.choice(there))) if there else (STREAM, source)
        elif rng.random() > legal:
            kind, source = int(rng.integers(8)), int(rng.integers(8))
        return {name: kind, f"{name}_source": source,
                f"{name}_source_west": int(rng.integers(2)),
                f"{name}_source_last": int(rng.integers(2))}

    def quad():
        return np.where(rng.random(cfg.lanes) < 0.5, rng.choice(PATTERNS, cfg.lanes),
                        rng.integers(0, 2**32, cfg.lanes, np.uint32)).astype(np.uint32)

    for cycle in range(cycles):
        for unit in units:
            if rng.random() > density:
                continue
            ops = available(cfg, unit)
            if unit < len(cfg.alus) and rng.random() > legal:
                ops = UNARY + BINARY
            elif (unit - 1) % len(cfg.alus) not in [u for u, c in exists if c == cycle]:
                ops = [op for op in ops if op != "SELECT"]
            op = str(rng.choice(ops))
            fields = operand(cycle, unit, "a")
            if unit < len(cfg.alus):
                fields |= operand(cycle, unit, "b")
                fields |= {"immediate": int(rng.choice(PATTERNS)), "keep": int(rng.integers(2)),
                           "entry": int(rng.integers(4))}
            fields |= {"east_en": int(rng.integers(2)), "west_en": int(rng.integers(2)),
                       "target": int(rng.integers(cfg.streams))}
            issues.append(issue(cfg, cycle, unit, op, quad_a=quad(), quad_b=quad(),
                                step=int(rng.integers(1 << 20)), **fields))
            exists.add((unit, cycle + delay(cfg, unit, op)))
    return issues
