"""A tile behind a serial line: what a board needs but clock, reset and pins."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.arch.bridge import BUFFER
from hdl.emit import once
from hdl.tile import Tile, host_members

from .execute import Executor
from .frames import FrameReceiver, FrameTransmitter
from .session import Session
from .uart import UartReceiver, UartTransmitter

__all__ = ["SerialTile", "connect_tile"]


def connect_tile(m, tile, executor, cfg):
    """Connect the host's side and the host link of a tile to an `Executor`."""
    for name, member in host_members(cfg).items():
        inner, outer = getattr(tile, name), getattr(executor.host, name)
        m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
    host = len(cfg.ports)
    wiring.connect(m, getattr(tile, f"tx{host}"), executor.from_tile)
    wiring.connect(m, executor.to_tile, getattr(tile, f"rx{host}"))


class SerialTile(wiring.Component):
    """A tile and its bridge to a serial line.  Links to other tiles are open.

    Parameters
    ----------
    cfg : TileConfig
    divisor : int
        Cycles of a bit on the line, at least `MIN_DIVISOR`.
    buffer : int
        Bytes of the longest frame in each direction, without flags and escapes.

    Members
    -------
    rx : In(1)
        From the host; 1 while idle.  Need not be synchronous.
    tx : Out(1)
        To the host.
    leds : Out(3)
        The tile is running; its error register is not 0, or flits of the host link were lost; a
        byte is under way from the host.
    """

    def __init__(self, cfg, divisor, *, buffer=BUFFER):
        self._cfg = cfg
        self._divisor = divisor
        self._buffer = buffer
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1), "leds": Out(3)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.tile = tile = once(platform, "tile", Tile, self._cfg, trace=False)
        m.submodules.executor = executor = Executor(self._cfg, self._buffer)
        m.submodules.session = session = Session(self._buffer)
        m.submodules.receiver = receiver = FrameReceiver(self._buffer)
        m.submodules.transmitter = transmitter = FrameTransmitter()
        m.submodules.uart_rx = uart_rx = UartReceiver(self._divisor)
        m.submodules.uart_tx = uart_tx = UartTransmitter(self._divisor)
        m.d.comb += [
            uart_rx.line.eq(self.rx), self.tx.eq(uart_tx.line),
            receiver.data.eq(uart_rx.data), receiver.valid.eq(uart_rx.valid),
            session.damaged.eq(receiver.damaged), receiver.heard.eq(session.heard),
            self.leds.eq(Cat(tile.running, tile.errors.any() | executor.lost, ~self.rx)),
        ]
        wiring.connect(m, receiver.body, session.body)
        wiring.connect(m, session.request, executor.request)
        wiring.connect(m, executor.answer, session.answer)
        wiring.connect(m, session.reply, transmitter.body)
        wiring.connect(m, transmitter.bytes, uart_tx.bytes)
        connect_tile(m, tile, executor, self._cfg)
        return m
