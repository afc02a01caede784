"""The exported Verilog does what the simulated one does."""

import re

from hdl.export import ExportOptions, export_files
from sim.build import build_model
from sim.conformance import check
from sim.emulate import run_emulator
from sim.rtl.build import MAX_LATENCY
from sim.rtl.run import run_rtl
from sim.rtl.top import TOP, top_verilog
from tests.sim.rtl.programs import SYSTEM, copy_binary, copy_plan


def test_a_program_on_two_exported_tiles_runs_as_planned(tmp_path, seed):
    files = export_files(SYSTEM, ExportOptions(top="system", trace=True, initial=False))
    sources = {name: text for name, text in files.items() if name.endswith(".v")}
    sources[f"{TOP}.sv"] = top_verilog(SYSTEM, MAX_LATENCY)
    # What lint.vlt of the export waives, and our control file knows nothing of.
    model = build_model("export-2x4", sources, top=TOP, args=["-Wno-CASEOVERLAP"],
                        hier_blocks=["oncycle_tile"])
    binary, runs = copy_binary(), [(0, 3)]
    emulator = run_emulator(SYSTEM, binary, garbage=seed, runs=runs)
    rtl = run_rtl(model, SYSTEM, binary=binary, garbage=seed, runs=runs, seed=seed,
                  run_dir=tmp_path)
    report = check(SYSTEM, binary, plan=copy_plan(0, 3), emulator=emulator[0], rtl=rtl.runs[0])
    assert report.ok, report.lines()
    assert re.search("0 missing, 0 unplanned, 0 off-cycle, 0 wrong", report.lines()[0])
