// Feeds 16 lanes of fp_special from the file operands.bin, one record a clock cycle, and writes what
// they show before each edge to results.bin.
//
// Operands (most significant byte first): 16 bits of operation, 16 lanes of a, the highest lane
// first.  Results: 16 lanes (words, least significant first).
module special(input clk, output reg done);
  localparam LANES = 16;
  localparam WIDTH = 32 * LANES;

  reg [15:0] op;
  reg [WIDTH - 1:0] a;
  wire [WIDTH - 1:0] r;

  genvar i;
  generate
    for (i = 0; i < LANES; i = i + 1) begin : lane
      fp_special special_i(.clk(clk), .rst(1'b0), .op(op[1:0]),
        .a(a[32 * i +: 32]), .r(r[32 * i +: 32]));
    end
  endgenerate

  integer source, sink, got;
  reg [16 + WIDTH - 1:0] record;

  initial begin
    done = 0;
    source = $fopen("operands.bin", "rb");
    sink = $fopen("results.bin", "wb");
  end

  always @(posedge clk) if (!done) begin
    $fwrite(sink, "%u", r);
    got = $fread(record, source);
    {op, a} <= record;
    if (got != (16 + WIDTH) / 8) begin
      $fclose(sink);
      done <= 1;
    end
  end
endmodule
