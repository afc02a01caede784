"""Compiling a decoder for tiles that a conventional network joins."""

from ..decoder.compilation import Compilation
from ..errors import CompileError
from .stages import MessageBuilder, Stages

__all__ = ["PacketCompilation"]


class PacketCompilation(Compilation):
    """A `Compilation` whose regions consist of stages: see `stages.Stages`."""

    builder = MessageBuilder

    def schedule(self, builder):
        """`Stages` of a region."""
        return Stages(builder)

    def _program(self, positions):
        queues = set().union(*(region.body.queues for region in self.regions))
        for region in self.regions:
            region.body.park(queues)
        return super()._program(positions)

    @property
    def starts(self):
        """By tile: cycle of the step, in the tile's own time, in which each stage begins.

        Raises
        ------
        CompileError
            Where layers share instructions: stages are told apart in programs without loops.
        """
        if any(region.runs > 1 for region in self.regions):
            raise CompileError("Stages can be told apart in programs without loops over layers: "
                               "compile one layer of each shape")
        found, cursor = [[] for _ in range(self.system.tiles)], 0
        for region in self.regions:
            for mine, starts in zip(found, region.body.starts, strict=True):
                mine += [cursor + start for start in starts]
            cursor += region.body.end
        return found
