"""What carries bytes between a host and a bridge."""

from abc import ABC, abstractmethod

__all__ = ["ByteStream"]


class ByteStream(ABC):
    """A line of bytes to a board, or to a simulation of one.

    Times are in a unit of the stream's own: seconds on a real line, cycles in a simulation.

    Attributes
    ----------
    name : str
        For messages.
    byte_time : float
        What a byte takes on the line.
    patience : float
        How long nothing may come, beyond what bytes take, before they count as lost.
    """

    name: str
    byte_time: float
    patience: float

    @abstractmethod
    async def write(self, data):
        """Send bytes; may return before they are through."""

    @abstractmethod
    async def read(self, limit):
        """Bytes that have come, at least one; none if none comes within ``limit``."""
