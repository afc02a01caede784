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
    order, before = _topological(clusters, edges)
    count = len(order)
    length = np.array([max(cluster.shape.offsets) + 1 for cluster in order])
    slots = _slots_by_kind(cfg, order)
    kinds = list(slots)
    owned = np.zeros((count, len(kinds)), bool)
    for k, (owner, *_) in enumerate(slots.values()):
        owned[owner, k] = True
    start = np.zeros(count, np.int64)
    reason = ["path"] * count
    behind = _Behind(before)
    for v, cluster in enumerate(order):
        critical = None
        for u, step in before[v]:
            if start[u] + step > start[v] or critical is None:
                critical = u, step
            if start[u] + step > start[v]:
                start[v] = start[u] + step
                reason[v] = reason[u]
        row, done = behind.of(v, critical, owned)
        if critical and _joins(cluster):
            for k in np.flatnonzero(~done):
                _raise_by_work(v, row, start, reason, kinds[k], *slots[kinds[k]])
            done[:] = True
    total = start + length
    _, binding = max(zip(total.tolist(), reason, strict=True))
    best, why = int(total.max()), binding
    tails = _tails(before, length)
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
    number = {id(cluster): v for v, cluster in enumerate(order)}
    before = []
    for cluster in order:
        steps = {}
        for edge in incoming[id(cluster)]:
            u = number[id(edge.source.cluster)]
            step = edge.source.offset + edge.distance - edge.target.offset
            steps[u] = max(step, steps.get(u, step))
        before.append(list(steps.items()))
    return order, before


class _Behind:
    """Least cycles from every cluster to those that come later, one of these after the other.

    A kind of unit is *done* at a cluster when its work cannot raise the start any more: it has been
    asked there, or it was done at the cluster before on the critical path and what that has behind
    it is what this one has, so many cycles later.
    """

    def __init__(self, before):
        self._before = before
        self._rows, self._done = {}, {}
        self._last = {u: v for v, steps in enumerate(before) for u, _ in steps}

    def of(self, v, critical, owned):
        """Distances to ``v`` from each cluster in front of it, and kinds that are done.

        ``critical``: cluster before ``v`` and the distance from it; ``owned``: whether a cluster
        (row) has work of a kind (column).
        """
        row = np.full(v, _NEVER, np.int32)
        for u, step in self._before[v]:
            np.maximum(row[:u], self._rows[u] + step, out=row[:u])
            row[u] = max(row[u], step)
        done = np.zeros(owned.shape[1], bool)
        if critical:
            u, step = critical
            known = np.full(v, _NEVER // 2, np.int32)
            np.maximum(known[:u], self._rows[u] + step, out=known[:u])
            done = self._done[u] & ~owned[:v][row > known].any(axis=0)
        for u, _ in self._before[v]:
            if self._last[u] == v:
                del self._rows[u], self._done[u]
        if v in self._last:
            self._rows[v], self._done[v] = row, done
        return row, done


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


def _raise_by_work(v, row, start, reason, kind, owner, offset, occupancy, units):
    """Raise the bound of ``v`` by the work of its ancestors of one kind."""
    owner = owner[:np.searchsorted(owner, v)]
    offset, occupancy, behind = offset[:len(owner)], occupancy[:len(owner)], row[owner]
    mine = behind > _NEVER // 2
    if mine.sum() < 2 * units:
        return
    owner, offset = owner[mine], offset[mine]
    bound = _work(start[owner] + offset, occupancy[mine], units, behind[mine] - offset)
    if bound > start[v]:
        start[v] = bound
        reason[v] = kind


def _work(head, occupancy, units, behind):
    """Largest bound of all subsets cut by head and by distance behind."""
    order = np.argsort(-behind, kind="stable")
    head, occupancy, behind = head[order], occupancy[order], behind[order]
    heads = np.sort(head)
    cuts = _cuts(heads)
    first = heads[np.searchsorted(heads, cuts)][:, None]
    chosen = head >= first
    work = np.cumsum(occupancy * chosen, axis=1)
    last = first + -(-work // units) - occupancy.max()          # the last of them starts here
    return max(0, int((last + behind)[chosen].max()))


def _cuts(heads):
    """`_CUTS` thresholds that part ``heads`` (in order) into pieces of equal size."""
    at, rest = np.divmod(np.arange(_CUTS) * (len(heads) - 1), _CUTS)
    step = heads[np.minimum(at + 1, len(heads) - 1)] - heads[at]
    return heads[at] - (-step * rest // _CUTS)


def _tails(before, length):
    """Least cycles from the start of each cluster to behind the last issue."""
    tails = length.astype(np.int64)
    for v in range(len(before) - 1, -1, -1):
        for u, step in before[v]:
            tails[u] = max(tails[u], tails[v] + step)
    return tails
