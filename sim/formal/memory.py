"""Bench of an SRAM slice."""

from amaranth.hdl import Cat, Mux, Value

from hdl.arch.errors import Fault
from hdl.arch.presets import NANO
from hdl.mem import Mem
from sim.formal.twins import twins, when

__all__ = ["other_data"]


def other_data(bench, mutation=None):
    """Two slices with the same issues, different words and different vectors from the streams.

    So the addresses of GATHERs differ too.  Of the faults only ``SRAM_COLLISION`` may: it tells of
    a GATHER that met a WRITE of its word.
    """
    collides = 1 << Fault.SRAM_COLLISION
    copies, _ = twins(
        bench, lambda: Mem(NANO), mutation=mutation,
        data=("*__data", "host__*_data", "data_s1", "gather_address_s1", "inside_s1"),
        partly={
            "written": lambda written, _: Cat(written.valid,
                                              Mux(written.valid, written.address, 0)),
            "address_s1": when("write_s1"), "insn_s1": when("gather_s1"),
            "faults": lambda faults, _: faults & ~collides})
    ports = [copy.port for copy in copies]
    bench.cover("words_differ", ports[0].east_en
                & (Value.cast(ports[0].data) != Value.cast(ports[1].data)))
    bench.cover("collides_in_one", (copies[0].faults ^ copies[1].faults)[Fault.SRAM_COLLISION])
