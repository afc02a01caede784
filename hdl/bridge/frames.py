"""Frames of `hdl.arch.bridge`: from bytes to checked bodies, and from bodies to bytes."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.arch.bridge import ESCAPE, FLAG, FLIP
from hdl.crc import CRC_START, crc_value

from .signatures import packet_signature
from .store import PacketStore

__all__ = ["FrameReceiver", "FrameTransmitter"]

#: Bytes of a CRC.
_CRC_BYTES = 2


class FrameReceiver(wiring.Component):
    """From bytes of a line to the bodies of frames, each given once it is whole and checked.

    Parameters
    ----------
    buffer : int
        Bytes of the longest body with its CRC.

    Members
    -------
    data, valid : In(8), In(1)
        As of `hdl.bridge.uart.UartReceiver`.
    body : Out(packet_signature())
        What arrives while a body is given is lost.
    damaged : Out(1)
        A frame was not what had been sent; until ``heard``.
    heard : In(1)
    """

    def __init__(self, buffer):
        self._buffer = buffer
        super().__init__({"data": In(8), "valid": In(1), "body": Out(packet_signature()),
                          "damaged": Out(1), "heard": In(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.store = store = PacketStore(self._buffer, tail=_CRC_BYTES)
        wiring.connect(m, store.out, wiring.flipped(self.body))
        crc = Signal(16)
        escaped = Signal()
        spoiled = Signal()      # a byte did not fit
        missed = Signal()       # something arrived that nobody looked at
        flag = Signal()
        m.d.comb += [
            flag.eq(self.valid & (self.data == FLAG)),
            store.data.eq(self.data ^ Mux(escaped, FLIP, 0)),
        ]
        after = crc_value(m, store.data, 1, crc)

        def begin():
            m.d.comb += store.clear.eq(1)
            m.d.sync += [crc.eq(CRC_START), escaped.eq(0), spoiled.eq(0)]
            m.next = "body"

        def go_on():
            """The flag that closed a frame may open the next, unless some of that has passed."""
            begin()
            with m.If(missed | self.valid):
                m.next = "hunt"

        with m.If(self.valid):
            m.d.sync += missed.eq(1)
        with m.FSM():
            with m.State("hunt"):
                with m.If(flag):
                    begin()
            with m.State("body"):
                with m.If(flag):
                    with m.If((store.count > _CRC_BYTES) & (crc == 0) & ~spoiled & ~escaped):
                        m.d.comb += store.play.eq(1)
                        m.d.sync += missed.eq(0)
                        m.next = "give"
                    with m.Elif((store.count != 0) | escaped):
                        m.d.sync += missed.eq(0)
                        m.next = "damaged"
                with m.Elif(self.valid & ~escaped & (self.data == ESCAPE)):
                    m.d.sync += escaped.eq(1)
                with m.Elif(self.valid):
                    m.d.comb += store.put.eq(1)
                    m.d.sync += [escaped.eq(0), crc.eq(after)]
                    with m.If(store.full):
                        m.d.sync += spoiled.eq(1)
            with m.State("give"):
                with m.If(self.body.valid & self.body.ready & self.body.payload.last):
                    go_on()
            with m.State("damaged"):
                m.d.comb += self.damaged.eq(1)
                with m.If(self.heard):
                    go_on()
        return m


class FrameTransmitter(wiring.Component):
    """From bodies to bytes of a line.

    Members
    -------
    body : In(packet_signature())
    bytes : Out(stream.Signature(8))
    """

    def __init__(self):
        super().__init__({"body": In(packet_signature()), "bytes": Out(stream.Signature(8))})

    def elaborate(self, platform):
        m = Module()
        body, out = self.body, self.bytes
        crc = Signal(16)
        after = crc_value(m, body.payload.data, 1, crc)
        low = Signal()              # of the CRC's bytes, the second
        escaped = Signal()
        byte, sent = Signal(8), Signal()    # a byte to be sent, and that it is through
        special = Signal()
        m.d.comb += special.eq((byte == FLAG) | (byte == ESCAPE))

        def escape():
            """Send ``byte``, in two bytes where it must be."""
            m.d.comb += [out.valid.eq(1), out.payload.eq(byte)]
            with m.If(special & ~escaped):
                m.d.comb += out.payload.eq(ESCAPE)
            with m.Elif(special):
                m.d.comb += out.payload.eq(byte ^ FLIP)
            with m.If(out.ready):
                m.d.comb += sent.eq(~special | escaped)
                m.d.sync += escaped.eq(special & ~escaped)

        with m.FSM():
            with m.State("open"):
                m.d.comb += [out.valid.eq(body.valid), out.payload.eq(FLAG)]
                m.d.sync += [crc.eq(CRC_START), low.eq(0)]
                with m.If(out.valid & out.ready):
                    m.next = "body"
            with m.State("body"):
                m.d.comb += [byte.eq(body.payload.data), body.ready.eq(sent)]
                with m.If(body.valid):
                    escape()
                with m.If(sent):
                    m.d.sync += crc.eq(after)
                    with m.If(body.payload.last):
                        m.next = "crc"
            with m.State("crc"):
                m.d.comb += byte.eq(Mux(low, crc[:8], crc[8:]))
                escape()
                with m.If(sent):
                    m.d.sync += low.eq(1)
                    with m.If(low):
                        m.next = "close"
            with m.State("close"):
                m.d.comb += [out.valid.eq(1), out.payload.eq(FLAG)]
                with m.If(out.ready):
                    m.next = "open"
        return m
