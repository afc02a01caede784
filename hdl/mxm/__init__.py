"""MXM: int8 matrix unit with exact accumulators."""

from hdl.mxm.unit import Mxm

__all__ = ["Mxm"]
