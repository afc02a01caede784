"""``oncycle bench optimum``: bound, exact optimum and our schedule of small graphs.

The optimum is that of the same problem, cell by cell: fixed cells of every cluster, its choices of
units and streams, and the edges, given to CP-SAT (developer extra ``dev-optimum``).
"""

import argparse
import importlib.util
from dataclasses import replace

import numpy as np

from compiler.decoder.machine import Machine
from compiler.decoder.vectors import add_output, normed_limbs, sum_of_squares
from compiler.lower.builder import Builder
from compiler.lower.chain import At, Chain
from compiler.lower.matvec import matvec_graph
from compiler.schedule.bound import schedule_bound
from compiler.schedule.footprint import Footprint, Resources
from compiler.schedule.listing import schedule
from compiler.schedule.problem import Edge
from hdl.arch.config import all_to_all, pair, single
from hdl.arch.presets import DEMO, NANO
from sim.bench.report import finish
from sim.errors import UsageError

__all__ = ["BARS", "instances", "main", "measure", "optimum"]

#: What the figures must reach.
BARS = {"instances": 10}

#: Seconds that CP-SAT may take for one instance.
_LIMIT = 120


def instances():
    """Yield (name, cfg, clusters, edges) of each graph."""
    roomy = replace(NANO, mem_words=512)
    for seed, words in enumerate((12, 12, 24, 24, 40)):
        yield f"{words} copies, {seed}", NANO, *_copies(seed, words)
    narrow = replace(NANO, streams=4)
    for seed, words in enumerate((16, 24, 32)):
        yield f"{words} copies, 4 streams", narrow, *_copies(seed, words)
    for seed, chains in enumerate((8, 12, 16)):
        yield f"{chains} chains of ALUs", DEMO, *_chains(seed, chains)
    for name, system, shape in (("product 4x4", single(roomy), (4, 4)),
                                ("product 8x4", single(roomy), (8, 4)),
                                ("product 8x8", single(roomy), (8, 8)),
                                ("product 12x8", single(roomy), (12, 8)),
                                ("product 16x16", single(roomy), (16, 16)),
                                ("product 8x8 on 2 tiles", pair(roomy, latency=5), (8, 8)),
                                ("product 16x16, demo", single(DEMO), (16, 16)),
                                ("product 32x16, demo", single(DEMO), (32, 16)),
                                ("product 48x32, demo", single(DEMO), (48, 32))):
        builder = matvec_graph(system, np.ones(shape, np.int8), np.ones(shape[0], int))
        yield name, system.tile, builder.clusters, builder.edges
    for chunks in (1, 2, 3, 5, 8):
        yield f"norm of {chunks} chunks", DEMO, *_norm(chunks)
    for chunks in (1, 2, 4, 8):
        yield f"added norm of {chunks} chunks", DEMO, *_added(chunks)


def _chains(seed, count):
    """Vectors through random ALUs, some behind others."""
    rng = np.random.default_rng(seed)
    quads, clusters = Machine(single(DEMO)).quads, []
    for number in range(count):
        chain = Chain(DEMO, f"chain {number}", 0)
        source, target = rng.permutation(len(quads))
        value = chain.read(At(quads[source], number))
        if rng.random() < 0.5:
            value = chain.alu("MUL", value, chain.read(At(quads[target], 100 + number)))
        for op in rng.choice(["PASS", "EXP2", "RSQRT", "TO_INT32"], rng.integers(1, 4)):
            value = chain.alu(str(op), value, on=int(rng.integers(0, 4)) if op == "PASS" else None)
        chain.write(value, At(quads[target], 200 + number))
        clusters.append(chain.cluster())
    edges = [Edge(clusters[i].slots[0], clusters[j].slots[0], int(rng.integers(1, 30)))
             for i, j in np.sort(rng.integers(0, count, (count // 3, 2)), axis=1) if i != j]
    return clusters, edges


def _copies(seed, words):
    """Vectors between slices, some behind others."""
    rng = np.random.default_rng(seed)
    clusters = []
    for word in range(words):
        source, target = rng.choice(NANO.slices("mem"), 2, replace=False)
        chain = Chain(NANO, f"copy {word}", 0)
        chain.write(chain.read(At((str(source),), word)), At((str(target),), word))
        clusters.append(chain.cluster())
    edges = [Edge(clusters[i].slots[0], clusters[j].slots[0], int(rng.integers(1, 9)))
             for i, j in np.sort(rng.integers(0, words, (words // 3, 2)), axis=1) if i != j]
    return clusters, edges


def _places(machine):
    """Fp32 vectors ``here`` and ``there`` by number, and limbs."""
    quads = {"here": machine.here, "there": machine.there}
    def vector(side, first, count):
        return [At(quads[side], first + word) for word in range(count)]
    def limbs(first, count):
        return [tuple(At((slice_,), first + word) for slice_ in machine.pairs[0])
                for word in range(count)]
    return vector, limbs


def _norm(chunks):
    """RMSNorm of a vector to 16 bits."""
    builder, machine = Builder(single(DEMO)), Machine(single(DEMO))
    vector, limbs = _places(machine)
    x, gain = vector("here", 0, chunks), vector("there", 8, chunks)
    squares = sum_of_squares(builder, machine, "norm", 0, x, None)
    normed_limbs(builder, machine, "norm", 0, x, gain, squares, limbs(16, chunks))
    return builder.clusters, builder.edges


def _added(chunks):
    """What follows a matrix back to the residual stream."""
    builder, machine = Builder(all_to_all(DEMO, 1)), Machine(single(DEMO))
    vector, _ = _places(machine)
    add_output(builder, machine, "norm", 0, vector("here", 0, chunks), vector("there", 8, chunks),
               vector("there", 16, chunks), None, vector("here", 24, chunks))
    return builder.clusters, builder.edges


def _length(cluster):
    return 1 + max(slot.offset for slot in cluster.slots)


def measure(cfg, clusters, edges):
    """Bound and length of our schedule, first to behind the last issue, in cycles."""
    start = schedule(cfg, clusters, edges).start
    return (schedule_bound(cfg, clusters, edges)[0],
            max(start[cluster] + _length(cluster) for cluster in clusters) - min(start.values()))


def optimum(cfg, clusters, edges, horizon):
    """The least length of any schedule, and whether that is proven.

    Parameters
    ----------
    horizon : int
        A length that can be reached.
    """
    from ortools.sat.python import cp_model

    model, resources = cp_model.CpModel(), Resources()
    start = {cluster: model.new_int_var(0, horizon - _length(cluster), "")
             for cluster in clusters}
    intervals = {}

    def occupy(cell, cluster, present=None):
        resource, offset = cell
        at = start[cluster] + offset
        intervals.setdefault((cluster.tile, resource), []).append(
            model.new_fixed_size_interval_var(at, 1, "") if present is None else
            model.new_optional_fixed_size_interval_var(at, 1, present, ""))

    for cluster in clusters:
        mine = Footprint(cfg, cluster, resources)
        for cell in mine.fixed:
            occupy(cell, cluster)
        for options in mine.choices:
            chosen = [model.new_bool_var("") for _ in options]
            model.add_exactly_one(chosen)
            for present, option in zip(chosen, options, strict=True):
                for cell in option:
                    occupy(cell, cluster, present)
    for some in intervals.values():
        model.add_no_overlap(some)
    for edge in edges:
        source, target = edge.source, edge.target
        if source.cluster is not target.cluster:
            model.add(start[target.cluster] + target.offset
                      >= start[source.cluster] + source.offset + edge.distance)
    length = model.new_int_var(0, horizon, "")
    for cluster in clusters:
        model.add(length >= start[cluster] + _length(cluster))
    model.minimize(length)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = _LIMIT
    solver.parameters.num_workers = 2
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise ValueError(f"CP-SAT finds no schedule of {horizon} cycles")
    return round(solver.objective_value), status == cp_model.OPTIMAL


def main(arguments):
    """Run the bench; returns 0, or 1 where the order bound, optimum, ours is broken."""
    parser = argparse.ArgumentParser(prog="oncycle bench optimum", description=__doc__)
    parser.parse_args(arguments)
    if importlib.util.find_spec("ortools") is None:
        raise UsageError("bench optimum needs OR-tools: make setup EXTRA=dev-optimum")
    rows, missed = [], []
    print(f"{'graph':<26} {'clusters':>8} {'bound':>6} {'optimum':>8} {'ours':>6} "
          f"{'ours/optimum':>13}")
    for name, cfg, clusters, edges in instances():
        bound, ours = measure(cfg, clusters, edges)
        best, proven = optimum(cfg, clusters, edges, ours)
        rows.append({"graph": name, "clusters": len(clusters), "bound": bound, "optimum": best,
                     "proven": proven, "ours": ours})
        print(f"{name:<26} {len(clusters):>8} {bound:>6} {best:>8} {ours:>6} {ours / best:>13.3f}"
              + ("" if proven else f"  not proven in {_LIMIT} s"), flush=True)
        if not bound <= best <= ours:
            missed.append(f"{name}: bound {bound}, optimum {best}, ours {ours} are out of order")
    proven = sum(row["proven"] for row in rows)
    if proven < BARS["instances"]:
        missed.append(f"{proven} optima proven, at least {BARS['instances']} wanted")
    worst = max(row["ours"] / row["optimum"] for row in rows)
    return finish("optimum", {"rows": rows}, missed,
                  f"{proven} of {len(rows)} proven, ours at most {worst:.3f}x")
