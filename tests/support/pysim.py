"""Running testbenches in Amaranth's simulator."""

from pathlib import Path

from amaranth.sim import Simulator

__all__ = ["run"]

_WAVES = Path(__file__).resolve().parents[2] / "build" / "waves"


def run(component, *benches, background=(), name=None):
    """Simulate ``component`` with a clock until every testbench has ended.

    Parameters
    ----------
    component : Elaboratable
    benches, background : async functions of the simulation context
        Those in the background may run on without end.
    name : str, optional
        When a bench fails, the simulation is repeated and its waves are written to
        ``build/waves/<name>.vcd``.
    """
    sim = Simulator(component)
    sim.add_clock(1e-9)
    for bench in benches:
        sim.add_testbench(bench)
    for bench in background:
        sim.add_testbench(bench, background=True)
    try:
        sim.run()
    except AssertionError:
        if name is None:
            raise
        sim.reset()
        _WAVES.mkdir(parents=True, exist_ok=True)
        with sim.write_vcd(str(_WAVES / f"{name}.vcd")):
            sim.run()
        raise
