"""Verilog that has every form of memory and product that the tile may have, and a testbench."""

import re

__all__ = ["MEMORY_WIDTHS", "PRODUCTS", "TOP", "modes", "random_bench"]

TOP = "modes"
MEMORY_WIDTHS = (1, 2, 4, 9, 18, 36)
#: Bits and whether signed, of both factors.
PRODUCTS = ((18, True, 18, True), (18, False, 18, False), (8, True, 8, True),
            (12, False, 24, False), (17, False, 18, True), (24, True, 24, True))
_ADDRESS_BITS = {1: 14, 2: 13, 4: 12, 9: 11, 18: 10, 36: 9}
_WRITES = {
    "keep": "if (we) memory[wa] <= d; else if (re) q <= memory[wa];",
    "new": "begin if (we) memory[wa] <= d; if (re) q <= we ? d : memory[wa]; end",
    "old": "begin if (we) memory[wa] <= d; if (re) q <= memory[wa]; end",
}


def _memory(name, width, body, *, contents=""):
    bits = _ADDRESS_BITS[width]
    return f"""
module {name} (input clk, input we, input re, input rst, input [3:0] be, input [{bits - 1}:0] wa,
               input [{bits - 1}:0] ra, input [{width - 1}:0] d, output reg [{width - 1}:0] q);
  (* ram_style = "block" *) reg [{width - 1}:0] memory [0:{(1 << bits) - 1}];
  integer i;
  {contents}
  always @(posedge clk) {body}
endmodule
"""


def _bytes(width):
    return "begin " + " ".join(
        f"if (we && be[{i}]) memory[wa][{9 * i} +: 9] <= d[{9 * i} +: 9];"
        for i in range(width // 9)) + " if (re) q <= memory[ra]; end"


def modes():
    """Verilog of all forms; module `TOP` has the inputs of all of them and all their outputs."""
    two = "begin if (we) memory[wa] <= d; if (re) q <= memory[ra]; end"
    clear = "begin if (we) memory[wa] <= d; if (rst) q <= 0; else if (re) q <= memory[ra]; end"
    made = {}
    for width in MEMORY_WIDTHS:
        made[f"two_{width}"] = width, _memory(f"two_{width}", width, two)
        if width != 36:
            made[f"clear_{width}"] = width, _memory(f"clear_{width}", width, clear)
            made |= {f"{kind}_{width}": (width, _memory(f"{kind}_{width}", width, body))
                     for kind, body in _WRITES.items()}
        if width >= 18:
            made[f"bytes_{width}"] = width, _memory(f"bytes_{width}", width, _bytes(width))
        fill = f"initial for (i = 0; i < {1 << _ADDRESS_BITS[width]}; i = i + 1) " \
               f"memory[i] = 40503 * i ^ i >> 3;"
        made[f"filled_{width}"] = width, _memory(f"filled_{width}", width, two, contents=fill)
    text, instances, at = "", [], 0
    for name, (width, module) in made.items():
        bits = _ADDRESS_BITS[width]
        instances.append(
            f"  {name} {name}_i (.clk(clk), .we(we), .re(re), .rst(rst), .be(be), "
            f".wa(wa[{bits - 1}:0]), .ra(ra[{bits - 1}:0]), .d(d[{width - 1}:0]), "
            f".q(q[{at} +: {width}]));")
        text += module
        at += width
    for number, (a_bits, a_signed, b_bits, b_signed) in enumerate(PRODUCTS):
        a, b = (f"$signed({{1'b0, {name}}})" if not is_signed else f"$signed({name})"
                for name, is_signed in ((f"d[{a_bits - 1}:0]", a_signed),
                                        (f"e[{b_bits - 1}:0]", b_signed)))
        width = a_bits + b_bits
        instances.append(f"  wire signed [{width - 1}:0] p{number} = {a} * {b};\n"
                         f"  assign q[{at} +: {width}] = p{number};")
        at += width
    return text + f"""
module {TOP} (input clk, input we, input re, input rst, input [3:0] be, input [13:0] wa,
              input [13:0] ra, input [35:0] d, input [35:0] e, output [{at - 1}:0] q);
""" + "\n".join(instances) + "\nendmodule\n"


def random_bench(seed, cycles):
    """Testbench that compares `TOP` with ``TOP_reference`` in ``cycles`` cycles of random inputs.

    It prints how many bits were compared and how many of them differed.  A bit that the reference
    does not know yet is not compared.
    """
    width = int(re.search(r"output \[(\d+):0\] q\);\n  two_1", modes())[1]) + 1
    return f"""
module testbench;
  reg clk = 0, we, re, rst;
  reg [3:0] be;
  reg [13:0] wa, ra;
  reg [35:0] d, e;
  wire [{width - 1}:0] q, expected;
  integer seed = {seed}, cycle, i, compared = 0, differ = 0;
  {TOP} dut (.clk(clk), .we(we), .re(re), .rst(rst), .be(be), .wa(wa), .ra(ra), .d(d), .e(e),
             .q(q));
  {TOP}_reference reference (.clk(clk), .we(we), .re(re), .rst(rst), .be(be), .wa(wa), .ra(ra),
                             .d(d), .e(e), .q(expected));
  // A few addresses, far apart and close together.
  function [13:0] address(input integer from);
    address = (from & 3) | (from >> 2 & 1) << 4 | (from >> 3 & 1) << 8;
  endfunction
  initial begin
    for (cycle = 0; cycle < {cycles}; cycle = cycle + 1) begin
      we = $random(seed); re = $random(seed) | $random(seed); be = $random(seed);
      rst = ($random(seed) & 7) == 0;
      wa = address($random(seed)); ra = address($random(seed));
      d = {{$random(seed), $random(seed)}}; e = {{$random(seed), $random(seed)}};
      #1 clk = 1;
      #1 clk = 0;
      for (i = 0; i < {width}; i = i + 1)
        if (expected[i] !== 1'bx) begin
          compared = compared + 1;
          if (q[i] !== expected[i]) begin
            differ = differ + 1;
            if (differ < 20) $display("cycle %0d: bit %0d is %b, not %b", cycle, i, q[i],
                                      expected[i]);
          end
        end
    end
    $display("compared %0d differ %0d", compared, differ);
    $finish;
  end
endmodule
"""
