"""A tile on a board with an ECP5."""

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Const, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.bridge import SerialTile
from hdl.emit import once

from .pll import pll

__all__ = ["BoardTop", "OSCILLATOR_MHZ", "TOP"]

#: Name of the top module.
TOP = "oncycle_board"
#: Oscillator of the board.
OSCILLATOR_MHZ = 25
#: Cycles of reset behind the configuration of the FPGA, less one.
_RESET_CYCLES = 255


class BoardTop(wiring.Component):
    """Clock and reset of a tile with a serial line.

    Parameters
    ----------
    cfg : TileConfig
    mhz : int
        Clock of the tile, one that `hdl.board.pll.settings` has.
    baud : int
        Bits a second on the serial line.

    Members
    -------
    clk25 : In(1)
        The oscillator.
    rx, tx : In(1), Out(1)
        The serial line.
    leds : Out(8)
        Those of the tile; then that there is a clock, and three that are dark.  The highest shows
        that the FPGA is configured.
    """

    def __init__(self, cfg, *, mhz, baud):
        self._cfg = cfg
        self._mhz = mhz
        self._divisor = round(mhz * 1e6 / baud)
        super().__init__({"clk25": In(1), "rx": In(1, init=1), "tx": Out(1, init=1),
                          "leds": Out(8)})

    def elaborate(self, platform):
        m = Module()
        locked = Signal()
        m.domains.sync = ClockDomain()
        m.domains.start = ClockDomain(reset_less=True)
        m.submodules.pll = pll(OSCILLATOR_MHZ, self._mhz, source=self.clk25,
                               clock=ClockSignal("start"), locked=locked)
        count = Signal(range(_RESET_CYCLES + 1))
        reset = Signal(init=1)
        with m.If(~locked):
            m.d.start += [count.eq(0), reset.eq(1)]
        with m.Elif(count != _RESET_CYCLES):
            m.d.start += count.eq(count + 1)
        with m.Else():
            m.d.start += reset.eq(0)
        m.submodules.serial = tile = once(platform, "serial_tile", SerialTile, self._cfg,
                                          self._divisor)
        m.d.comb += [
            ClockSignal().eq(ClockSignal("start")), ResetSignal().eq(reset),
            tile.rx.eq(self.rx), self.tx.eq(tile.tx),
            self.leds.eq(Cat(tile.leds, locked, Const(0, 3), Const(1, 1))),
        ]
        return m
