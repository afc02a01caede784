"""The top module of an export: a tile or a system behind one clock and one reset of choice."""

import re
from dataclasses import dataclass

from amaranth.hdl import ClockDomain, Module
from amaranth.lib import wiring
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.wiring import In

from hdl.emit import once
from hdl.system import System
from hdl.tile import Tile

__all__ = ["MAX_LATENCY", "RESETS", "TOPS", "ExportOptions", "ExportTop"]

#: What can be exported: one tile, or all tiles with the links between them.
TOPS = ("tile", "system")
RESETS = ("sync", "async")
#: Longest latency of a link of a system that can be selected, in cycles.
MAX_LATENCY = 64


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What an export is to have.

    Parameters
    ----------
    top : str
        One of `TOPS`.
    reset : str
        ``"sync"``: sampled at the clock's rising edge.  ``"async"``: acts without a clock on two
        registers, which release the design two cycles behind it.
    active_low : bool
        Whether the reset's port is ``rst_n`` and 0 resets, instead of ``rst`` and 1.
    trace, errors : bool
        Whether the trace ports and the error register's ports exist.
    initial : bool
        Whether registers have initial values, as an FPGA loads them.
    prefix : str
        First part of all module names.

    Raises
    ------
    ValueError
        If one of them has another value.
    """

    top: str = "tile"
    reset: str = "sync"
    active_low: bool = False
    trace: bool = False
    errors: bool = True
    initial: bool = True
    prefix: str = "oncycle_"

    def __post_init__(self):
        for name, values in (("top", TOPS), ("reset", RESETS)):
            value = getattr(self, name)
            if value not in values:
                raise ValueError(f"Export's {name} must be one of {', '.join(values)}, not "
                                 f"{value!r}")
        if not re.fullmatch(r"[A-Za-z]\w*", self.prefix, re.ASCII):
            raise ValueError("Prefix of module names must be letters, digits and underscores, a "
                             f"letter first, not {self.prefix!r}")

    @property
    def module(self):
        """Name of the top module."""
        return f"{self.prefix}{self.top}"

    @property
    def reset_port(self):
        """Name of the reset's port."""
        return "rst_n" if self.active_low else "rst"


class ExportTop(wiring.Component):
    """A `Tile` or a `System` and its clock domain.

    Parameters
    ----------
    system : SystemConfig
        Of a tile only its ``tile`` counts.
    options : ExportOptions

    Members
    -------
    clk : In(1)
    rst or rst_n : In(1)
        See `ExportOptions`.
    others
        Those of the `Tile` or `System`, of the same names, but for what the options leave out.
    """

    def __init__(self, system, options):
        self._options = options
        if options.top == "tile":
            self._core = Tile(system.tile, trace=options.trace)
        else:
            self._core = System(system, trace=options.trace,
                                max_latency=max([MAX_LATENCY, *(link.latency
                                                                for link in system.links)]))
        self._shared = {name: member for name, member in self._core.signature.members.items()
                        if options.errors or name.rpartition("_")[2] != "errors"}
        super().__init__({"clk": In(1), options.reset_port: In(1), **self._shared})

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = sync = ClockDomain(local=True)
        m.d.comb += sync.clk.eq(self.clk)
        port = getattr(self, self._options.reset_port)
        reset = ~port if self._options.active_low else port
        if self._options.reset == "async":
            m.submodules.reset = ResetSynchronizer(reset)
        else:
            m.d.comb += sync.rst.eq(reset)
        # By name, or Amaranth would name some of its ports after what they carry.
        m.submodules.core = core = once(platform, f"{self._options.top}_core", lambda: self._core)
        for name, member in self._shared.items():
            inner, outer = getattr(core, name), getattr(self, name)
            if member.is_signature:
                source, target = ((wiring.flipped(outer), inner) if member.flow == In
                                  else (inner, wiring.flipped(outer)))
                wiring.connect(m, source, target)
            elif member.flow == In:
                m.d.comb += inner.eq(outer)
            else:
                m.d.comb += outer.eq(inner)
        return m
