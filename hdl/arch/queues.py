"""The instruction queues of a tile, in the order in which everything numbers them."""

from functools import cache
from typing import NamedTuple

__all__ = ["Queue", "queues", "queue_index", "link_names"]


class Queue(NamedTuple):
    """One instruction queue: ``name``, ``kind`` (a key of `isa.KINDS`), ``slice`` of the floorplan
    it sits at, and its number ``unit`` among the queues of its kind."""
    name: str
    kind: str
    slice: str
    unit: int


def link_names(cfg):
    """Names of the links of a tile; the host is the last."""
    return (*(f"link{k}" for k in range(len(cfg.ports))), "host")


@cache
def queues(cfg):
    """All queues of a tile of configuration ``cfg``."""
    found = []
    for i, name in enumerate(cfg.slices("mem")):
        found += [Queue(f"{name}.read", "mem_read", name, i),
                  Queue(f"{name}.write", "mem_write", name, i)]
    for i, name in enumerate(cfg.slices("mxm")):
        found += [Queue(f"{name}.weight", "mxm_weight", name, i),
                  Queue(f"{name}.act", "mxm_act", name, i)]
    for name in cfg.slices("vxm"):
        found += [*(Queue(f"alu{i}", "alu", name, i) for i in range(len(cfg.alus))),
                  Queue("reduce", "reduce", name, 0)]
    found += [Queue(name, "sxm", name, i) for i, name in enumerate(cfg.slices("sxm"))]
    for k, name in enumerate(link_names(cfg)):
        found += [Queue(f"{name}.send", "send", "c2c", k), Queue(f"{name}.recv", "recv", "c2c", k)]
    return tuple(found)


@cache
def queue_index(cfg):
    """Number of each queue by its name."""
    return {queue.name: number for number, queue in enumerate(queues(cfg))}
