"""Resets of an export in an event-driven simulator with four values, from nothing known."""

import subprocess

import pytest

from hdl.arch.config import single
from hdl.arch.presets import NANO
from hdl.export import ExportOptions
from tests.hdl.export.tools import export

#: Resets between edges of the clock, which come at 5, 15, 25 ..; prints the cycle counter just
#: before each.
BENCH = """
module bench;
  reg clk = 0, reset = {idle};
  wire [31:0] cycle;
  wire [17:0] halted;
  wire running;
  oncycle_tile tile(.clk(clk), .{port}(reset), .cycle(cycle), .halted(halted), .running(running),
    .command(142'd0), .rx0__valid(1'b0), .rx0__data(16'd0), .rx1__valid(1'b0), .rx1__data(16'd0));
  always #5 clk = !clk;
  always #10 $display("%0d %b %b", cycle, running, ^halted);
  initial begin
    #{start} reset = {active};
    #{length} reset = {idle};
    #{rest} $finish;
  end
endmodule
"""


def cycles(directory, options, start, length, end=115):
    """The cycle counter at 10, 20, 30 ..: what it is in each cycle."""
    found = export(directory, single(NANO), options)
    idle = int(options.active_low)
    (directory / "bench.v").write_text(BENCH.format(
        idle=idle, active=1 - idle, port=options.reset_port, start=start, length=length,
        rest=end - start - length))
    subprocess.run(["iverilog", "-g2005", "-o", "bench.vvp", "-s", "bench", "-c", "filelist.f",
                    "bench.v"], cwd=directory, check=True)
    done = subprocess.run(["vvp", "-n", "bench.vvp"], cwd=directory, check=True,
                          capture_output=True, text=True)
    assert found.top == "oncycle_tile"
    return [line.split() for line in done.stdout.splitlines() if line[0] in "0123456789x"]


@pytest.mark.parametrize("active_low", [False, True])
def test_a_synchronous_reset_acts_at_the_edges_it_sees(tmp_path, active_low):
    options = ExportOptions(active_low=active_low, initial=False)
    found = cycles(tmp_path, options, start=12, length=10)      # of all edges sees 15
    assert [row[0] for row in found] == ["x", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]
    assert {(running, halted) for _, running, halted in found[1:]} == {("0", "0")}


def test_an_asynchronous_reset_needs_no_edge_and_ends_two_edges_later(tmp_path):
    options = ExportOptions(reset="async", active_low=True, initial=False)
    found = cycles(tmp_path, options, start=11, length=2)       # sees no edge at all
    # 15: the first register is released; 25: the second; 35: the first edge without reset.
    assert [row[0] for row in found] == ["x", "0", "0", "1", "2", "3", "4", "5", "6", "7", "8"]
    assert {(running, halted) for _, running, halted in found[1:]} == {("0", "0")}
