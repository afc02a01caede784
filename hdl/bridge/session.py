"""Sequence numbers: every request of a serial line is executed once, however often it comes.

The answer is kept until the next request has been executed, and sent again when its request comes
again.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.arch.bridge import LAST_SEQUENCE, Result, trailer_layout

from .signatures import packet_signature
from .store import PacketStore

__all__ = ["Session"]


class Session(wiring.Component):
    """What is between frames and their execution.

    Parameters
    ----------
    buffer : int
        Bytes of the longest answer with its sequence number.

    Members
    -------
    body : In(packet_signature())
        Bodies of frames that came.
    damaged, heard : In(1), Out(1)
        A frame came that is none; taken note of.
    request : Out(packet_signature())
        Bodies to execute, with 0 in place of the sequence number.
    answer : In(packet_signature())
        What came of them.
    reply : Out(packet_signature())
        Bodies of frames to send.
    """

    def __init__(self, buffer):
        self._buffer = buffer
        super().__init__({"body": In(packet_signature()), "damaged": In(1), "heard": Out(1),
                          "request": Out(packet_signature()), "answer": In(packet_signature()),
                          "reply": Out(packet_signature())})

    def elaborate(self, platform):
        m = Module()
        m.submodules.store = store = PacketStore(self._buffer)
        self._store = store
        self._expected = Signal(8, init=1)
        self._latest = Signal(8)        # number of the answer that is kept, 0: none is
        self._again = Signal()          # behind the rest of a body: the answer that is kept
        # a body of its own, and its bytes
        self._short = Signal(8 + trailer_layout.size)
        self._left = Signal(range(len(self._short) // 8 + 1))
        with m.FSM():
            self._look(m)
            self._begin(m)
            self._execute(m)
            self._reply(m)
        return m

    def _say(self, m, number, result, count):
        """Prepare a body without what records return."""
        m.d.sync += [self._short.eq(Cat(number, result, Const(0, 8), count)),
                     self._left.eq(len(self._short) // 8)]

    def _look(self, m):
        """States that decide on a body by its number."""
        body, number = self.body, self.body.payload.data
        with m.State("look"):
            m.d.sync += self._again.eq(0)
            with m.If(self.damaged):
                m.d.comb += self.heard.eq(1)
                self._say(m, Const(0, 8), Const(Result.DAMAGED), Const(0, 16))
                m.next = "short"
            with m.Elif(body.valid & (number == 0)):
                m.d.comb += body.ready.eq(1)
                self._say(m, Const(0, 8), Const(Result.DAMAGED), Const(0, 16))
                m.next = "begin low"
                with m.If(body.payload.last):
                    m.next = "short"
            with m.Elif(body.valid & (number == self._expected)):
                m.d.comb += self._store.clear.eq(1)
                m.next = "number"
            with m.Elif(body.valid):
                self._say(m, number, Const(Result.SEQUENCE), Cat(self._expected, Const(0, 8)))
                m.d.sync += self._again.eq(number == self._latest)
                m.next = "drain"
        with m.State("drain"):
            m.d.comb += body.ready.eq(1)
            with m.If(body.valid & body.payload.last):
                m.next = "short"
                with m.If(self._again):
                    m.next = "play"

    def _begin(self, m):
        """States that take the two bytes behind number 0."""
        body = self.body
        low = Signal(8)
        with m.State("begin low"):
            m.d.comb += body.ready.eq(1)
            with m.If(body.valid):
                m.d.sync += low.eq(body.payload.data)
                m.next = "begin high"
                with m.If(body.payload.last):
                    m.next = "short"
        with m.State("begin high"):
            m.d.comb += body.ready.eq(1)
            with m.If(body.valid):
                m.next = "drain"
                with m.If(body.payload.last):
                    self._say(m, Const(0, 8), Const(Result.OK), Cat(low, body.payload.data))
                    m.d.sync += [self._expected.eq(1), self._latest.eq(0)]
                    m.next = "short"

    def _execute(self, m):
        """States in which a request is executed and its answer kept."""
        body, request, answer, store = self.body, self.request, self.answer, self._store
        leading = Signal()
        with m.State("number"):
            m.d.comb += [store.put.eq(1), store.data.eq(self._expected)]
            m.d.sync += leading.eq(1)
            m.next = "execute"
        with m.State("execute"):
            m.d.comb += [
                request.valid.eq(body.valid), body.ready.eq(request.ready),
                request.payload.data.eq(Mux(leading, 0, body.payload.data)),
                request.payload.last.eq(body.payload.last),
                answer.ready.eq(1), store.put.eq(answer.valid), store.data.eq(answer.payload.data),
            ]
            with m.If(body.valid & body.ready):
                m.d.sync += leading.eq(0)
            with m.If(answer.valid & answer.payload.last):
                m.d.sync += [self._latest.eq(self._expected),
                             self._expected.eq(Mux(self._expected == LAST_SEQUENCE, 1,
                                                   self._expected + 1))]
                m.next = "play"

    def _reply(self, m):
        """States that send."""
        reply, store = self.reply, self._store
        with m.State("play"):
            m.d.comb += store.play.eq(1)
            m.next = "replay"
        with m.State("replay"):
            m.d.comb += [reply.valid.eq(store.out.valid), reply.payload.eq(store.out.payload),
                         store.out.ready.eq(reply.ready)]
            with m.If(reply.valid & reply.ready & reply.payload.last):
                m.next = "look"
        with m.State("short"):
            m.d.comb += [reply.valid.eq(1), reply.payload.data.eq(self._short),
                         reply.payload.last.eq(self._left == 1)]
            with m.If(reply.ready):
                m.d.sync += [self._short.eq(self._short >> 8), self._left.eq(self._left - 1)]
                with m.If(reply.payload.last):
                    m.next = "look"
