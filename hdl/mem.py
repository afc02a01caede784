"""MEM: one SRAM slice with a read and a write port.

Timing::

    cycle     k                       k+1                                  k+2
    READ      address at the SRAM     word on the streams
    GATHER    four streams read       sum at the SRAM                      word on the streams
    WRITE     stream vector read      word into the SRAM: the write event

An access in the cycle of the write of its word gives the old word and is ``SRAM_COLLISION``.  So is
a READ in the cycle of a GATHER's access: it then gives nothing.
"""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from .arch import isa
from .arch.errors import Fault
from .arch.trace import write_layout
from .signatures import FAULT_BITS, IssueSignature, ReadTap, WritePort, fields

__all__ = ["HostPort", "Mem"]


class HostPort(wiring.Signature):
    """Access of the host to one slice, only while no instruction is in flight.

    Members
    -------
    write_en : Out(1)
        Write ``write_data`` into word ``address`` in this cycle.
    read_en : Out(1)
        Word ``address`` is on ``read_data`` in the next cycle.
    address : Out
        Below ``mem_words``.
    write_data : Out
        One SRAM word.
    read_data : In
        One SRAM word.
    """

    def __init__(self, cfg):
        self._cfg = cfg
        super().__init__({"write_en": Out(1), "read_en": Out(1),
                          "address": Out(bits_for(cfg.mem_words - 1)),
                          "write_data": Out(8 * cfg.lanes), "read_data": In(8 * cfg.lanes)})

    def __eq__(self, other):
        return type(self) is type(other) and self._cfg == other._cfg


class Mem(wiring.Component):
    """SRAM slice.

    Parameters
    ----------
    cfg : TileConfig
    trace : bool
        Whether ``written`` exists.

    Members
    -------
    read, write : In(IssueSignature)
        Issues of the two queues.
    tap, gather_tap : Out(ReadTap)
        In the cycle of the issue of a WRITE, of a GATHER.
    port : Out(WritePort)
        One cycle after a READ's issue, two after a GATHER's.
    host : In(HostPort)
    faults : Out(FAULT_BITS)
        ``SRAM_COLLISION``, ``SRAM_ADDRESS``: one cycle later.
    written : Out(trace.write_layout)
        The write of this cycle as the trace port shows it; the host's writes are none.
    """

    def __init__(self, cfg, *, trace=True):
        self._cfg = cfg
        members = {
            "read": In(IssueSignature(cfg, "mem_read")),
            "write": In(IssueSignature(cfg, "mem_write")),
            "tap": Out(ReadTap(cfg)), "gather_tap": Out(ReadTap(cfg, 4)),
            "port": Out(WritePort(cfg)), "host": In(HostPort(cfg)),
            "faults": Out(FAULT_BITS),
        }
        self._trace = trace
        if trace:
            members["written"] = Out(write_layout(cfg))
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        cfg, host = self._cfg, self.host
        m.submodules.sram = sram = Memory(shape=unsigned(8 * cfg.lanes), depth=cfg.mem_words,
                                          init=[])
        sram_write, sram_read = sram.write_port(), sram.read_port()
        write_s1, address_s1, data_s1 = self._write(m)
        m.d.comb += [
            sram_write.en.eq(write_s1 | host.write_en),
            sram_write.addr.eq(Mux(host.write_en, host.address, address_s1)),
            sram_write.data.eq(Mux(host.write_en, host.write_data, data_s1)),
        ]
        if self._trace:
            m.d.comb += [self.written.valid.eq(write_s1), self.written.address.eq(address_s1),
                         self.written.data.eq(data_s1)]
        access, address, refused = self._access(m, sram_read)
        m.d.sync += [
            self.faults[Fault.SRAM_COLLISION].eq(
                refused | access & write_s1 & (address == address_s1)),
            self.faults[Fault.SRAM_ADDRESS].eq(self._write_outside | self._read_outside),
        ]
        return m

    def _inside(self, address):
        return address < self._cfg.mem_words

    def _write(self, m):
        """WRITE: what its second cycle does to the SRAM."""
        issue, tap = self.write, self.tap
        insn = fields(self._cfg, "mem_write", isa.MemWriteOp.WRITE, issue.word)
        m.d.comb += [tap.en.eq(issue.valid), tap.stream.eq(insn.source),
                     tap.west.eq(insn.source_west), tap.last.eq(insn.source_last)]
        write_s1 = Signal()
        address_s1 = Signal(len(issue.index.address), reset_less=True)
        data_s1 = Signal(8 * self._cfg.lanes, reset_less=True)
        wanted = issue.valid & issue.predicate
        inside = self._inside(issue.index.address)
        m.d.sync += write_s1.eq(wanted & inside)
        with m.If(issue.valid):
            m.d.sync += [address_s1.eq(issue.index.address), data_s1.eq(tap.data[0])]
        self._write_outside = wanted & ~inside
        return write_s1, address_s1, data_s1

    def _gather(self, m):
        """GATHER: what its second cycle, that of the access, needs."""
        issue, tap = self.read, self.gather_tap
        insn = fields(self._cfg, "mem_read", isa.MemReadOp.GATHER, issue.word)
        gather = Signal()
        m.d.comb += [gather.eq(issue.valid & (insn.op == isa.MemReadOp.GATHER)),
                     tap.en.eq(gather), tap.stream.eq(insn.source), tap.west.eq(insn.source_west),
                     tap.last.eq(insn.source_last), tap.count_log2.eq(2)]
        gather_s1 = Signal()
        insn_s1 = Signal(insn.shape(), reset_less=True)
        address_s1 = Signal(32, name="gather_address_s1", reset_less=True)
        lane_0 = Cat(tap.data[plane][:8] for plane in range(4))
        m.d.sync += gather_s1.eq(gather)
        with m.If(gather):
            m.d.sync += [insn_s1.eq(insn), address_s1.eq(lane_0 + issue.index.address)]
        return gather, gather_s1, insn_s1, address_s1

    def _access(self, m, sram_read):
        """READ and GATHER in the cycle of their access; the SRAM's output register is the data."""
        issue, port, host = self.read, self.port, self.host
        gather, gather_s1, insn_s1, address_s1 = self._gather(m)
        insn = fields(self._cfg, "mem_read", isa.MemReadOp.READ, issue.word)
        read = Signal()
        refused = Signal()      # a READ in the cycle of a GATHER's access
        access = Signal()
        address = Signal(max(len(address_s1), len(issue.index.address)), name="read_address")
        inside = Signal(name="read_inside")
        m.d.comb += [
            read.eq(issue.valid & ~gather & ~gather_s1),
            refused.eq(issue.valid & ~gather & gather_s1),
            access.eq(read | gather_s1),
            address.eq(Mux(gather_s1, address_s1, issue.index.address)),
            inside.eq(self._inside(address)),
            sram_read.en.eq(access | host.read_en),
            sram_read.addr.eq(Mux(host.read_en, host.address, address)),
            host.read_data.eq(sram_read.data),
        ]
        inside_s1 = Signal(reset_less=True)
        m.d.sync += inside_s1.eq(inside)
        for name in ("east", "west"):
            en, stream = getattr(port, f"{name}_en"), getattr(port, name)
            m.d.sync += [
                en.eq(access & Mux(gather_s1, insn_s1[f"{name}_en"], insn[f"{name}_en"])),
                stream.eq(Mux(gather_s1, insn_s1[name], insn[name])),
            ]
        m.d.comb += port.data[0].eq(Mux(inside_s1, sram_read.data, 0))
        self._read_outside = read & ~inside
        return access, address, refused
