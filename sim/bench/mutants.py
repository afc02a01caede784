"""Single mutations of what a run is made of: plan, emulator input, RTL input, links of the RTL.

A mutant changes one thing on one side; everything else is shared with the unmutated run.  Opcodes
are equally likely, however many words of each a program has.
"""

from dataclasses import dataclass, replace

from hdl.arch import isa
from hdl.arch.queues import queues

__all__ = ["SIDES", "Mutant", "Workload", "mutants"]

#: What a mutant may be applied to.
SIDES = ("plan", "emulator", "RTL", "hardware")
#: How often each is chosen.
_SHARES = (0.2, 0.3, 0.35, 0.15)


@dataclass(frozen=True)
class Workload:
    """A program that is mutated.

    ``reads`` are the SRAM words that it reads: (tile, slice, address).  ``machine`` is the
    `SystemConfig` that runs it: ``system``, or one of which ``system`` is a part.
    """

    name: str
    system: object
    plan: object
    binary: object
    reads: tuple
    machine: object

    @property
    def latencies(self):
        """Link latencies, in cycles."""
        return tuple(link.latency for link in self.system.links)


@dataclass(frozen=True)
class Mutant:
    """One mutation.

    Attributes
    ----------
    side : str
        One of `SIDES`: the only side that is changed.
    what : str
        The change.
    plan, binary, latencies
        Those of the mutated side; the others are the workload's own objects.
    """

    workload: Workload
    side: str
    what: str
    plan: object
    binary: object
    latencies: tuple


def mutants(rng, workloads, count):
    """``count`` random mutants; each differs from all others.

    Parameters
    ----------
    rng : numpy.random.Generator
    workloads : list of Workload
    count : int

    Returns
    -------
    list of Mutant
    """
    found = {}
    while len(found) < count:
        workload = workloads[rng.integers(len(workloads))]
        side = str(rng.choice(SIDES, p=_SHARES))
        if side == "plan":
            what, plan = _mutated_plan(rng, workload)
            changed = {"plan": plan}
        elif side == "hardware":
            if not any(name.endswith(".send") for name in workload.binary.tiles[0].words):
                continue
            what, latencies = _mutated_latencies(rng, workload)
            changed = {"latencies": latencies}
        else:
            what, binary = _mutated_binary(rng, workload)
            changed = {"binary": binary}
        if what is not None:
            parts = {"plan": workload.plan, "binary": workload.binary,
                     "latencies": workload.latencies, **changed}
            found.setdefault((workload.name, side, what),
                             Mutant(workload, side, what, **parts))
    return list(found.values())


def _mutated_latencies(rng, workload):
    link = int(rng.integers(len(workload.latencies)))
    old = workload.latencies[link]
    new = old + int(rng.choice([-3, -2, -1, 1, 2, 3]))
    if new < 1:
        return None, None
    latencies = list(workload.latencies)
    latencies[link] = new
    return f"link {link}: latency {new} for {old}", tuple(latencies)


def _mutated_binary(rng, workload):
    """A change in one word, table or SRAM word of one tile."""
    change = rng.choice(["flip", "flip", "flip", "swap", "drop", "table", "sram"])
    binary = replace(workload.binary, tiles=[_copied_tile(t) for t in workload.binary.tiles])
    if change == "sram":
        what = _flip_sram(rng, workload, binary)
    elif change == "table":
        what = _flip_table(rng, workload, binary)
    else:
        what = _change_word(rng, workload, binary, change)
    return what, binary


def _copied_tile(tile):
    return replace(tile, words={name: list(words) for name, words in tile.words.items()},
                   tables=dict(tile.tables),
                   sram={name: dict(runs) for name, runs in tile.sram.items()})


def _copied_region(region):
    return replace(region, issues=list(region.issues),
                   children=[_copied_region(child) for child in region.children])


def _choose(rng, items):
    return items[int(rng.integers(len(items)))] if items else None


def _choose_by_op(rng, items, op):
    """One of ``items``, all values of ``op`` being equally likely."""
    by_op = {}
    for item in items:
        by_op.setdefault(op(item), []).append(item)
    return _choose(rng, by_op[_choose(rng, sorted(by_op))])


def _kinds(workload):
    return {queue.name: queue.kind for queue in queues(workload.system.tile)}


def _change_word(rng, workload, binary, change):
    kinds = _kinds(workload)
    tile, name, at, _ = _choose_by_op(rng, [
        (tile, name, at, isa.KINDS[kinds[name]].ops(word & (1 << isa.OP_BITS) - 1).name)
        for tile, content in enumerate(binary.tiles) for name, words in content.words.items()
        for at, word in enumerate(words)], lambda place: place[-1])
    words = binary.tiles[tile].words[name]
    where = f"tile {tile} {name} word {at}"
    if change == "drop":
        if len(words) == 1:
            return None
        del words[at]
        return f"{where}: left out"
    if change == "swap":
        if at + 1 >= len(words) or words[at] == words[at + 1]:
            return None
        words[at:at + 2] = words[at + 1], words[at]
        return f"{where}: swapped with the next"
    bit = int(rng.integers(isa.word_bits(workload.system.tile, kinds[name])))
    words[at] ^= 1 << bit
    return f"{where}: bit {bit} flipped"


def _flip_table(rng, workload, binary):
    chosen = _choose(rng, [(tile, name, entry) for tile, content in enumerate(binary.tiles)
                           for name, table in content.tables.items()
                           for entry in range(1, len(table))])
    if chosen is None:
        return None
    tile, name, entry = chosen
    table = list(binary.tiles[tile].tables[name])
    layout = isa.table_layout(workload.system.tile, _kinds(workload)[name])
    members = [(field, shape.width) for field, shape in layout]
    part = int(rng.integers(3))
    field, width = members[part]
    bit = int(rng.integers(width))
    values = list(table[entry])
    values[part] = (values[part] & (1 << width) - 1) ^ 1 << bit
    if field == "step" and values[part] >> width - 1:
        values[part] -= 1 << width
    table[entry] = tuple(values)
    binary.tiles[tile].tables[name] = table
    return f"tile {tile} {name} table entry {entry}: {field} bit {bit} flipped"


def _flip_sram(rng, workload, binary):
    lanes = workload.system.tile.lanes
    image = {(tile, name, address + i): (address, i) for tile, content in enumerate(binary.tiles)
             for name, runs in content.sram.items() for address, data in runs.items()
             for i in range(len(data) // lanes)}
    tile, name, word = _choose(rng, [place for place in workload.reads if place in image])
    address, i = image[tile, name, word]
    bit = int(rng.integers(8 * lanes))
    data = bytearray(binary.tiles[tile].sram[name][address])
    data[i * lanes + bit // 8] ^= 1 << bit % 8
    binary.tiles[tile].sram[name][address] = bytes(data)
    return f"tile {tile} {name} SRAM word {word}: bit {bit} flipped"


def _mutated_plan(rng, workload):
    """A change of one issue or one region of the plan."""
    plan = replace(workload.plan, root=_copied_region(workload.plan.root))
    cfg = workload.system.tile
    if rng.random() < 0.1:
        return _mutated_region(rng, plan), plan
    region, at = _choose_by_op(rng, [(region, at) for region, _, _ in plan.root.walk()
                                     for at in range(len(region.issues))],
                               lambda place: place[0].issues[place[1]].op)
    issue = region.issues[at]
    where = f"tile {issue.tile} {issue.queue} {issue.op} at {issue.start}"
    change = rng.choice(["start", "drop", "again", "index", "word", "tile", "terms"])
    if change == "drop":
        del region.issues[at]
        return f"{where}: left out", plan
    if change == "again":
        region.issues.append(replace(issue, start=issue.start + 1))
        return f"{where}: once more, a cycle later", plan
    if change == "start":
        by = int(rng.choice([-2, -1, 1, 2]))
        changed = replace(issue, start=issue.start + by)
        what = f"{by:+d} cycles"
    elif change == "tile":
        if workload.system.tiles == 1:
            return None, None
        changed = replace(issue, tile=(issue.tile + 1) % workload.system.tiles)
        what = "on the next tile"
    elif change == "word":
        bit = int(rng.integers(isa.word_bits(cfg, _kinds(workload)[issue.queue])))
        changed = replace(issue, word=issue.word ^ 1 << bit)
        what = f"bit {bit} of its word flipped"
    elif change == "index" and issue.index:
        changed = replace(issue, index=(issue.index[0] ^ 1, *issue.index[1:]))
        what = "index bit 0 flipped"
    elif change == "terms" and any(issue.terms):
        changed = replace(issue, terms=tuple(() for _ in issue.terms))
        what = "without what the loops add"
    else:
        return None, None
    region.issues[at] = changed
    return f"{where}: {what}", plan


def _mutated_region(rng, plan):
    loops = [region for region, depth, _ in plan.root.walk() if depth >= 0]
    region = _choose(rng, loops)
    if region.count is not None and rng.random() < 0.5:
        by = int(rng.choice([-1, 1]))
        if region.count + by < 1:
            return None
        region.count += by
        return f"loop at {region.start}: {region.count} iterations"
    if region.count is None and rng.random() < 0.5:
        region.start += 1
        return f"step loop: begins at {region.start}"
    if region.count == 1:
        return None
    region.period += int(rng.choice([-1, 1]))
    return f"loop at {region.start}: period {region.period}"
