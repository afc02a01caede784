"""Programs for tiles that a conventional network joins, on which nothing arrives at a known time.

What a tile does is cut into *stages*, each planned to the cycle as ever; between two of them all
queues of the tile park in a SYNC until the messages have come that the next one needs.
"""

from .collective import packet_collective
from .compilation import PacketCompilation
from .complete import complete_tensors
from .stages import MessageBuilder, Stages

__all__ = ["MessageBuilder", "PacketCompilation", "Stages", "complete_tensors",
           "packet_collective"]
