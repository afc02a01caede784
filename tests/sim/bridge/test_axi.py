"""The loader over AXI4-Stream, in Verilator."""

from sim.build import run_cocotb
from tests.sim.bridge.model import bridges_model

TESTS = 7   # in tb_axi, parametrised ones counted each


def test_loader_over_a_bus(tmp_path, seed):
    run_cocotb(bridges_model(), "tests.sim.bridge.tb_axi", TESTS, run_dir=tmp_path, seed=seed,
               env={"ONCYCLE_SEED": str(seed)})
