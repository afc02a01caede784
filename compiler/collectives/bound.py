"""What no program for a collective can beat: its longest way, and the wires."""

from typing import NamedTuple

from hdl.arch.queues import queues
from hdl.arch.timing import departure, rules, timing

from ..lower.layout import vector_quads
from .flow import PLANES
from .network import Network

__all__ = ["END", "START", "Bound", "lower_bound"]

#: What the cycles of a collective are counted between.
START = "issue of the first READ of an operand"
END = "the cycle behind the last SRAM write of a result"


class Bound(NamedTuple):
    """Least cycles from `START` to `END`.

    ``hops``: links on the longest way that a vector has to go.  ``payload``: bytes of the vectors.
    ``vectors``: those that the busiest link carries at least.  ``binds``: ``"latency"`` or
    ``"bandwidth"``.
    """
    cycles: int
    hops: int
    payload: int
    vectors: int
    binds: str


def lower_bound(system, collective, count):
    """`Bound` of ``count`` vectors.

    *latency*: READ, the nearest slice to the C2C, four byte planes on the first wire, and one plane
    on each further one, passed on as it comes; RECV, one sum where there are any, the nearest
    slice, WRITE.  *bandwidth*: an owner's vector must reach ``tiles - 1`` others, and of a sum
    ``tiles - 1`` others must be heard; at best all links share that evenly.
    """
    cfg, network = system.tile, Network(system)
    times, tiles = timing(cfg), system.tiles
    names = [name for quad in vector_quads(cfg) for name in quad]
    before = times["mem_read", "READ"].t_d + min(cfg.hops(name, "c2c") for name in names) + \
        departure(cfg, "send")
    behind = rules(cfg).arrival_to_recv + times["recv", "RECV"].t_d + \
        times["mem_write", "WRITE"].t_d + 1
    if collective == "all_gather":
        behind += min(cfg.hops("c2c", name) for name in names)
    else:
        depth = min(cfg.alus[queue.unit].depth for queue in queues(cfg)
                    if queue.kind == "alu" and "add" in cfg.alus[queue.unit].features)
        behind += cfg.hops("c2c", "vxm") + depth + min(cfg.hops("vxm", name) for name in names)
    owners = range(min(count, tiles))
    ends = {"all_gather": (owners, network.tiles), "reduce_scatter": (network.tiles, owners),
            "all_reduce": (network.tiles, network.tiles)}[collective]
    ways = [network.way(source, target) for source in ends[0] for target in ends[1]
            if source != target]

    def flight(way):
        return sum(map(network.hop, way)) - rules(cfg).arrival_to_recv + \
            (PLANES - 1) * min(map(network.flits, way))
    latency = before + max(map(flight, ways)) + behind
    moves = (tiles - 1) * count * (2 if collective == "all_reduce" else 1)
    busiest = -(-moves // len(system.links))
    flits = PLANES * min(map(network.flits, system.links))
    bandwidth = before + busiest * flits + min(link.latency for link in system.links) + behind
    return Bound(max(latency, bandwidth), max(map(len, ways)), count * PLANES * cfg.lanes, busiest,
                 "latency" if latency >= bandwidth else "bandwidth")
