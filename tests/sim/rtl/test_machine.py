"""The machine driver, in Verilator."""

from sim.build import run_cocotb
from sim.rtl.build import build_rtl
from tests.sim.rtl.programs import SYSTEM

TESTS = 5   # in tb_machine


def test_driver(tmp_path, seed):
    directory = tmp_path.resolve()
    run_cocotb(build_rtl(SYSTEM), "tests.sim.rtl.tb_machine", TESTS, run_dir=directory, seed=seed,
               env={"ONCYCLE_EXCHANGE": str(directory)}, plusargs=[f"+exchange={directory}"])
