"""Issues and programs for tests of the MXM, in several sizes."""

import dataclasses

from hdl.arch.presets import DEMO, NANO
from hdl.arch.timing import rules
from tests.hdl.mxm.model import Issue

__all__ = ["SIZES", "abc", "acc", "expected_taps", "fill", "lw", "random_program"]

SIZES = {
    "nano": NANO,
    "eight": dataclasses.replace(NANO, lanes=8, streams=4, accumulators=3, activations=5),
    "demo": DEMO,
    "double": dataclasses.replace(DEMO, lanes=32, accumulators=2, activations=2),
    "wide": dataclasses.replace(DEMO, lanes=48, accumulators=2, activations=2),
}

ABC = {"install": 0, "buffered": 0, "keep": 0, "high": 0, "clear": 0, "source": 0, "source_west": 0,
       "source_last": 0}
ACC = {"mode": 0, "east_en": 1, "east": 0, "west_en": 0, "west": 0}
LW = {"columns": 0, "count_log2": 0, "source": 0, "source_west": 0, "source_last": 0}


def lw(cycle, row, vectors, **fields):
    return Issue(cycle, "LW", {"row": row}, LW | fields, vectors)


def abc(cycle, vector, accumulator=0, activation=0, **fields):
    return Issue(cycle, "ABC", {"accumulator": accumulator, "activation": activation}, ABC | fields,
                 [vector])


def acc(cycle, accumulator=0, **fields):
    return Issue(cycle, "ACC", {"accumulator": accumulator, "activation": 0}, ACC | fields)


def fill(cfg, rng, cycle=0):
    """Issues that define all weights, activations and accumulators, and the cycle behind them."""
    issues = [lw(cycle + r, r, rng.integers(0, 256, (1, cfg.lanes))) for r in range(cfg.lanes)]
    start = cycle + cfg.lanes + 1
    count = max(cfg.accumulators, cfg.activations)
    issues += [abc(start + i, rng.integers(0, 256, cfg.lanes), i % cfg.accumulators,
                   i % cfg.activations, install=1, keep=1, clear=1) for i in range(count)]
    return issues, start + count + rules(cfg).abc_to_acc


def random_program(cfg, rng, cycles):
    issues, start = fill(cfg, rng)
    bits = {"source": cfg.streams, "east": cfg.streams, "west": cfg.streams}

    def draw(fields):
        return {name: int(rng.integers(bits.get(name, 2))) for name in fields}

    density = rng.choice([0.3, 0.7, 1.0])
    for cycle in range(start, start + cycles):
        if rng.random() < density:
            fields = draw(LW) | {"count_log2": int(rng.integers(3))}
            vectors = rng.integers(0, 256, (1 << fields["count_log2"], cfg.lanes))
            issues.append(lw(cycle, int(rng.integers(cfg.lanes)), vectors, **fields))
        if rng.random() < density:
            index = int(rng.integers(cfg.accumulators))
            if rng.random() < 0.6:
                issues.append(abc(cycle, rng.integers(0, 256, cfg.lanes), index,
                                  int(rng.integers(cfg.activations)), **draw(ABC)))
            else:
                issues.append(acc(cycle, index, **draw(ACC) | {"mode": int(rng.integers(3))}))
    return issues


def expected_taps(issues):
    taps = {}
    for issue in issues:
        fields = issue.fields
        if issue.op == "LW" or issue.op == "ABC" and not fields["buffered"]:
            name = "weight_tap" if issue.op == "LW" else "act_tap"
            taps[name, issue.cycle] = (fields["source"], fields["source_west"],
                                       fields["source_last"], fields.get("count_log2", 0))
    return taps
