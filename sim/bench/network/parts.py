"""The parts of the comparison; each prints its tables and returns rows and problems."""

from dataclasses import replace
from itertools import product

import numpy as np

from compiler.collectives import COLLECTIVES, applicable, fastest
from hdl.arch.timing import rules
from sim.bench.network.fits import catches_up, fit, slower_with_more, tails
from sim.bench.network.programs import (
    COMPLETE,
    KINDS,
    PACKETS,
    SCHEDULED,
    collective,
    layer,
    message,
)
from sim.report.table import table

__all__ = ["batches", "collectives", "contention", "layers", "messages"]

#: Vectors (of one byte plane) that a packet carries at most, and flits of a router's buffers.
CHUNKS = (1, 4, 16, 64)
DEPTHS = (16, 48, 256)
#: Start states of the arbiters over which the spread is taken.
ARBITERS = range(8)
#: fp32 vectors of a message.
SIZES = (1, 2, 4, 16, 64, 128)
#: The same of messages that contend.
CONTENDING = (1, 4, 16, 64)
#: The same of collectives.
VECTORS = (1, 4, 16, 64)


def _sweep(machines, topology, tiles, chunks=CHUNKS, depths=DEPTHS):
    """Every chunk and depth whose buffers hold the packets, with a handshake."""
    network = machines.network(topology, tiles)
    return [{"chunk": chunk, "depth": depth} for chunk, depth in product(chunks, depths)
            if network.largest(chunk) * network.slots_to_enter <= depth]


def _text(setting):
    """A setting for people."""
    return ", ".join(f"{name} {value}" for name, value in setting.items())


def messages(machines):
    """Messages from tile 0 to tile 1: T = A + N / B.

    Returns
    -------
    (list of dict, list of str, float)
        Rows, problems, and the residual of planned links in cycles.
    """
    planned, packets = (machines.system("all_to_all", 2, kind) for kind in (SCHEDULED, PACKETS))
    sizes = [4 * planned.tile.lanes * size for size in SIZES]
    ours = machines.run("all_to_all", [message(planned, SCHEDULED, size) for size in SIZES])
    cases = [message(packets, PACKETS, size) for size in SIZES]
    sweep = _sweep(machines, "all_to_all", 2)
    sweep += [{**setting, "handshake": 0} for setting in sweep]
    runs = machines.run("all_to_all", cases * len(sweep),
                        [setting for setting in sweep for _ in cases])
    taken = np.array([run.cycles for run in runs]).reshape(-1, len(sizes))
    half = len(sweep) // 2
    best = int(taken[:half].sum(axis=1).argmin())
    eager = half + int(taken[half:].sum(axis=1).argmin())
    lines = {SCHEDULED: ([run.cycles for run in ours], ""),
             PACKETS: (taken[best].tolist(), _text(sweep[best])),
             f"{PACKETS}, no handshake": (taken[eager].tolist(), _text(sweep[eager])),
             f"{PACKETS}, best of each size": (taken[:half].min(axis=0).tolist(), "")}
    rows = [{"name": name, "sizes": sizes, "cycles": cycles, "setting": setting,
             **fit(sizes, cycles)._asdict()} for name, (cycles, setting) in lines.items()]
    _show_messages(rows, sizes)
    wait = _waits(cases[0], runs[best * len(sizes)])
    print(f"A of packets: {rows[1]['first'] - rows[0]['first']:.1f} cycles more; of a vector, "
          f"request and acknowledge {taken[best][0] - taken[eager][0]}, SYNC from the last arrival "
          f"to the RECV {wait}, routing, headers and packets "
          f"{taken[eager][0] - ours[0].cycles - wait}")
    return rows, [line for run in ours + runs for line in run.problems], rows[0]["residual"]


def contention(machines, tiles):
    """Two messages that share a link of the ring: from tiles 0 and 1 to tile 2, at once.

    Returns
    -------
    (list of dict, list of str)
        Rows by size and kind: cycles of either alone and of both, by start state of the arbiters;
        ``waits``: of the cycles of both what is more than the way of the far one alone, or that of
        the near one and the flits of the other on the shared link, least and most.  And problems.
    """
    rows, problems = [], []
    for kind, size in product((SCHEDULED, PACKETS), CONTENDING):
        system = machines.system("ring", tiles, kind)
        settings = [{"chunk": min(size, 16), "arbiter": state}
                    for state in (ARBITERS if kind == PACKETS else (0,))]
        found = []
        for sources in ((0,), (1,), (0, 1)):
            case = message(system, kind, size, sources, target=2)
            runs = machines.run("ring", [case] * len(settings),
                                settings if kind == PACKETS else None)
            problems += [line for run in runs for line in run.problems]
            found.append([run.cycles for run in runs])
        far, near, both = found
        flits = 4 * size * system.tile.ports[0].flits(system.tile.lanes)
        waits = [together - max(alone, short + flits)
                 for alone, short, together in zip(far, near, both, strict=True)]
        rows.append({"kind": kind, "vectors": size, "bytes": 4 * system.tile.lanes * size,
                     "far": far, "near": near, "both": both, "waits": [min(waits), max(waits)]})
    print("\n".join(table(
        ("messages to one tile of", "bytes each", "two hops", "one hop", "both", "waits"),
        [(row["kind"], row["bytes"], *(_range(row[name]) for name in ("far", "near", "both",
                                                                      "waits"))) for row in rows])))
    return rows, problems


def _range(cycles):
    """Least and most, or the one there is."""
    least, most = min(cycles), max(cycles)
    return f"{least:,}" if least == most else f"{least:,}-{most:,}"


def _show_messages(rows, sizes):
    print("\n".join(table(("cycles of a message of", *(f"{size:,} B" for size in sizes)),
                          [(row["name"], *row["cycles"]) for row in rows])))
    for row in rows:
        print(f"{row['name']}: T = {row['first']:.1f} + N / {row['rate']:.3f}, residual "
              f"{row['residual']:.2f} cycles  {row['setting']}")
    for share in (0.5, 0.25, 0.1):
        size = catches_up(sizes, rows[-1]["cycles"], rows[0]["cycles"], share)
        print(f"packets within {share:.0%}: " + (f"from {size:,} bytes on" if size else
                                                 f"not up to {sizes[-1]:,} bytes"))


def _waits(case, run):
    """Cycles from the last arrival on tile 1 to the first issue behind the release, beyond the one
    that a planned RECV takes."""
    arrived = run.observed.events.arrivals
    last = int(arrived["cycle"][arrived["tile"] == 1].max())
    return run.released.cycle(1, 1, case.starts[1][1]) - last - \
        rules(case.program.system.tile).arrival_to_recv


def collectives(machines, counts, topologies):
    """Collectives: planned, and the best algorithm over a conventional network."""
    rows, problems = [], []
    for topology, tiles, name in product(topologies, counts, COLLECTIVES):
        planned, packets = (machines.system(topology, tiles, kind)
                            for kind in (SCHEDULED, PACKETS))
        chosen = [fastest(applicable(planned, name, size)).algorithm for size in VECTORS]
        ours = machines.run(topology, [collective(planned, SCHEDULED, name, algorithm, size)
                                       for algorithm, size in zip(chosen, VECTORS, strict=True)])
        tried = [(size, algorithm, chunk) for size in VECTORS
                 for algorithm, _ in applicable(packets, name, size) for chunk in (4, 16)]
        made = {(size, algorithm): collective(packets, PACKETS, name, algorithm, size)
                for size, algorithm, _ in tried}
        runs = machines.run(topology, [made[one[:2]] for one in tried],
                            [{"chunk": chunk} for *_, chunk in tried])
        problems += [line for run in ours + runs for line in run.problems]
        for size, mine, algorithm in zip(VECTORS, ours, chosen, strict=True):
            cycles, other, chunk = min((run.cycles, one[1], one[2])
                                       for one, run in zip(tried, runs, strict=True)
                                       if one[0] == size)
            spread = machines.run(topology, [made[size, other]] * len(ARBITERS),
                                  [{"chunk": chunk, "arbiter": state} for state in ARBITERS])
            problems += [line for run in spread for line in run.problems]
            span = [run.cycles for run in spread]
            rows.append({"topology": topology, "tiles": tiles, "collective": name, "vectors": size,
                         "algorithm": algorithm, "cycles": mine.cycles, "packets": cycles,
                         "packet_algorithm": other, "chunk": chunk, "least": min(span),
                         "most": max(span), "ratio": cycles / mine.cycles})
    print("\n".join(table(
        ("topology", "tiles", "collective", "vectors", "planned", "cycles", "packets", "cycles",
         "by arbiter", "ratio"),
        [(row["topology"], row["tiles"], row["collective"], row["vectors"], row["algorithm"],
          row["cycles"], row["packet_algorithm"], row["packets"],
          _range((row["least"], row["most"])), f"{row['ratio']:.2f}") for row in rows])))
    return rows, problems


def layers(machines, model, inputs, positions, counts, topologies, batch=1):
    """One layer: planned, with whole tensors, over a conventional network."""
    rows, problems = [], []
    for topology, tiles in product(topologies, counts):
        for kind in KINDS:
            if tiles == 1 and kind != SCHEDULED:
                continue
            case = layer(machines.system(topology, tiles, kind), kind, model, inputs,
                         positions=positions, batch=batch)
            row = {"topology": topology, "tiles": tiles, "batch": batch, "kind": kind}
            if kind != PACKETS:
                run, = machines.run(topology, [case])
            else:
                run, more = _best_layer(machines, topology, case)
                row |= more
            problems += run.problems
            rows.append(row | {"cycles": run.cycles,
                               "tails": tails(case, run) if tiles > 1 else {}})
            _show_layer(rows)
    for topology in topologies:
        for kind in KINDS:
            cycles = {row["tiles"]: row["cycles"] for row in rows if row["topology"] == topology
                      and row["kind"] in (kind, SCHEDULED if row["tiles"] == 1 else kind)}
            if len(cycles) < 2:
                continue
            turn = slower_with_more(cycles)
            print(f"{topology}, {kind}: " + (f"{turn} tiles are no faster than fewer" if turn else
                                             "every doubling of tiles is faster"))
    return rows, problems


def _best_layer(machines, topology, case):
    """The fastest run over chunks and depths, and the spread over arbiters."""
    sweep = _sweep(machines, topology, case.program.system.tiles, CHUNKS[1:-1], DEPTHS[1:])
    runs = machines.run(topology, [case] * len(sweep), sweep)
    best = min(range(len(sweep)), key=lambda number: runs[number].cycles)
    others = [{**sweep[best], "arbiter": state} for state in ARBITERS]
    others.append({**sweep[best], "handshake": 0})
    *spread, eager = machines.run(topology, [case] * len(others), others)
    problems = [line for run in [*runs, *spread, eager] for line in run.problems]
    return replace(runs[best], problems=problems), {
        "setting": _text(sweep[best]), "slowest": max(run.cycles for run in runs),
        "by_arbiter": [run.cycles for run in spread], "eager": eager.cycles}


def _show_layer(rows):
    row = rows[-1]
    one = next((other["cycles"] for other in rows if other["tiles"] == 1), None)
    gain = f"{one / row['cycles']:.2f}x one tile" if one else ""
    rest = ", ".join(f"{name} {cycles}" for name, cycles in row["tails"].items())
    more = f"; over arbiters {min(row['by_arbiter']):,} to {max(row['by_arbiter']):,}, eager " \
           f"{row['eager']:,}, slowest setting {row['slowest']:,}; {row['setting']}" \
        if "by_arbiter" in row else ""
    print(f"layer, batch {row['batch']}, {row['topology']}, {row['tiles']} tiles, {row['kind']}: "
          f"{row['cycles']:,} cycles {gain}; tails {rest or '-'}{more}", flush=True)


def batches(machines, model, inputs, positions, tiles, counts):
    """The layer on ``tiles`` tiles with batches, planned and over a conventional network."""
    rows, problems = [], []
    for batch in counts:
        mine = {}
        for kind in (SCHEDULED, COMPLETE, PACKETS):
            case = layer(machines.system("all_to_all", tiles, kind), kind, model, inputs,
                         positions=positions, batch=batch)
            run, *_ = machines.run("all_to_all", [case], [{"chunk": 8}]
                                   if kind == PACKETS else None)
            problems += run.problems
            mine[kind] = run.cycles
        rows.append({"batch": batch, "tiles": tiles, **mine})
        print(f"batch {batch} on {tiles} tiles: " + ", ".join(
            f"{kind} {cycles:,}" for kind, cycles in mine.items())
            + f" ({mine[PACKETS] / mine[SCHEDULED]:.2f}x)", flush=True)
    return rows, problems
