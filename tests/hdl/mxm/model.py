"""What an MXM does, as `docs/architecture.md` says it, in integers and by the list of its issues.

No pipeline is modelled: every value is found from the issues that count for it by their cycles.
"""

from dataclasses import dataclass, field

import numpy as np

from hdl.arch.timing import rules, timing

__all__ = ["Issue", "Write", "results"]


@dataclass
class Issue:
    """One issue: ``vectors`` is what the streams carry for it (one row each, bytes)."""
    cycle: int
    op: str
    index: dict
    fields: dict = field(default_factory=dict)
    vectors: object = None


@dataclass
class Write:
    """What an ACC puts on its streams: ``values`` are the 32-bit patterns by lane."""
    cycle: int
    east: object        #: stream number, or None
    west: object
    values: list


def _wrap(value, bits):
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _weights(cfg, loads, until):
    """Shadow weights that an ABC sees for which the loads issued before ``until`` count."""
    block = np.zeros((cfg.lanes, cfg.lanes), np.int64)
    for load in sorted(loads, key=lambda load: load.cycle):
        if load.cycle >= until:
            break
        for i in range(1 << load.fields["count_log2"]):
            at = (load.index["row"] + i) % cfg.lanes
            values = np.asarray(load.vectors[i], np.uint8).view(np.int8)
            if load.fields["columns"]:
                block[:, at] = values
            else:
                block[at, :] = values
    return block


def _pattern(value, mode):
    if mode == 1:
        return value >> 16 & 0xFFFFFFFF
    if mode == 2:
        return value & 0xFFFF
    # a double holds every accumulator exactly, so this rounds once, to nearest even
    return int(np.float32(float(value)).view(np.uint32))


def results(cfg, issues):
    """`Write` of every ACC among ``issues`` that writes a stream, by cycle."""
    seen, delay = rules(cfg), timing(cfg)["mxm_act", "ACC"].t_d
    loads = [issue for issue in issues if issue.op == "LW"]
    buffer, files, found = {}, {}, []
    weights = np.zeros((cfg.lanes, cfg.lanes), np.int64)
    sums = []       # (cycle from which an ACC sees it, accumulator, values)
    for issue in sorted((i for i in issues if i.op != "LW"), key=lambda issue: issue.cycle):
        fields, index = issue.fields, issue.index
        if issue.op == "ABC":
            if fields["install"]:
                weights = _weights(cfg, loads, issue.cycle - seen.lw_to_install + 1)
            vector = issue.vectors[0]
            if fields["buffered"]:
                vector = buffer[index["activation"]]
            if fields["keep"]:
                buffer[index["activation"]] = vector
            total = np.asarray(vector, np.uint8).view(np.int8).astype(np.int64) @ weights
            old = [0] * cfg.lanes if fields["clear"] else files[index["accumulator"]]
            files[index["accumulator"]] = [
                _wrap(a + int(s) * (256 if fields["high"] else 1), cfg.accumulator_bits)
                for a, s in zip(old, total, strict=True)]
            sums.append((issue.cycle + seen.abc_to_acc, index["accumulator"],
                         files[index["accumulator"]]))
            continue
        visible = [values for cycle, number, values in sums
                   if cycle <= issue.cycle and number == index["accumulator"]]
        east = fields["east"] if fields["east_en"] else None
        west = fields["west"] if fields["west_en"] else None
        if (east, west) != (None, None):
            found.append(Write(issue.cycle + delay, east, west,
                               [_pattern(value, fields["mode"]) for value in visible[-1]]))
    return found
