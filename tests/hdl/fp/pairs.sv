// Feeds 16 lanes of every unit from the file operands.bin, one record a clock cycle, and writes what
// the units show before each edge to results.bin.
//
// Operands (most significant byte first): 16 bits of control, 16 lanes of b, 16 lanes of a, the
// highest lane first.  Results (words, least significant first): 16 lanes of each unit in turn.
module pairs(input clk, output reg done);
  localparam LANES = 16;
  localparam WIDTH = 32 * LANES;

  reg [15:0] control;
  reg [WIDTH - 1:0] a, b;
  wire [WIDTH - 1:0] r_add, r_mul, r_compare, r_to_int, r_from_int, r_acc, r_int;

  genvar i;
  generate
    for (i = 0; i < LANES; i = i + 1) begin : lane
      fp_add add_i(.clk(clk), .rst(1'b0), .subtract(control[0]),
        .a(a[32 * i +: 32]), .b(b[32 * i +: 32]), .r(r_add[32 * i +: 32]));
      fp_mul mul_i(.clk(clk), .rst(1'b0),
        .a(a[32 * i +: 32]), .b(b[32 * i +: 32]), .r(r_mul[32 * i +: 32]));
      fp_compare compare_i(.clk(clk), .rst(1'b0), .op(control[3:1]),
        .a(a[32 * i +: 32]), .b(b[32 * i +: 32]), .r(r_compare[32 * i +: 32]));
      fp_to_int to_int_i(.clk(clk), .rst(1'b0), .format(control[5:4]),
        .a(a[32 * i +: 32]), .r(r_to_int[32 * i +: 32]));
      int_to_fp from_int_i(.clk(clk), .rst(1'b0),
        .a(a[32 * i +: 32]), .r(r_from_int[32 * i +: 32]));
      acc_to_fp acc_i(.clk(clk), .rst(1'b0),
        .a({b[32 * i +: 8], a[32 * i +: 32]}), .r(r_acc[32 * i +: 32]));
      int_add int_add_i(.clk(clk), .rst(1'b0), .subtract(control[0]),
        .a(a[32 * i +: 32]), .b(b[32 * i +: 32]), .r(r_int[32 * i +: 32]));
    end
  endgenerate

  integer source, sink, got;
  reg [16 + 2 * WIDTH - 1:0] record;

  initial begin
    done = 0;
    source = $fopen("operands.bin", "rb");
    sink = $fopen("results.bin", "wb");
  end

  always @(posedge clk) if (!done) begin
    $fwrite(sink, "%u", {r_int, r_acc, r_from_int, r_to_int, r_compare, r_mul, r_add});
    got = $fread(record, source);
    {control, b, a} <= record;
    if (got != (16 + 2 * WIDTH) / 8) begin
      $fclose(sink);
      done <= 1;
    end
  end
endmodule
