"""Bounds of a compiled decode, and the same program with a barrier after every operation."""

from .schedule.bound import schedule_bound
from .schedule.listing import schedule

__all__ = ["barrier_cycles", "bounds", "model_bound"]


def model_bound(system, model, positions):
    """Cycles a token that the model alone asks of a machine, whatever the program.

    The largest of: every byte of weights, keys and values read once over the width of all slices;
    the block loads of the MXMs; the bytes that every tile must get from others over its links.

    Parameters
    ----------
    system : SystemConfig
    model : QuantisedModel
    positions : int
        Context of the program.

    Returns
    -------
    (int, str)
        The bound and what binds.
    """
    cfg, tiles, lanes = system.tile, system.tiles, system.tile.lanes
    mxms = len(cfg.slices("mxm"))
    size = cached = exchanged = 0
    for layer in model.layers:
        size += sum(getattr(layer, name).size for name in ("q", "k", "v", "o", "gate", "up", "down")
                    if getattr(layer, name) is not None)
        slots = positions if layer.window is None else min(layer.window, positions)
        cached += 2 * layer.kv_heads * layer.head_dim * slots
        exchanged += 2 * (layer.heads * layer.head_dim + model.ffn) + 2 * 4 * model.hidden
    size += model.embedding.size
    width = len(cfg.slices("mem")) * lanes * tiles
    found = {"SRAM width": -(-(size + cached) // width),
             "MXM weight loads": -(-(size + cached) // (4 * lanes * mxms * tiles))}
    if tiles > 1:
        incoming = sum(cfg.port(link.target_port).bytes for link in system.links
                       if link.target == 0)
        found["link width"] = -(-exchanged * (tiles - 1) // (tiles * incoming))
    what = max(found, key=found.get)
    return found[what], what


def bounds(compilation):
    """The schedule bound of a compilation: that of its regions of time, one after the other.

    Regions are closed by construction (nothing is under way when a loop body ends), so no schedule
    of the same regions is faster.

    Returns
    -------
    (int, list)
        Cycles a step, and for each region its cycles, runs, bound and what binds.
    """
    rows = []
    for region in compilation.regions:
        bound, why = schedule_bound(compilation.system.tile, region.builder.clusters,
                                    region.builder.edges)
        rows.append((region.body.end, region.runs, bound, why))
    return sum(bound * runs for _, runs, bound, _ in rows), rows


def barrier_cycles(compilation):
    """Cycles a step of the same compiler with a barrier after every tensor operation.

    Every operation is scheduled alone, on all tiles, and begins when the one before has ended.
    """
    return sum(_barrier(compilation.system.tile, region.builder) * region.runs
               for region in compilation.regions)


def _barrier(cfg, builder):
    groups = {}
    for cluster, operation in zip(builder.clusters, builder.operations, strict=True):
        groups.setdefault(operation, []).append(cluster)
    total = 0
    for clusters in groups.values():
        mine = {id(cluster) for cluster in clusters}
        edges = [edge for edge in builder.edges
                 if id(edge.source.cluster) in mine and id(edge.target.cluster) in mine]
        total += schedule(cfg, clusters, edges).end
    return total
