"""Small designs to build."""

from amaranth import Module
from amaranth.back import verilog
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Counter(wiring.Component):
    """Counts the cycles in which `en` is set."""

    en: In(1)
    count: Out(8)

    def elaborate(self, platform):
        m = Module()
        with m.If(self.en):
            m.d.sync += self.count.eq(self.count + 1)
        return m


#: Two counters, and registers that nothing initialises: what Amaranth does not emit, in Verilog.
PAIR = """
module pair(input clk, input rst, input [1:0] en, output [7:0] a, output [7:0] b,
            output [31:0] top_register, output [31:0] block_register, output [31:0] block_memory);
    reg [31:0] never_written;
    assign top_register = never_written;
    counter left (.clk(clk), .rst(rst), .en(en[0]), .count(a));
    counter right (.clk(clk), .rst(rst), .en(en[1]), .count(b));
    undefined held (.address(en), .state(block_register), .word(block_memory));
endmodule

module undefined(input [1:0] address, output [31:0] state, output [31:0] word);
    reg [31:0] never_written;
    reg [31:0] memory [3:0];
    assign state = never_written;
    assign word = memory[address];
endmodule
"""


def counter_verilog():
    return verilog.convert(Counter(), name="counter", emit_src=False)
