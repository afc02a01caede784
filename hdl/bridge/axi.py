"""A tile behind two AXI4-Stream ports of 32 bits: the records of `hdl.arch.bridge` without frames.

A packet from the host is a request, filled up with zeros to whole words; a packet to the host is an
answer.  The lowest byte of a word is first.  A bus does not lose words, so there are no CRC, no
sequence numbers and no buffers: a request is executed as it comes, and its answer leaves as it
arises.  A host that does not take the answer holds up the request.
"""

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.arch.bridge import BUFFER
from hdl.emit import once
from hdl.tile import Tile

from .execute import Executor
from .serial import connect_tile
from .signatures import packet_signature

__all__ = ["AxiStream", "AxiTile", "BytesToWords", "WordsToBytes"]

_WORD = 32


class AxiStream(wiring.Signature):
    """One direction of an AXI4-Stream of 32 bits: ``tdata``, ``tvalid``, ``tready``, ``tlast``."""

    def __init__(self):
        super().__init__({"tdata": Out(unsigned(_WORD)), "tvalid": Out(1), "tready": In(1),
                          "tlast": Out(1)})

    def __eq__(self, other):
        return type(self) is type(other)


class WordsToBytes(wiring.Component):
    """Words of a bus to bytes, one a cycle.

    Members
    -------
    words : In(AxiStream())
    bytes : Out(packet_signature())
    """

    def __init__(self):
        super().__init__({"words": In(AxiStream()), "bytes": Out(packet_signature())})

    def elaborate(self, platform):
        m = Module()
        word, last = Signal(_WORD, reset_less=True), Signal()
        left = Signal(range(_WORD // 8 + 1))
        m.d.comb += [
            self.words.tready.eq(left == 0),
            self.bytes.valid.eq(left != 0),
            self.bytes.payload.data.eq(word),
            self.bytes.payload.last.eq(last & (left == 1)),
        ]
        with m.If(self.words.tready & self.words.tvalid):
            m.d.sync += [word.eq(self.words.tdata), last.eq(self.words.tlast),
                         left.eq(_WORD // 8)]
        with m.Elif(self.bytes.valid & self.bytes.ready):
            m.d.sync += [word.eq(word >> 8), left.eq(left - 1)]
        return m


class BytesToWords(wiring.Component):
    """Bytes, one a cycle, to words of a bus; packets are whole words.

    Members
    -------
    bytes : In(packet_signature())
    words : Out(AxiStream())
    """

    def __init__(self):
        super().__init__({"bytes": In(packet_signature()), "words": Out(AxiStream())})

    def elaborate(self, platform):
        m = Module()
        count = Signal(range(_WORD // 8))
        m.d.comb += self.bytes.ready.eq(~self.words.tvalid)
        with m.If(self.words.tvalid & self.words.tready):
            m.d.sync += self.words.tvalid.eq(0)
        with m.If(self.bytes.valid & self.bytes.ready):
            m.d.sync += [
                self.words.tdata.eq(Cat(self.words.tdata[8:], self.bytes.payload.data)),
                self.words.tlast.eq(self.bytes.payload.last),
                count.eq(count + 1), self.words.tvalid.eq(count == _WORD // 8 - 1),
            ]
        return m


class AxiTile(wiring.Component):
    """A tile and its bridge to a bus.  Links to other tiles are open.

    Parameters
    ----------
    cfg : TileConfig
    buffer : int
        Bytes that an answer may have, as a bridge with buffers has it.

    Members
    -------
    s_axis : In(AxiStream())
        Requests.
    m_axis : Out(AxiStream())
        Answers.
    """

    def __init__(self, cfg, *, buffer=BUFFER):
        self._cfg = cfg
        self._buffer = buffer
        super().__init__({"s_axis": In(AxiStream()), "m_axis": Out(AxiStream())})

    def elaborate(self, platform):
        m = Module()
        m.submodules.tile = tile = once(platform, "tile", Tile, self._cfg, trace=False)
        m.submodules.executor = executor = Executor(self._cfg, self._buffer)
        m.submodules.words = words = WordsToBytes()
        m.submodules.bytes = packed = BytesToWords()
        wiring.connect(m, wiring.flipped(self.s_axis), words.words)
        wiring.connect(m, words.bytes, executor.request)
        wiring.connect(m, executor.answer, packed.bytes)
        wiring.connect(m, packed.words, wiring.flipped(self.m_axis))
        connect_tile(m, tile, executor, self._cfg)
        return m
