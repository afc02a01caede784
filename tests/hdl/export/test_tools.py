"""Exports of every preset through tools that are not ours, and exports broken on purpose."""

import re
from fnmatch import fnmatch

import pytest

from hdl.arch.config import pair, single
from hdl.arch.presets import PRESETS
from hdl.export import ExportOptions
from hdl.export.lint import WAIVERS
from tests.hdl.export.tools import export, icarus, verilator, yosys

#: A reset and ports other than those of the default.
OTHER = {"reset": "async", "active_low": True, "trace": True, "errors": False, "initial": False}


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """An export of a preset's tile or system, made once."""
    made = {}

    def get(name, top):
        if (name, top) not in made:
            cfg = PRESETS[name]
            options = ExportOptions(top=top, **(OTHER if top == "system" else {}))
            made[name, top] = export(tmp_path_factory.mktemp(f"{name}-{top}"),
                                     single(cfg) if top == "tile" else pair(cfg), options)
        return made[name, top]

    return get


#: Every preset's tile, and two tiles where it has a port to link them with.
EXPORTS = [pytest.param(name, top, marks=[pytest.mark.slow] * (cfg.lanes > 4))
           for name, cfg in PRESETS.items()
           for top in ("tile", "system") if top == "tile" or cfg.ports]


@pytest.mark.parametrize(("name", "top"), EXPORTS)
def test_tools_take_it_without_a_word(exports, name, top):
    found = exports(name, top)
    assert icarus(found) == (0, "")
    code, output = verilator(found)
    assert code == 0 and "%" not in output, output[:2000]
    code, output = yosys(found)
    assert code == 0, output[-2000:]


#: Rules that only Verilators before that of the tests break.
OLDER = {"UNOPTFLAT"}


def test_every_waiver_is_needed(exports):
    _, system = verilator(exports("nano", "system"), waivers=())
    _, tile = verilator(exports("fpga", "tile"), waivers=())
    for rule, message, _ in WAIVERS:
        if rule in OLDER:
            continue
        lines = [line for line in (system + tile).splitlines() if f"%Warning-{rule}: " in line]
        assert any(fnmatch(line, f"*{message}") for line in lines), (rule, message)


@pytest.fixture
def small(exports, tmp_path):
    """A copy of an export, to be broken."""
    found = exports("nano", "tile")
    for path in found.directory.iterdir():
        (tmp_path / path.name).write_text(path.read_text())
    return found._replace(directory=tmp_path)


def append(export, text):
    """Put ``text`` at the end of the SXM's module."""
    path = export.directory / "oncycle_sxm.v"
    before, end, after = path.read_text().rpartition("endmodule")
    path.write_text(f"{before}{text}\n{end}{after}")


def test_a_latch_is_found(small):
    append(small, "  reg held;\n  always @* if (issue__valid) held = rst;")
    code, output = yosys(small)
    assert code != 0 and "$dlatch" in output
    assert "%Warning-LATCH" in verilator(small)[1]


def test_a_missing_module_is_found(small):
    lines = [line for line in small.text("filelist.f").splitlines() if line != "oncycle_sxm.v"]
    (small.directory / "filelist.f").write_text("".join(f"{line}\n" for line in lines))
    (small.directory / "oncycle_sxm.v").unlink()        # Verilator looks for it by itself
    for tool in (icarus, verilator, yosys):
        code, output = tool(small)
        assert code != 0 and "oncycle_sxm" in output


@pytest.mark.parametrize("text", [
    "  wire both;\n  assign both = rst;\n  assign both = issue__valid;",
    "  wire none;\n  wire read = none & rst;",
])
def test_wires_of_no_or_two_drivers_are_found(small, text):
    append(small, text)
    code, output = yosys(small)
    assert code != 0 and "ERROR: Found 1 problems in 'check -assert'" in output


def test_later_verilog_is_refused(small):
    append(small, "  always_comb begin end")
    assert icarus(small)[0] != 0


def test_only_files_of_the_export_are_waived(small):
    (small.directory / "mine.v").write_text(
        "module mine(input [3:0] a, output [7:0] b);\n  assign b = a;\nendmodule\n")
    (small.directory / "filelist.f").write_text("mine.v\n")
    assert "%Warning-WIDTHEXPAND" in verilator(small._replace(top="mine"))[1]


def test_nothing_is_conditional_or_of_one_tool(exports):
    for name in exports("nano", "system").modules:
        text = exports("nano", "system").text(name)
        assert "`" not in text and "//" not in text and "/*" not in text, name
        assert "always @*" not in text, name
        assert not re.search(r"\binitial (?!begin\b)", text), name    # but of tables
