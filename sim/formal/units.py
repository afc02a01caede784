"""Benches of the units that compute: SXM and MXM."""

from amaranth.hdl import Value

from hdl.arch.presets import NANO
from hdl.mxm import Mxm
from hdl.sxm import Sxm
from sim.formal.twins import twins

__all__ = ["UNITS", "other_data"]

#: By name: the unit, its members for a port and a tap, and what may differ besides vectors.  Of an
#: MXM also what an instruction leaves in registers while nothing is under way.
UNITS = {
    "sxm": (Sxm, "port", "tap", ("values", "result", "map_*")),
    "mxm": (Mxm, "port", "act_tap",
            ("columns_0.*", "vectors", "first", "count_log2", "by_column", "unnamed_*")),
}


def other_data(bench, name, mutation=None):
    """Two units with the same issues and different vectors from the streams."""
    unit, port, tap, data = UNITS[name]
    copies, _ = twins(bench, lambda: unit(NANO), mutation=mutation, data=("*__data", *data))
    taken = [Value.cast(getattr(copy, tap).data) for copy in copies]
    bench.cover("puts_while_vectors_differ", getattr(copies[0], port).east_en
                & (taken[0] != taken[1]))
