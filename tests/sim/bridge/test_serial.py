"""The loader over a serial line, in Verilator."""

from sim.build import run_cocotb
from tests.sim.bridge.model import bridges_model

TESTS = 13   # in tb_serial, parametrised ones counted each


def test_loader_over_a_line(tmp_path, seed):
    run_cocotb(bridges_model(), "tests.sim.bridge.tb_serial", TESTS, run_dir=tmp_path, seed=seed,
               env={"ONCYCLE_SEED": str(seed)})
