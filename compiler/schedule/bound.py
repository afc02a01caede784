"""What no schedule of a lowered graph can beat.

For every cluster ``v`` of the graph, in topological order, its start is bounded from below by the
longest path to it and, for every kind of unit, by the work of its ancestors: if the instructions
``S`` must all be issued before ``v`` and share ``m`` units that issue one a cycle, then::

    start(v) >= min(head of S) + ceil(|S| / m) - 1 + min(distance from S to v)

for every subset ``S``; this is evaluated where much work comes together. The heads are bounds
themselves, so the bound is recursive (Langevin and Cerny 1996, with the relaxation of Jackson's
preemptive schedule to subsets cut by head and by distance). Units of one kind on one tile are
pooled: mem read ports, mem write ports, ALUs, MXM weight sides, MXM activation sides, wires of
each link. Stream registers are free in the bound.
"""

from collections import defaultdict

import numpy as np

__all__ = ["schedule_bound"]

#: Thresholds of the head that are tried for each kind.
_CUTS = 12
#: No path.
_NEVER = -(1 << 30)


def schedule_bound(cfg, clusters, edges):
    """Cycles from the first to behind the last issue that any schedule needs.

    Parameters
    ----------
    cfg : TileConfig
    clusters : list of Cluster
    edges : list of Edge

    Returns
    -------
    (int, str)
        The bound, and what binds: ``path`` or the kind of unit that adds to it last.
    """
    if not clusters:
        return 0, "path"
    order, incoming = _topological(clusters, edges)
    number = {id(cluster): i for i, cluster in enumerate(order)}
    count = len(order)
    length = np.array([max(slot.offset for slot in cluster.slots) + 1 for cluster in order])
    slots = _slots_by_kind(cfg, order)
    # distance[i, v]: least cycles from the start of i to the start of v
    distance = np.full((count, count), _NEVER, np.int32)
    start = np.zeros(count, np.int64)
    reason = ["path"] * count
    for v, cluster in enumerate(order):
        column = distance[:, v]
        for edge in incoming[id(cluster)]:
            u = number[id(edge.source.cluster)]
            step = edge.source.offset + edge.distance - edge.target.offset
            np.maximum(column, distance[:, u] + step, out=column)
            column[u] = max(column[u], step)
            if start[u] + step > start[v]:
                start[v] = start[u] + step
                reason[v] = reason[u]
        if incoming[id(cluster)] and _joins(cluster):
            _raise_by_work(v, column, start, reason, slots)
    total = start + length
    _, binding = max(zip(total.tolist(), reason, strict=True))
    best, why = int(total.max()), binding
    tails = _tails(order, incoming, number, length)
    for kind, (owner, offset, occupancy, units) in slots.items():
        bound = _work(start[owner] + offset, occupancy, units, tails[owner] - offset)
        if bound > best:
            best, why = bound, kind
    return best, why


def _joins(cluster):
    """Whether much work comes together at ``cluster``: only there is its bound worth the time."""
    return any(slot.queue == "reduce" or slot.op in ("ACC", "RECV") for slot in cluster.slots)


def _topological(clusters, edges):
    incoming, outgoing, waiting = defaultdict(list), defaultdict(list), defaultdict(int)
    for edge in edges:
        incoming[id(edge.target.cluster)].append(edge)
        outgoing[id(edge.source.cluster)].append(edge)
        waiting[id(edge.target.cluster)] += 1
    ready = [cluster for cluster in clusters if not waiting[id(cluster)]]
    order = []
    while ready:
        cluster = ready.pop()
        order.append(cluster)
        for edge in outgoing[id(cluster)]:
            waiting[id(edge.target.cluster)] -= 1
            if not waiting[id(edge.target.cluster)]:
                ready.append(edge.target.cluster)
    return order, incoming


def _slots_by_kind(cfg, order):
    """By kind of unit: cluster and offset of each use, cycles it takes, and number of units."""
    pools = {"mem_read": len(cfg.slices("mem")), "mem_write": len(cfg.slices("mem")),
             "mxm_weight": len(cfg.slices("mxm")), "mxm_act": len(cfg.slices("mxm")),
             "alu": len(cfg.alus), "reduce": 1, "sxm": len(cfg.slices("sxm"))}
    found = defaultdict(list)
    for i, cluster in enumerate(order):
        for slot in cluster.slots:
            kind = cluster.unit(slot).kind
            if kind in pools:
                found[f"{kind} of tile {slot.tile}", pools[kind]].append((i, slot.offset, 1))
        for name, first, cycles in cluster.shape.uses:
            if name[0] == "wire":
                found[f"link {name[1]} of tile {cluster.tile}", 1].append((i, first, cycles))
    return {kind: (*np.array(uses).T, units) for (kind, units), uses in found.items()}


def _raise_by_work(v, column, start, reason, slots):
    """Raise the bound of ``v`` by the work of its ancestors, kind by kind."""
    for kind, (owner, offset, occupancy, units) in slots.items():
        behind = column[owner]
        mine = behind > _NEVER // 2
        if mine.sum() < 2 * units:
            continue
        bound = _work(start[owner[mine]] + offset[mine], occupancy[mine], units,
                      behind[mine] - offset[mine])
        if bound > start[v]:
            start[v] = bound
            reason[v] = kind


def _work(head, occupancy, units, behind):
    """Largest bound of all subsets cut by head and by distance behind."""
    order = np.argsort(-behind, kind="stable")
    head, occupancy, behind = head[order], occupancy[order], behind[order]
    best = 0
    for cut in np.unique(np.quantile(head, np.linspace(0, 1, _CUTS, endpoint=False))):
        chosen = head >= cut
        work = np.cumsum(occupancy[chosen])
        first = head[chosen].min()
        last = first + -(-work // units) - occupancy.max()      # the last of them starts here
        best = max(best, int((last + behind[chosen]).max()))
    return best


def _tails(order, incoming, number, length):
    """Least cycles from the start of each cluster to behind the last issue."""
    tails = length.astype(np.int64)
    for v in range(len(order) - 1, -1, -1):
        for edge in incoming[id(order[v])]:
            u = number[id(edge.source.cluster)]
            step = edge.source.offset + edge.distance - edge.target.offset
            tails[u] = max(tails[u], tails[v] + step)
    return tails
