"""One tile of a larger system in the waves; the others and the lanes of its units are opaque."""

from dataclasses import replace

import pytest

from hdl.arch.config import pair, single
from hdl.arch.presets import DEMO, NANO
from sim.commands.hello import hello_program
from sim.rtl import build
from sim.rtl.run import VCD, run_rtl
from sim.waves.gtkw import tile_path, write_view
from sim.waves.header import read_header
from tests.sim.waves.reading import issues, recorded_issues

TILE = 1
#: Three tiles: too large to be seen whole.
MACHINE = replace(pair(NANO), tiles=3)
FIRST, LAST = 5, 40


@pytest.mark.slow
def test_visible_tile_shows_its_issues_and_others_nothing(tmp_path):
    program, _ = hello_program(4)
    model = build.build_rtl(MACHINE, kind="waves", tile=TILE)
    result = run_rtl(model, program.system, program.binary, machine=MACHINE, run_dir=tmp_path,
                     waves=(FIRST, LAST))
    found = issues(tmp_path, NANO, TILE)
    assert found
    assert found == recorded_issues(result.runs[0].events, TILE, FIRST, LAST)
    names = read_header(tmp_path / VCD).names
    inside = {name.removeprefix(f"{tile_path(tile)}.").split(".")[0]
              for tile in (0, 2) for name in names if name.startswith(f"{tile_path(tile)}.icu_")}
    assert inside == set()
    write_view(tmp_path / VCD, NANO, TILE, program.binary.tiles[TILE].words)


def few_units(system, **_):
    """Verilog as that of a system, with next to nothing in it."""
    instances = "".join(f"  tile tile{i} (\n  );\n" for i in range(system.tiles))
    return {"vxm_superlane": "module vxm_superlane();\nendmodule\n",
            "mxm_columns": "module mxm_columns();\nendmodule\n",
            "tile": "module tile();\n  wire \\a.b ;\nendmodule\n",
            "oncycle_system": f"module oncycle_system();\n{instances}endmodule\n"}


@pytest.fixture
def given(monkeypatch):
    """What `build_model` is given for a system, instead of a build."""
    calls = []
    monkeypatch.setattr(build, "emitted", few_units)
    monkeypatch.setattr(build, "build_model", lambda name, sources, **options: calls.append(
        (sources, options)))

    def make(system, **options):
        build.build_rtl(system, **options)
        return calls[-1]

    return make


def test_one_instance_is_another_module(given):
    sources, options = given(MACHINE, kind="waves", tile=TILE)
    assert options["hier_blocks"] == ["tile"]
    assert sources["mxm_columns.v"].startswith("/* verilator tracing_off */\n")
    assert options["dump"] == "dumping"
    assert [line.split()[:2] for line in sources["oncycle_system.v"].splitlines()
            if "tile tile" in line] == [
        ["tile", "tile0"], ["visible_tile", "tile1"], ["tile", "tile2"]]
    assert sources["visible_tile.v"] == "module visible_tile();\n  wire a__b ;\nendmodule\n"
    assert sources["tile.v"].startswith("module tile(")
    assert f"system.tile{TILE}.icu_mem0_read.issue__word" in sources["oncycle_top.sv"]


def test_single_tile_is_the_visible_one(given):
    sources, options = given(single(DEMO), kind="waves")
    assert options["hier_blocks"] == []
    assert sources["vxm_superlane.v"].startswith("/* verilator tracing_off */\n")
    assert "visible_tile.v" not in sources


def test_very_small_system_is_seen_whole(given):
    sources, options = given(pair(NANO), kind="waves")
    assert options["hier_blocks"] == []
    assert sources["vxm_superlane.v"].startswith("module ")


def test_fast_build_has_nothing_of_it(given):
    sources, options = given(pair(NANO))
    assert options["hier_blocks"] == ["tile"]
    assert "dump" not in options
    assert "event_cycle" not in sources["oncycle_top.sv"]
    assert "wire \\a.b ;" in sources["tile.v"]


@pytest.mark.parametrize(("options", "message"), [
    ({"kind": "slow"}, "must be one of fast, waves, not 'slow'"),
    ({"kind": "waves", "tile": 3}, r"must be in 0\.\.2, not 3"),
    ({"kind": "waves", "tile": -1}, r"must be in 0\.\.2, not -1"),
    ({"kind": "waves", "trace": False}, "must have trace ports")])
def test_builds_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        build.build_rtl(MACHINE, **options)


def test_fields_have_plain_names():
    assert build.plain_name("a[2].b") == "a_2__b"
    text = ("module m(a);\n  wire [1:0] \\a[2].b ;\n  wire \\$1 ;\n  wire \\a[2][0] ;\n"
            "  wire \\wait ;\n  assign \\$1 = \\a[2].b [0];\nendmodule\n")
    hidden = build.readable("m", text)
    assert hidden == ("module m(a);\n  wire [1:0] a_2__b ;\n  wire \\_$1 ;\n  wire \\_a[2][0] ;\n"
                      "  wire \\wait ;\n  assign \\_$1 = a_2__b [0];\nendmodule\n")


def test_two_names_do_not_become_one():
    with pytest.raises(RuntimeError, match="has a signal a__b beside a.b"):
        build.readable("m", "module m();\n  wire a__b;\n  wire \\a.b ;\nendmodule\n")
