"""Collectives over a conventional network."""

from ..collection import uncollected
from ..collectives.program import collective_graph
from ..plan import stepped
from .stages import MessageBuilder, Stages

__all__ = ["packet_collective"]


@uncollected
def packet_collective(system, collective, algorithm, data):
    """As `compiler.collectives.collective_program`, between tiles of which every two have a
    connection; returns (Plan, Memory, Stages)."""
    builder = collective_graph(system, collective, algorithm, data, MessageBuilder)
    stages = Stages(builder, rounds=1)
    stages.park(stages.queues)
    return stepped(system, stages), builder.memory, stages
