"""Scheduled links without overlap at the grain of a vector: a tensor leaves when it is complete."""

from collections import defaultdict

from ..schedule.problem import Edge

__all__ = ["complete_tensors"]

#: What occupies a wire: the order in which that happens is none of what is computed.
_LINKS = ("SEND", "RECV", "FORWARD")


def complete_tensors(builder):
    """Let no vector leave a tile before all vectors have been computed that the tile sends in the
    same operation: adds edges to ``builder``.

    What the SENDs of an operation wait for, all of them wait for.
    """
    senders, number = defaultdict(list), {}
    for cluster, operation in zip(builder.clusters, builder.operations, strict=True):
        if any(slot.op == "SEND" for slot in cluster.slots):
            number[cluster] = (cluster.tile, operation)
            senders[number[cluster]].append(cluster)
    waits = defaultdict(list)
    for edge in builder.edges:
        target = edge.target.cluster
        if target in number and edge.source.op not in _LINKS \
                and edge.source.cluster.tile == target.tile:
            waits[number[target]].append(edge)
    for key, clusters in senders.items():
        mine = set(clusters)
        for edge in waits[key]:
            if edge.source.cluster in mine:
                continue
            lag = edge.distance - edge.target.offset
            builder.edges += [Edge(edge.source, other.slots[0], lag + other.slots[0].offset)
                              for other in clusters if other is not edge.target.cluster]
