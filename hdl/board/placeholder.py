"""A tile behind two shift registers: what a board is measured with while it has no bridge."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.emit import once
from hdl.tile import Tile, host_members, link_members

__all__ = ["ShiftTile"]


class ShiftTile(wiring.Component):
    """A tile of which every port is alive.

    Parameters
    ----------
    cfg : TileConfig
    divisor : int
        Not used: there is no serial line.

    Members
    -------
    rx : In(1)
        Shifted into all inputs of the tile, a bit a cycle.
    tx : Out(1)
        All outputs of the tile, shifted out and taken anew behind the last.
    leds : Out(3)
        The tile is running, its error register is not 0, ``rx`` is low.
    """

    def __init__(self, cfg, divisor):
        self._cfg = cfg
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1), "leds": Out(3)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.tile = tile = once(platform, "tile", Tile, self._cfg, trace=False)
        inputs, outputs = [], []
        members = wiring.Signature({**host_members(self._cfg), **link_members(self._cfg)})
        for _, member, value in members.flatten(tile):
            (inputs if member.flow == In else outputs).append(value)
        taken = Signal(len(Cat(inputs)), reset_less=True)
        given = Signal(len(Cat(outputs)), reset_less=True)
        left = Signal(range(len(given)))
        m.d.sync += [taken.eq(Cat(self.rx, taken)), left.eq(left - 1),
                     given.eq(Cat(given[1:], 0)), self.tx.eq(given[0])]
        with m.If(left == 0):
            m.d.sync += [given.eq(Cat(outputs)), left.eq(len(given) - 1)]
        m.d.comb += [Cat(inputs).eq(taken),
                     self.leds.eq(Cat(tile.running, tile.errors.any(), ~self.rx))]
        return m
