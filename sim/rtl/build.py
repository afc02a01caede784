"""Building the simulator of a system."""

from hdl.system import system_verilog
from sim.build import build_model
from sim.rtl.top import TOP, top_verilog

__all__ = ["MAX_LATENCY", "build_rtl"]

#: Longest link latency that a simulation build can be told at run time, in cycles.
MAX_LATENCY = 64


def build_rtl(system, *, trace=True, name=None, root=None, report=None):
    """The ``fast`` build of a system: with several tiles, the tile is compiled once.

    Parameters
    ----------
    system : hdl.arch.config.SystemConfig
    trace : bool
        Whether the tiles have trace ports: without, runs give no events.
    name : str, optional
        Prefix of the build directory.
    root, report
        As of `sim.build.build_model`.

    Returns
    -------
    sim.build.Model
        Good for every program of at most ``system.tiles`` tiles, and every link latency up to the
        larger of `MAX_LATENCY` and the system's longest.

    Raises
    ------
    sim.build.SimError
        If there is no Verilator, or it refuses the design.
    """
    longest = max([MAX_LATENCY, *(link.latency for link in system.links)])
    sources = {f"{unit}.v": text
               for unit, text in system_verilog(system, trace=trace, max_latency=longest).items()}
    sources[f"{TOP}.sv"] = top_verilog(system, longest, trace=trace)
    return build_model(name or f"fast-{system.tiles}x{system.tile.lanes}", sources, top=TOP,
                       hier_blocks=["tile"] if system.tiles > 1 else [], root=root, report=report)
