"""The host's end of a tile on a board: bridges from byte streams to commands."""

from .axi import AxiTile
from .serial import SerialTile

__all__ = ["AxiTile", "SerialTile"]
