"""Reading VCD texts written by hand."""

import pytest

from sim.waves.vcd import VcdError, Waves, extend, number

HEADER = """$timescale 1ns $end
$scope module top $end
$var wire 1 ! clk $end
$var wire 8 " data [7:0] $end
$scope module unit $end
$var wire 1 # valid $end
$var wire 513 $ wide [512:0] $end
$var wire 4 % lanes[3].part [3:0] $end
$var wire 8 " alias [7:0] $end
$upscope $end
$upscope $end
$enddefinitions $end
"""
CHANGES = """#10
$dumpvars
1!
b101 "
x#
bx $
b1z %
$end
#11
0!
#12
1!
bz0 "
1#
b1{zeros} $
b0 %
#13
0!
z#
#14
1!
bX01 "
bz $
#15
0!
""".replace("{zeros}", "0" * 512)
WIDE = "top.unit.wide"


@pytest.fixture
def read(tmp_path):
    def make(*names, text=HEADER + CHANGES):
        path = tmp_path / "some.vcd"
        path.write_text(text)
        return Waves(path, names)

    return make


@pytest.mark.parametrize(("value", "width", "full"), [
    ("101", 8, "00000101"), ("0", 8, "00000000"), ("1", 1, "1"), ("x", 8, "xxxxxxxx"),
    ("z", 513, "z" * 513), ("x01", 5, "xxx01"), ("z1", 4, "zzz1"), ("0x", 4, "000x"),
    ("1x", 4, "001x"), ("XZ", 3, "xxz"), ("10101", 5, "10101")])
def test_what_is_left_out_at_the_left(value, width, full):
    assert extend(value, width) == full


def test_value_wider_than_its_signal_is_refused():
    with pytest.raises(VcdError, match="has 9 bits, its signal 8"):
        extend("100000000", 8)


@pytest.mark.parametrize("value", ["", "1.5", "12", "-1", "u"])
def test_value_of_other_digits_is_refused(value):
    with pytest.raises(VcdError, match="made of 0, 1, x and z"):
        extend(value, 8)


def test_numbers():
    assert number("00000101") == 5
    assert number("1" + "0" * 512) == 1 << 512
    assert number("0x1") is None
    assert number("z") is None


def test_value_lasts_until_the_next_change(read):
    waves = read("top.data", "top.unit.valid", WIDE)
    assert [waves.value("top.data", time) for time in (10, 11, 12, 13, 14, 99)] == [
        "00000101", "00000101", "zzzzzzz0", "zzzzzzz0", "xxxxxx01", "xxxxxx01"]
    assert [waves.value("top.unit.valid", time) for time in (10, 12, 13)] == ["x", "1", "z"]
    assert waves.value(WIDE, 11) == "x" * 513
    assert number(waves.value(WIDE, 12)) == 1 << 512
    assert waves.value(WIDE, 14) == "z" * 513
    assert waves.width(WIDE) == 513


def test_before_the_first_value_everything_is_unknown(read):
    waves = read("top.data", "top.unit.valid")
    assert waves.value("top.data", 9) == "x" * 8
    assert waves.value("top.unit.valid", 0) == "x"


def test_cycles_begin_at_rising_edges_and_with_the_file(read):
    assert read("top.clk").cycles("top.clk") == [10, 12, 14]


def test_cycle_shows_what_is_there_at_its_end(read):
    samples = list(read("top.clk", "top.unit.valid", "top.data").sample(
        "top.clk", "top.unit.valid", "top.data"))
    assert samples == [("x", "00000101"), ("z", "zzzzzzz0"), ("z", "xxxxxx01")]


def test_names_with_brackets_and_ranges(read):
    waves = read("top.unit.lanes[3].part", "top.data[7:0]", "top.unit.alias")
    assert waves.value("top.unit.lanes[3].part", 10) == "001z"
    assert waves.value("top.data[7:0]", 10) == waves.value("top.unit.alias", 10) == "00000101"


def test_signal_that_is_not_there(read):
    with pytest.raises(VcdError, match=r"some.vcd has no signal top.dat$"):
        read("top.data", "top.dat")


def test_file_that_was_cut_off(read):
    with pytest.raises(VcdError, match="cut off"):
        read("top.data", text=HEADER + "#10\n1!\nb1010")


def test_file_that_is_no_vcd(read):
    with pytest.raises(VcdError, match="has no signal"):
        read("top.data", text="PK\x03\x04 something else\n")


def test_file_without_changes(read):
    waves = read("top.clk", "top.data", text=HEADER)
    assert waves.cycles("top.clk") == []
    assert list(waves.sample("top.clk", "top.data")) == []
    assert waves.value("top.data", 5) == "x" * 8
