"""Verilog-2005 of small components."""

import re

import pytest
from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.emit import once
from hdl.export import ExportOptions
from hdl.export.verilog import verilog_2005


class Inner(wiring.Component):
    """A table and one of four values."""

    select: In(2)
    values: In(32)
    word: Out(16)
    value: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.table = table = Memory(shape=unsigned(16), depth=4, init=[0, 0xBEEF])
        port = table.read_port()
        m.d.comb += [port.addr.eq(self.select), self.word.eq(port.data)]
        with m.Switch(self.select):
            for i in range(4):
                with m.Case(i):
                    m.d.comb += self.value.eq(self.values[8 * i:8 * i + 8])
        return m


class Outer(wiring.Component):
    """A register, a constant, and units both plain and named."""

    select: In(2)
    count: Out(8, init=0xA5)
    constant: Out(4)
    word: Out(16)

    def elaborate(self, platform):
        m = Module()
        m.submodules.plain = plain = Inner()
        m.submodules.named = named = once(platform, "named", Inner)
        unread = Signal(9)
        m.d.comb += [plain.select.eq(self.select), named.select.eq(plain.value),
                     self.word.eq(plain.word ^ named.word), self.constant.eq(5),
                     unread.eq(plain.word)]
        m.d.sync += self.count.eq(self.count + 1)
        return m


def test_a_file_for_each_module_under_plain_names():
    modules = verilog_2005(Outer(), "outer", prefix="my_")
    assert list(modules) == ["my_named", "my_outer_plain", "my_outer"]
    for name, text in modules.items():
        assert re.findall(r"^module (\S+)\(", text, re.M) == [name]
    assert "  my_named named (" in modules["my_outer"]
    assert "  my_outer_plain plain (" in modules["my_outer"]


def test_initial_values_can_be_left_out_and_tables_stay():
    kept, dropped = (verilog_2005(Outer(), "outer", prefix="", initial=initial)
                     for initial in (True, False))
    assert "  reg [7:0] count;\n  initial count = 8'ha5;\n" in kept["outer"]
    assert "  reg [7:0] count;\n" in dropped["outer"] and "initial" not in dropped["outer"]
    assert "16'hbeef" in kept["named"] and dropped["named"] == kept["named"]


def test_logic_is_assigned_at_all_times():
    modules = verilog_2005(Outer(), "outer", prefix="")
    assert "assign constant = 4'h5;" in modules["outer"] and "unread" not in modules["outer"]
    text = modules["named"]
    assert re.search(r"\n *\(\* parallel_case \*\)\n *casez \(s\)\n", text)
    assert not re.search(r"always @\*|always_|//", text)


@pytest.mark.parametrize(("change", "message"), [
    ({"top": "chip"}, "Export's top must be one of tile, system, not 'chip'"),
    ({"reset": "soft"}, "Export's reset must be one of sync, async, not 'soft'"),
    ({"prefix": ""}, "Prefix of module names must be letters, digits and underscores, a letter "
                     "first, not ''"),
])
def test_options_are_checked(change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ExportOptions(**change)
