"""VXM: a ring of ALUs on every lane and a reduction over the lanes."""

from .unit import Vxm

__all__ = ["Vxm"]
