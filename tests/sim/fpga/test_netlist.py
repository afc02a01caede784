"""Counting of cells, what is too much, and reports, on netlists written by hand."""

from collections import Counter

import pytest

from hdl.arch.presets import FPGA
from hdl.emit import emit
from hdl.mem import Mem
from hdl.mxm.columns import MxmColumns
from sim.fpga.netlist import cells_by_unit, not_inferred, overflow, totals, unit_of
from sim.fpga.parts import PARTS, constraints
from sim.fpga.route import read_report
from sim.fpga.synthesis import synthesise


@pytest.mark.parametrize(("name", "unit"), [
    ("serial.tile.mem0.sram.0.0", "mem0"), ("serial.tile.icu_alu0.pc", "icu_alu0"),
    ("serial.tile.cycle", "tile"), ("serial.left", "board"), ("count", None),
    ("$abc$1$lut", None), ("tile.vxm.valid", "vxm")])
def test_unit_of_a_name(name, unit):
    assert unit_of(name) == unit


def _cell(kind, **connections):
    return {"type": kind, "connections": connections}


def test_luts_count_to_what_they_drive_or_feed():
    module = {
        "netnames": {"serial.tile.mem0.q": {"hide_name": 0, "bits": [4]},
                     "$n": {"hide_name": 1, "bits": [3]}},
        "cells": {"serial.tile.mem0.q_reg": _cell("TRELLIS_FF", DI=[3], Q=[4]),
                  "$lut1": _cell("LUT4", A=[2], Z=[3]), "$lut2": _cell("LUT4", A=[1], Z=[2]),
                  "serial.tile.vxm.x": _cell("MULT18X18D", A0=[4]),
                  "$carry": _cell("CCU2C", S0=[9], S1=[10]),
                  "serial.tile.icu_alu0.w": _cell("DP16KD", A=[9])}}
    counts = cells_by_unit(module)
    assert counts == {"mem0": Counter({"FF": 1, "LUT": 2}), "vxm": Counter({"DSP": 1}),
                      "icu_alu0": Counter({"LUT": 2, "block RAM": 1})}
    assert totals(counts)["LUT"] == 4


def test_what_is_too_much_for_a_part_is_said():
    counts = {"vxm": Counter({"LUT": 30_000, "DSP": 20}), "mem0": Counter({"block RAM": 60})}
    assert overflow(counts, PARTS["85k"]) == ""
    assert overflow(counts, PARTS["25k"]) == "30,000 of 24,288 LUTs, 60 of 56 block RAMs"


def _enough(cfg):
    counts = {unit: Counter({"block RAM": 100, "DSP": 100})
              for unit in (*cfg.slices("mem"), *cfg.slices("mxm"))}
    return counts | {f"icu_{name}": Counter({"block RAM": 100}) for name in (
        *(f"{mem}_{port}" for mem in cfg.slices("mem") for port in ("read", "write")),
        "mxm0_weight", "mxm0_act", *(f"alu{i}" for i in range(len(cfg.alus))), "reduce", "sxm0",
        "host_send", "host_recv")}


def test_memories_and_products_that_are_not_inferred_are_named():
    counts = _enough(FPGA)
    assert not_inferred(FPGA, counts) == []
    counts["mem3"] = Counter({"block RAM": 3, "LUT RAM": 2})
    counts["icu_alu1"] = Counter()
    counts["mxm0"] = Counter({"DSP": 15})
    assert not_inferred(FPGA, counts) == [
        "mem3 has 3 block RAMs, not 4", "icu_alu1 has 0 block RAMs, not 8",
        "mem3 has 2 LUT RAMs", "mxm0 has 15 DSPs, not 16"]


def test_a_slice_is_block_ram_and_products_are_multipliers(tmp_path):
    mem = "\n".join(emit(Mem(FPGA, trace=False), "mem0").values())
    columns = "\n".join(emit(MxmColumns(rows=4, columns=4, accumulators=4, accumulator_bits=32),
                             "mxm0").values())
    types = {}
    for name, text in (("mem0", mem), ("mxm0", columns)):
        module = synthesise(text, name, tmp_path / name).module()
        types[name] = Counter(cell["type"] for cell in module["cells"].values())
    assert types["mem0"]["DP16KD"] == 4 and not types["mem0"]["TRELLIS_DPR16X4"]
    assert types["mem0"]["TRELLIS_FF"] < 300
    assert types["mxm0"]["MULT18X18D"] == 16


def test_pins_of_the_board():
    text = constraints()
    assert 'LOCATE COMP "clk25" SITE "G2";' in text
    assert text.count("LOCATE") == text.count("IO_TYPE=LVCMOS33") == 11
    assert 'FREQUENCY PORT "clk25" 25 MHZ;' in text


def test_report_gives_clock_and_path_by_unit():
    def step(kind, source, target, delay):
        return {"type": kind, "delay": delay, "from": {"cell": source, "port": "Q"},
                "to": {"cell": target, "port": "D"}}
    report = {
        "utilization": {name: {"used": 1, "available": 2} for name in (
            "TRELLIS_COMB", "TRELLIS_FF", "DP16KD", "MULT18X18D")},
        "fmax": {"clk": {"achieved": 62.5, "constraint": 50}},
        "critical_paths": [
            {"from": "posedge clk", "to": "posedge clk", "path": [
                step("clk-to-q", "s.tile.mem0.a", "s.tile.mem0.a", 5.0),
                step("routing", "s.tile.mem0.a", "$lut", 2.0),
                step("logic", "$lut", "$lut", 1.0),
                step("routing", "$lut", "s.tile.vxm.b", 8.0)]},
            {"from": "<async>", "to": "posedge clk", "path": []}],
        "detailed_net_timings": [
            {"net": "s.tile.mem0.n", "endpoints": [{"cell": "s.tile.vxm.b", "delay": 3.0},
                                                   {"cell": "s.tile.vxm.c", "delay": 9.0}]}]}
    routed = read_report(report)
    assert routed.mhz == 62.5 and routed.used["DSP"] == (1, 2)
    assert routed.path_by_unit() == [("mem0", 8.0), ("vxm", 8.0)]
    assert routed.arrivals == {"vxm": 9.0}
