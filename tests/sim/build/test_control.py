"""The generated control file and the reading of module headers."""

import pytest

from sim.build import BuildFailed
from sim.build.control import WAIVERS, control_file, module_ports
from tests.sim.build.counter import PAIR, counter_verilog


def test_ports_declared_in_the_header():
    assert module_ports(PAIR, "pair") == {
        "clk": "input",
        "rst": "input",
        "en": "input",
        "a": "output",
        "b": "output",
        "top_register": "output",
        "block_register": "output",
        "block_memory": "output",
    }


def test_ports_declared_in_the_body():
    assert module_ports(counter_verilog(), "counter") == {
        "clk": "input",
        "rst": "input",
        "en": "input",
        "count": "output",
    }


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("module m; wire a; endmodule", {}),
        ("module m(); endmodule", {}),
        ("module m(input wire [3:0] a, b, output reg signed [1:0] c); endmodule",
         {"a": "input", "b": "input", "c": "output"}),
        ("module m #(parameter W = 4)(input [W-1:0] a, inout b); endmodule",
         {"a": "input", "b": "inout"}),
        ("module m(a, b); input a, b; // input c;\n /* output d; */ endmodule",
         {"a": "input", "b": "input"}),
        ("module n(input x); endmodule module m((* keep *) input a); endmodule", {"a": "input"}),
    ],
)  # fmt: skip
def test_forms_of_port_lists(text, ports):
    assert module_ports(text, "m") == ports


def test_missing_module_is_named():
    with pytest.raises(BuildFailed, match="no module 'tile' in the Verilog"):
        module_ports("module tile_2(input a); endmodule", "tile")


def test_undeclared_port_is_named():
    with pytest.raises(BuildFailed, match="port 'b' of module 'm' has no plain declaration"):
        module_ports("module m(a, b); input a; endmodule", "m")


def test_control_file_says_what_was_asked_for():
    text = control_file(
        top="t",
        ports={"a": "input", "b": "output"},
        hier_blocks=["tile"],
        expose=[("inner", "state")],
        version=(5, 48),
    )
    lines = [line for line in text.splitlines() if not line.startswith(("//", "lint_off"))]
    assert lines == [
        "`verilator_config",
        'hier_block -module "tile"',
        'public_flat_rw -module "t" -var "a"',
        'public_flat_rd -module "t" -var "b"',
        'public_flat_rd -module "inner" -var "state"',
    ]


def test_every_waiver_has_a_reason_and_newer_rules_are_left_out(monkeypatch):
    assert all(reason for _, _, reason in WAIVERS)
    monkeypatch.setattr("sim.build.control.WAIVERS", (("NEW", (5, 40), "why"),))
    assert "NEW" not in control_file(top="t", ports={}, version=(5, 39))
    assert "// why\nlint_off -rule NEW" in control_file(top="t", ports={}, version=(5, 40))
