"""Execution of requests: records to commands of the tile, and what they return to an answer.

Timing of a record: a cycle for each byte of its header, one for each byte of the largest data,
and one or two in which it acts; what it returns leaves a byte a cycle.  All of it waits for the
streams.  A command reaches the tile in the cycle behind the one in which the record acts.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hdl.arch.bridge import (
    VERSION,
    BridgeOp,
    Result,
    command_bytes,
    header_bytes,
    identity_layout,
    size_of,
    status_layout,
    trailer_layout,
)
from hdl.arch.host import READ_LATENCY, TIME_BITS, HostOp, row_bits
from hdl.signatures import FlitSignature
from hdl.tile import host_members

from .signatures import packet_signature

__all__ = ["FLITS", "Executor"]

#: Flits of the host link that wait to be taken.
FLITS = 1024
#: Bytes of an answer beside what its records return, at most: sequence number, filling, trailer.
_BESIDE = 1 + 3 + 4
#: Commands that a running tile takes for an error.
_IDLE_ONLY = (HostOp.SRAM, HostOp.WORD, HostOp.TABLE, HostOp.READ, HostOp.START)


class Executor(wiring.Component):
    """Does what requests say.

    Parameters
    ----------
    cfg : TileConfig
    buffer : int
        Bytes of the longest answer, with a sequence number in front.

    Members
    -------
    request : In(packet_signature())
        Records, see `hdl.arch.bridge`.
    answer : Out(packet_signature())
        One for each request; it may begin before the request has ended.
    host : In(Signature(host_members(cfg)))
        The host's side of the tile.
    from_tile, to_tile : In, Out(FlitSignature)
        The host link.
    lost : Out(1)
        A flit from the tile found no room, since the last CLEAR.
    """

    def __init__(self, cfg, buffer):
        self._cfg = cfg
        self._buffer = buffer
        flit = FlitSignature(cfg.host.bytes)
        super().__init__({
            "request": In(packet_signature()), "answer": Out(packet_signature()),
            "host": In(wiring.Signature(host_members(cfg))),
            "from_tile": In(flit), "to_tile": Out(flit), "lost": Out(1)})

    def elaborate(self, platform):
        m = Module()
        cfg = self._cfg
        sizes = command_bytes(cfg)
        # Bytes of the register through which everything is shifted.
        self._width = max(sizes["data"], size_of(status_layout(cfg)), size_of(identity_layout()))
        self._data_bytes = sizes["data"]
        self._op = Signal(8)
        self._header = data.View(data.StructLayout(
            {"length": 16, "select": 8 * sizes["select"], "address": 8 * sizes["address"]}),
            Signal(8 * (header_bytes(cfg) - 1), name="header"))
        self._held = Signal(8 * self._width)
        self._index = Signal(range(max(self._width, len(self._header.as_value()) // 8)))
        self._ended = Signal()                  # the request has no more bytes
        self._used = Signal(range(self._buffer + 1))    # bytes of the answer
        self._left = Signal(bits_for(self._width))      # bytes to send of ``held``, or to put
        self._flits = Signal(range(FLITS + 1))          # flits to send
        self._trailer = Signal(trailer_layout)
        self._watch(m)
        with m.FSM():
            self._parse(m)
            self._act(m)
            self._return(m)
            self._close(m)
        return m

    def _watch(self, m):
        """The FIFO of the host link, and the status."""
        host = self.host
        m.submodules.flits = self._fifo = fifo = SyncFIFOBuffered(
            width=8 * self._cfg.host.bytes, depth=FLITS)
        started, stopped = Signal(TIME_BITS), Signal(TIME_BITS)
        ran = Signal()
        m.d.comb += [fifo.w_data.eq(self.from_tile.data), fifo.w_en.eq(self.from_tile.valid)]
        m.d.sync += [ran.eq(host.running), host.command.op.eq(HostOp.NONE)]
        with m.If(ran & ~host.running):
            m.d.sync += stopped.eq(host.cycle)
        with m.If(host.command.op == HostOp.START):
            m.d.sync += started.eq(host.command.data[:TIME_BITS])
        with m.If(host.command.op == HostOp.CLEAR):
            m.d.sync += self.lost.eq(0)
        with m.If(fifo.w_en & ~fifo.w_rdy):
            m.d.sync += self.lost.eq(1)
        self._status = Signal(status_layout(self._cfg))
        values = {"cycle": host.cycle, "start": started, "stopped": stopped,
                  "waiting": fifo.level, "errors": host.errors, "running": host.running,
                  "lost": self.lost, "halted": host.halted}
        m.d.comb += [self._status[name].eq(value) for name, value in values.items()]

    def _fail(self, m, result, ended):
        """End the request with an error: nothing more of it counts."""
        m.d.sync += self._trailer.result.eq(result)
        m.next = "drain"
        with m.If(ended):
            m.next = "fill"

    def _parse(self, m):
        """States that take a record."""
        request, index = self.request, self._index
        last = request.payload.last
        known = [op.value for op in (*HostOp, *BridgeOp) if op is not HostOp.NONE]
        with m.State("op"):
            m.d.comb += request.ready.eq(1)
            m.d.sync += [self._op.eq(request.payload.data), index.eq(0)]
            with m.If(request.valid):
                m.d.sync += self._ended.eq(last)
                with m.If(request.payload.data == HostOp.NONE.value):
                    with m.If(last):
                        m.next = "fill"
                with m.Elif(~request.payload.data.matches(*known)):
                    self._fail(m, Result.UNKNOWN, last)
                with m.Elif(last):
                    self._fail(m, Result.CUT, last)
                with m.Else():
                    m.next = "header"
        with m.State("header"):
            header = self._header.as_value()
            m.d.comb += request.ready.eq(1)
            with m.If(request.valid):
                m.d.sync += [header.eq(Cat(header[8:], request.payload.data)),
                             index.eq(index + 1), self._ended.eq(last)]
                with m.If(index == len(header) // 8 - 1):
                    m.next = "length"
                with m.Elif(last):
                    self._fail(m, Result.CUT, last)
        with m.State("length"):
            length = self._header.length
            m.d.sync += index.eq(0)
            m.next = "data"
            with m.If(length > self._data_bytes):
                self._fail(m, Result.LONG, self._ended)
            with m.Elif(self._ended & (length != 0)):
                self._fail(m, Result.CUT, self._ended)
        with m.State("data"):
            given = Signal()
            m.d.comb += [given.eq(index < length), request.ready.eq(given)]
            with m.If(request.valid | ~given):
                m.d.sync += [index.eq(index + 1),
                             self._held.eq(Cat(self._held[8:], Mux(given, request.payload.data,
                                                                   Const(0, 8))))]
                with m.If(given):
                    m.d.sync += self._ended.eq(last)
                with m.If(given & last & (index + 1 != length)):
                    self._fail(m, Result.CUT, last)
                with m.Elif(index == self._width - 1):
                    m.next = "act"

    def _act(self, m):
        """States in which a record that is whole takes effect."""
        cfg, host, held, fifo = self._cfg, self.host, self._held, self._fifo
        asked, flit = held[:16], cfg.host.bytes
        with m.State("act"):
            needs = self._returned(m, asked)
            m.next = "done"
            with m.If(host.running & self._op.matches(*(op.value for op in _IDLE_ONLY))):
                self._fail(m, Result.RUNNING, self._ended)
            with m.Elif(needs + self._used > self._buffer - _BESIDE):
                self._fail(m, Result.ROOM, self._ended)
            with m.Elif(self._op < BridgeOp.STATUS.value):
                self._command(m)
                with m.If(self._op == HostOp.READ.value):
                    m.d.sync += self._left.eq(READ_LATENCY)
                    m.next = "read"
            with m.Else():
                m.d.sync += self._left.eq(needs)
                m.next = "send"
                with m.Switch(self._op):
                    with m.Case(BridgeOp.STATUS.value):
                        m.d.sync += held.eq(self._status)
                    with m.Case(BridgeOp.IDENTITY.value):
                        m.d.sync += held.eq(self._identity())
                    with m.Case(BridgeOp.TAKE.value):
                        count = Signal.like(self._flits)
                        m.d.comb += count.eq(Mux(asked < fifo.level, asked, fifo.level))
                        m.d.sync += [held.eq(count), self._left.eq(2), self._flits.eq(count)]
                    with m.Case(BridgeOp.PUT.value):
                        m.d.sync += self._left.eq(self._header.length)
                        m.next = "put"
        with m.State("read"):
            m.d.sync += self._left.eq(self._left - 1)
            with m.If(self._left == 0):
                m.d.sync += [held.eq(host.read_data), self._left.eq(row_bits(cfg) // 8)]
                m.next = "send"
        with m.State("put"):
            m.d.comb += [self.to_tile.valid.eq(self._left != 0), self.to_tile.data.eq(held)]
            m.d.sync += [held.eq(held >> 8 * flit), self._left.eq(self._left - flit)]
            with m.If(self._left <= flit):
                m.next = "done"
        with m.State("done"):
            m.d.sync += self._trailer.count.eq(self._trailer.count + 1)
            m.next = "op"
            with m.If(self._ended):
                m.next = "fill"

    def _returned(self, m, asked):
        """Bytes that the record returns, at most."""
        cfg = self._cfg
        returned = {HostOp.READ: row_bits(cfg) // 8, BridgeOp.STATUS: size_of(status_layout(cfg)),
                    BridgeOp.IDENTITY: size_of(identity_layout()),
                    BridgeOp.TAKE: 2 + asked * cfg.host.bytes}
        needs = Signal(len(asked) + bits_for(cfg.host.bytes))
        with m.Switch(self._op):
            for op, size in returned.items():
                with m.Case(op.value):
                    m.d.comb += needs.eq(size)
        return needs

    def _command(self, m):
        """The record as a command of the tile; the time of a START becomes one of its counter."""
        command, held = self.host.command, self._held
        time = Signal(TIME_BITS)
        m.d.comb += time.eq(held[:TIME_BITS] + self.host.cycle + 1)
        m.d.sync += [
            command.op.eq(self._op), command.select.eq(self._header.select),
            command.address.eq(self._header.address),
            command.data.eq(Cat(Mux(self._op == HostOp.START.value, time, held[:TIME_BITS]),
                                held[TIME_BITS:])),
        ]

    def _identity(self):
        return identity_layout().const({
            "version": VERSION, "buffer": self._buffer, "digest": int(self._cfg.digest, 16)})

    def _send(self, m):
        """Offer the lowest byte of ``held``; gives whether it goes."""
        goes = Signal()
        m.d.comb += [self.answer.valid.eq(1), self.answer.payload.data.eq(self._held),
                     goes.eq(self.answer.ready)]
        with m.If(goes):
            m.d.sync += [self._held.eq(self._held >> 8), self._used.eq(self._used + 1),
                         self._left.eq(self._left - 1)]
        return goes

    def _return(self, m):
        """States that send what a record returns."""
        fifo = self._fifo
        with m.State("send"):
            with m.If(self._send(m) & (self._left == 1)):
                m.next = "done"
                with m.If(self._flits != 0):
                    m.next = "flit"
        with m.State("flit"):
            m.d.comb += fifo.r_en.eq(1)
            with m.If(fifo.r_rdy):
                m.d.sync += [self._held.eq(fifo.r_data), self._left.eq(self._cfg.host.bytes),
                             self._flits.eq(self._flits - 1)]
                m.next = "send"

    def _close(self, m):
        """States at the end of a request."""
        size = size_of(trailer_layout)
        with m.State("drain"):
            m.d.comb += self.request.ready.eq(1)
            with m.If(self.request.valid & self.request.payload.last):
                m.next = "fill"
        with m.State("fill"):
            m.d.sync += self._held.eq(0)
            with m.If(self._used[:2] == 0):
                m.d.sync += [self._held.eq(self._trailer), self._left.eq(size)]
                m.next = "trailer"
            with m.Else():
                m.d.comb += self.answer.valid.eq(1)
                with m.If(self.answer.ready):
                    m.d.sync += self._used.eq(self._used + 1)
        with m.State("trailer"):
            m.d.comb += self.answer.payload.last.eq(self._left == 1)
            with m.If(self._send(m) & self.answer.payload.last):
                m.d.sync += [self._used.eq(0), self._trailer.eq(0)]
                m.next = "op"
