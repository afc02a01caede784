"""Models of the cells of a netlist, for Verilog simulators.

Those that Yosys has a model of are taken from it; block RAM and multiplier are ours.
"""

import re
from pathlib import Path

from sim.fpga.tools import YOSYS, share

__all__ = ["cell_models"]

#: Cells by the file of Yosys that has their model.
_OF_YOSYS = {
    "common_sim.vh": ("LUT2", "LUT4", "PFUMX", "L6MUX21", "TRELLIS_DPR16X4", "TRELLIS_FF"),
    "ccu2c_sim.vh": ("CCU2C",),
}
_TIMES = re.compile(r"^\s*specify\b.*?^\s*endspecify\n", re.M | re.S)


def cell_models():
    """Verilog of all cells of an ECP5 netlist: dict of file name to text, without delays."""
    found = {}
    for file, cells in _OF_YOSYS.items():
        text = _TIMES.sub("", (share(YOSYS) / "ecp5" / file).read_text())
        for cell in cells:
            module = re.search(rf"^module {cell} ?\(.*?^endmodule\n", text, re.M | re.S)
            found[f"{cell.lower()}.v"] = module[0]
    return found | {file.name: file.read_text()
                    for file in sorted(Path(__file__).parent.glob("*.v"))}
