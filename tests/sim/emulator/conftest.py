"""Queues of the vector units for the emulator's tests, as long as tiles have none of their own."""

import sys

import pytest

from hdl.arch import queues as listed
from hdl.arch.presets import NANO
from hdl.arch.queues import Queue

_ORIGINAL, _ORIGINAL_INDEX = listed.queues, listed.queue_index


def _all_queues(cfg):
    """Those of a tile, and in front of its links those of ALUs, reduction unit and SXMs."""
    found = list(_ORIGINAL(cfg))
    vectors = [Queue(f"alu{i}", "alu", "vxm", i) for i in range(len(cfg.alus))]
    vectors.append(Queue("reduce", "reduce", "vxm", 0))
    if "vxm" not in cfg.floorplan:
        vectors = []
    vectors += [Queue(name, "sxm", name, i) for i, name in enumerate(cfg.slices("sxm"))]
    first_link = next(i for i, queue in enumerate(found) if queue.slice == "c2c")
    return (*found[:first_link], *vectors, *found[first_link:])


@pytest.fixture(autouse=True)
def _vector_queues(monkeypatch):
    """Nothing to do once `hdl.arch.queues` lists them."""
    if any(queue.kind == "alu" for queue in _ORIGINAL(NANO)):
        return
    for module in list(sys.modules.values()):
        if getattr(module, "queues", None) is _ORIGINAL:
            monkeypatch.setattr(module, "queues", _all_queues)
        if getattr(module, "queue_index", None) is _ORIGINAL_INDEX:
            monkeypatch.setattr(module, "queue_index", lambda cfg: {
                queue.name: number for number, queue in enumerate(_all_queues(cfg))})
