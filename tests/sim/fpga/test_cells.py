"""Our models of block RAM and multiplier, against what Yosys made them of."""

import re
import shutil
import subprocess

import pytest

from sim.fpga.cells import cell_models
from sim.fpga.synthesis import synthesise
from tests.sim.fpga.modes import MEMORY_WIDTHS, TOP, modes, random_bench

pytestmark = pytest.mark.slow      # synthesis alone takes a minute of processor time

CYCLES = 200


@pytest.fixture(scope="module")
def netlist(tmp_path_factory):
    return synthesise(modes(), TOP, tmp_path_factory.mktemp("modes"))


def compare(netlist, directory, models, seed=1):
    """(bits compared, bits that differ) of a run."""
    reference = re.sub(rf"\bmodule {TOP}\b", f"module {TOP}_reference", modes())
    sources = {**models, "netlist.v": netlist.verilog.read_text(), "reference.v": reference,
               "testbench.v": random_bench(seed, CYCLES)}
    for name, text in sources.items():
        (directory / name).write_text(text)
    subprocess.run([shutil.which("iverilog"), "-g2012", "-o", "run.vvp", *sources], cwd=directory,
                   check=True)
    printed = subprocess.run([shutil.which("vvp"), "-n", "run.vvp"], cwd=directory, check=True,
                             capture_output=True, text=True).stdout
    print(printed)
    found = re.search(r"^compared (\d+) differ (\d+)$", printed, re.M)
    return int(found[1]), int(found[2])


def test_models_do_what_the_cells_were_made_of(netlist, tmp_path):
    compared, differ = compare(netlist, tmp_path, cell_models())
    assert compared > 100 * CYCLES
    assert differ == 0


def test_every_width_and_way_of_writing_is_among_them(netlist):
    cells = netlist.module()["cells"].values()
    memories = [cell["parameters"] for cell in cells if cell["type"] == "DP16KD"]
    widths = {int(memory[f"DATA_WIDTH_{port}"], 2) for memory in memories for port in "AB"}
    assert widths == set(MEMORY_WIDTHS)
    assert {memory.get("WRITEMODE_A", "NORMAL").strip() for memory in memories} == {
        "NORMAL", "WRITETHROUGH", "READBEFOREWRITE"}
    assert any(cell["type"] == "MULT18X18D" for cell in cells)
