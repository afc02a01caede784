"""The top level of a board: clock, reset and pins around a tile that speaks over a serial line."""

from .top import BoardTop

__all__ = ["BoardTop"]
