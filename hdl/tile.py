"""One tile: queues, units, streams and the host's side.

Start, for a START command in cycle ``c`` that names time ``t >= c + START_LEAD`` (on time)::

    cycle     c           c+1 ..             t-4          t-3          t
              command     armed, compares    go           fetched      first issues

Members and unit names are stable: testbenches, recorders and the compiler's manifests use them.
"""

from dataclasses import replace
from functools import reduce
from operator import or_
from typing import NamedTuple

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .arch import isa
from .arch.errors import Fault
from .arch.host import TIME_BITS, HostOp, command_layout, row_bits, start_layout
from .arch.queues import link_names, queues
from .arch.timing import ICU_LEAD, START_LEAD
from .arch.trace import arrival_layout, fault_layout, fault_places, issue_layout, write_layout
from .barrier import Barrier
from .c2c import C2c, message_members
from .emit import once
from .icu import Icu
from .mem import Mem
from .mxm import Mxm
from .signatures import FAULT_BITS, FlitSignature
from .stream import StreamStage
from .superlanes import connect_port, connect_tap
from .sxm import Sxm
from .vxm import Vxm

__all__ = ["SLICES", "Tile", "host_members", "link_members", "trace_members"]


class _Slice(NamedTuple):
    """How the unit of a slice kind is connected: its class, its members for taps and ports, and its
    member for the issues of each queue kind (``{}`` stands for the queue's number)."""
    unit: type
    taps: tuple
    ports: tuple
    issues: dict
    traced: bool = False    #: whether it takes `trace`
    count: object = None    #: function of the configuration: how many there are of such queues

    def expand(self, cfg, members):
        """``members``, those with a place for a number once for each."""
        return [member.format(k) for member in members
                for k in (range(self.count(cfg)) if "{}" in member else [0])]


#: By slice kind.
SLICES = {
    "mem": _Slice(Mem, ("tap", "gather_tap"), ("port",),
                  {"mem_read": "read", "mem_write": "write"}, True),
    "mxm": _Slice(Mxm, ("weight_tap", "act_tap"), ("port",),
                  {"mxm_weight": "weight", "mxm_act": "act"}),
    "vxm": _Slice(Vxm, ("a_tap{}", "b_tap{}", "reduce_tap"), ("port{}", "reduce_port"),
                  {"alu": "alu{}", "reduce": "reduce"}, count=lambda cfg: len(cfg.alus)),
    "sxm": _Slice(Sxm, ("tap",), ("port",), {"sxm": "issue"}),
    "c2c": _Slice(C2c, ("tap{}",), ("port{}",), {"send": "send{}", "recv": "recv{}"}, True,
                  count=lambda cfg: len(link_names(cfg))),
}


def host_members(cfg):
    """Members of the host's side of a tile but its link: see `Tile`."""
    return {"command": In(command_layout(cfg)), "read_data": Out(row_bits(cfg)),
            "running": Out(1), "halted": Out(len(queues(cfg))), "errors": Out(FAULT_BITS),
            "cycle": Out(TIME_BITS)}


def link_members(cfg):
    """Members of the links of a tile: ``tx<k>``, ``rx<k>``; the host is the last.  With
    ``cfg.sync`` also ``post<k>``, ``taken<k>`` and ``notify``."""
    members = {}
    for k in range(len(link_names(cfg))):
        flit = FlitSignature(cfg.port(k).bytes)
        members |= {f"tx{k}": Out(flit), f"rx{k}": In(flit)}
    if cfg.sync:
        members |= {**message_members(cfg), "notify": In(len(cfg.ports))}
    return members


def trace_members(cfg):
    """Members of the trace port of a tile, each one vector.

    ``issues`` has an element of `issue_layout` for each queue, ``writes`` of `write_layout` for
    each mem slice, ``arrivals`` of `arrival_layout` for each link, ``faults`` of `fault_layout` for
    each of `fault_places`; element 0 is lowest.
    """
    return {
        "issues": Out(data.ArrayLayout(issue_layout(cfg), len(queues(cfg)))),
        "writes": Out(data.ArrayLayout(write_layout(cfg), len(cfg.slices("mem")))),
        "arrivals": Out(data.ArrayLayout(arrival_layout(cfg), len(link_names(cfg)))),
        "faults": Out(data.ArrayLayout(fault_layout(cfg), len(fault_places(cfg)))),
    }


class Tile(wiring.Component):
    """One tile.

    Parameters
    ----------
    cfg : TileConfig
    trace : bool
        Whether the trace port exists; not on an FPGA.

    Members
    -------
    command : In(host.command_layout)
        One command a cycle, see `hdl.arch.host`.
    read_data : Out(row_bits)
        ``host.READ_LATENCY`` cycles after a READ command: that word of every mem slice.
    running : Out(1)
        From the cycle behind an accepted START until every queue has halted.
    halted : Out
        Bit ``q``: queue number ``q`` has halted and nothing of it will issue.
    errors : Out(FAULT_BITS)
        Sticky, bit numbers as `Fault`; a fault shows at most two cycles after its cause.
    cycle : Out(TIME_BITS)
        The cycle counter that START refers to: 0 in reset and in the first cycle behind it.
    tx<k>, rx<k> : Out, In(FlitSignature)
        Link ``k``; the host is the last.
    post<k>, taken<k>, notify : Out, Out, In
        Only with ``cfg.sync``: see `hdl.c2c.C2c` and `hdl.barrier.Barrier`.
    issues, writes, arrivals, faults : Out
        Trace port, see `trace_members`.  What it shows in counter cycle ``c`` of a run that starts
        at ``t`` are the events of event cycle ``c - t``; faults are late, as in ``errors``.
    """

    def __init__(self, cfg, *, trace=True):
        self._cfg = cfg
        self._trace = trace
        super().__init__({**host_members(cfg), **link_members(cfg),
                          **(trace_members(cfg) if trace else {})})

    def elaborate(self, platform):
        m = Module()
        self._faults = {}       # vectors of FAULT_BITS by place
        self._control(m)
        units = self._units(m, platform)
        icus = self._queues(m, platform, units)
        self._streams(m, platform, units)
        self._links(m, units)
        self._host(m, units, icus)
        m.d.sync += self.errors.eq(reduce(or_, self._faults.values(),
                                          Mux(self._clear, 0, self.errors)))
        if self._trace:
            for number, name in enumerate(fault_places(self._cfg)):
                new = self._faults.get(name, 0) & ~self.errors
                m.d.comb += [self.faults[number].bits.eq(new),
                             self.faults[number].valid.eq(new.any())]
        return m

    def _control(self, m):
        """Cycle counter, start, and what becomes of a command."""
        command = self.command
        armed, active = Signal(), Signal()
        start = data.View(start_layout, command.data[:start_layout.size])
        go_cycle = Signal(TIME_BITS, reset_less=True)
        self._steps = Signal(isa.COUNTER_BITS, reset_less=True)
        self._first_step = Signal(isa.COUNTER_BITS, reset_less=True)
        self._go, self._clear, self._all_halted = Signal(), Signal(), Signal()
        late, past, refused = Signal(), Signal(), Signal()
        m.d.sync += self.cycle.eq(self.cycle + 1)
        m.d.comb += [
            self.running.eq(armed | active),
            self._go.eq(armed & (self.cycle == go_cycle)),
            self._clear.eq(command.op == HostOp.CLEAR),
            late.eq(self.cycle + START_LEAD > start.time),
            refused.eq(self.running & (command.op != HostOp.NONE) & ~self._clear),
        ]
        # The bulk of a command is acted on one cycle later; it is small what cannot wait.
        self._op = Signal(HostOp)
        self._held = Signal(command_layout(self._cfg), reset_less=True)
        m.d.sync += [self._op.eq(HostOp.NONE), self._held.eq(command)]
        faults = Signal(FAULT_BITS, name="host_faults")
        m.d.comb += faults.eq(refused << Fault.HOST_BUSY | past << Fault.START_PAST)
        self._faults["host"] = faults
        with m.If(self._go):
            m.d.sync += [armed.eq(0), active.eq(1)]
        with m.Elif(active & self._all_halted):
            m.d.sync += active.eq(0)
        with m.If(~self.running):
            m.d.sync += self._op.eq(command.op)
            with m.If(command.op == HostOp.START):
                m.d.comb += past.eq(late)
                m.d.sync += [armed.eq(~late), go_cycle.eq(start.time - (ICU_LEAD + 1)),
                             self._first_step.eq(start.first_step),
                             self._steps.eq(Mux(start.steps == 0, 1, start.steps))]

    def _units(self, m, platform):
        """The unit of every slice that has one, by slice name."""
        units = {}
        for name in self._cfg.floorplan:
            kind = name.rstrip("0123456789")
            if kind in SLICES:
                options = {"trace": self._trace} if SLICES[kind].traced else {}
                units[name] = once(platform, kind, SLICES[kind].unit, self._cfg, **options)
                m.submodules[name] = units[name]
                self._faults[name] = units[name].faults
        if self._trace:
            for i, name in enumerate(self._cfg.slices("mem")):
                m.d.comb += self.writes[i].eq(units[name].written)
        return units

    def _queues(self, m, platform, units):
        """One ICU for each queue; returns them in order."""
        icus = []
        for number, queue in enumerate(queues(self._cfg)):
            icu = once(platform, f"icu_{queue.kind}", Icu, self._cfg, queue.kind, trace=self._trace)
            m.submodules[f"icu_{queue.name.replace('.', '_')}"] = icu
            m.d.comb += [icu.go.eq(self._go), icu.first_step.eq(self._first_step),
                         icu.steps.eq(self._steps)]
            if queue.slice in units:
                member = SLICES[queue.slice.rstrip("0123456789")].issues[queue.kind]
                wiring.connect(m, icu.issue, getattr(units[queue.slice], member.format(queue.unit)))
            if self._trace:
                m.d.comb += self.issues[number].eq(icu.traced)
            icus.append(icu)
        if self._cfg.sync:
            self._barrier(m, platform, icus)
        m.d.comb += [self.halted.eq(Cat(icu.halted for icu in icus)),
                     self._all_halted.eq(self.halted.all())]
        for queue, icu in zip(queues(self._cfg), icus, strict=True):
            here = self._faults.get(queue.name, 0)      # of a unit of this name
            self._faults[queue.name] = here | icu.fault << Fault.ICU_WORD
        return icus

    def _barrier(self, m, platform, icus):
        """What the queues' SYNCs wait for."""
        barrier = once(platform, "barrier", Barrier, self._cfg, len(icus))
        m.submodules.barrier = barrier
        m.d.comb += barrier.notify.eq(self.notify)
        for number, icu in enumerate(icus):
            wiring.connect(m, icu.barrier, getattr(barrier, f"queue{number}"))

    def _streams(self, m, platform, units):
        """One stage for each position and superlane, and the streams between them."""
        cfg, rows = self._cfg, []
        part = replace(cfg, lanes=cfg.superlane)
        for position, name in enumerate(cfg.floorplan):
            kind = name.rstrip("0123456789")
            taps, ports = [], []
            if name in units:
                spec = SLICES[kind]
                taps = [getattr(units[name], tap) for tap in spec.expand(cfg, spec.taps)]
                ports = [getattr(units[name], port) for port in spec.expand(cfg, spec.ports)]
            ends = {"last_west": position == 0, "last_east": position == len(cfg.floorplan) - 1}
            module = "_".join(["stream", kind, *(end for end, here in ends.items() if here)])
            stages = [once(platform, module, StreamStage, part,
                           tuple(tap.signature.width for tap in taps),
                           tuple(port.signature.width for port in ports), **ends)
                      for _ in range(0, cfg.lanes, part.lanes)]
            for s, stage in enumerate(stages):
                m.submodules[f"stream_{name}" if len(stages) == 1 else f"stream_{name}_{s}"] = stage
            for i, tap in enumerate(taps):
                connect_tap(m, tap, [getattr(stage, f"tap{i}") for stage in stages])
            for i, port in enumerate(ports):
                connect_port(m, port, [getattr(stage, f"port{i}") for stage in stages])
            self._faults[f"{name} streams"] = stages[0].faults
            rows.append(stages)
        for west_row, east_row in zip(rows, rows[1:], strict=False):
            for west, east in zip(west_row, east_row, strict=True):
                wiring.connect(m, west.out_east, east.in_east)
                wiring.connect(m, east.out_west, west.in_west)

    def _links(self, m, units):
        """Flits between the edge of the tile and its c2c slice."""
        for k in range(len(link_names(self._cfg))):
            for port in (f"tx{k}", f"rx{k}"):
                wiring.connect(m, wiring.flipped(getattr(self, port)), getattr(units["c2c"], port))
        if self._cfg.sync:
            for name in message_members(self._cfg):
                inner = getattr(units["c2c"], name)
                if name.startswith("post"):
                    wiring.connect(m, inner, wiring.flipped(getattr(self, name)))
                else:
                    m.d.comb += getattr(self, name).eq(inner)
        if self._trace:
            m.d.comb += self.arrivals.eq(units["c2c"].arrivals)

    def _host(self, m, units, icus):
        """Access of the host to memories, from the held command."""
        cfg, held = self._cfg, self._held
        read_data = []
        for i, name in enumerate(cfg.slices("mem")):
            port = units[name].host
            size = 8 * cfg.lanes
            m.d.comb += [
                port.write_en.eq((self._op == HostOp.SRAM) & held.select[i]
                                 & (held.address < cfg.mem_words)),
                port.read_en.eq(self._op == HostOp.READ),
                port.address.eq(held.address),
                port.write_data.eq(held.data[size * i:size * (i + 1)]),
            ]
            read_data.append(port.read_data)
        m.d.comb += self.read_data.eq(Cat(read_data))
        for number, icu in enumerate(icus):
            load, here = icu.load, Signal(name=f"load_{number}")
            m.d.comb += [
                here.eq(held.select == number),
                load.word_en.eq(here & (self._op == HostOp.WORD) & (held.address < cfg.icu_words)),
                load.table_en.eq(here & (self._op == HostOp.TABLE)
                                 & (held.address < isa.TABLE_ENTRIES)),
                load.address.eq(held.address),
                load.data.eq(held.data),
            ]
