// Block RAM of an ECP5: 18 kbit, two ports, as far as Yosys uses it.
//
// Memory is held as 2048 bytes of 9 bits.  A port of 1, 2 or 4 bits uses 8 bits of each; one of 18
// or 36 bits has the write enables of its bytes in the lowest bits of its address.  36 bits are
// written through port A and read through port B; their lower half is on the pins of port A, their
// upper half on those of port B.  What port B reads of bits that port A writes in the same cycle is
// undefined: x.
//
// Source: Lattice FPGA-TN-02204, ECP5 and ECP5-5G Memory Usage Guide.  Writes of port B, output
// registers, chip select, asynchronous reset and falling edges are not modelled: a design that uses
// them stops.
module DP16KD (
    input DIA0, DIA1, DIA2, DIA3, DIA4, DIA5, DIA6, DIA7, DIA8, DIA9, DIA10, DIA11, DIA12,
        DIA13, DIA14, DIA15, DIA16, DIA17,
    input ADA0, ADA1, ADA2, ADA3, ADA4, ADA5, ADA6, ADA7, ADA8, ADA9, ADA10, ADA11, ADA12,
        ADA13,
    output DOA0, DOA1, DOA2, DOA3, DOA4, DOA5, DOA6, DOA7, DOA8, DOA9, DOA10, DOA11, DOA12,
        DOA13, DOA14, DOA15, DOA16, DOA17,
    input CLKA, CEA, OCEA, WEA, RSTA, CSA0, CSA1, CSA2,
    input DIB0, DIB1, DIB2, DIB3, DIB4, DIB5, DIB6, DIB7, DIB8, DIB9, DIB10, DIB11, DIB12,
        DIB13, DIB14, DIB15, DIB16, DIB17,
    input ADB0, ADB1, ADB2, ADB3, ADB4, ADB5, ADB6, ADB7, ADB8, ADB9, ADB10, ADB11, ADB12,
        ADB13,
    output DOB0, DOB1, DOB2, DOB3, DOB4, DOB5, DOB6, DOB7, DOB8, DOB9, DOB10, DOB11, DOB12,
        DOB13, DOB14, DOB15, DOB16, DOB17,
    input CLKB, CEB, OCEB, WEB, RSTB, CSB0, CSB1, CSB2
);
    parameter DATA_WIDTH_A = 18;
    parameter DATA_WIDTH_B = 18;
    parameter REGMODE_A = "NOREG";
    parameter REGMODE_B = "NOREG";
    parameter RESETMODE = "SYNC";
    parameter ASYNC_RESET_RELEASE = "SYNC";
    parameter WRITEMODE_A = "NORMAL";
    parameter WRITEMODE_B = "NORMAL";
    parameter CSDECODE_A = "0b000";
    parameter CSDECODE_B = "0b000";
    parameter CLKAMUX = "CLKA";
    parameter CLKBMUX = "CLKB";
    parameter GSR = "ENABLED";
    parameter [319:0] INITVAL_00 = 320'd0;
    parameter [319:0] INITVAL_01 = 320'd0;
    parameter [319:0] INITVAL_02 = 320'd0;
    parameter [319:0] INITVAL_03 = 320'd0;
    parameter [319:0] INITVAL_04 = 320'd0;
    parameter [319:0] INITVAL_05 = 320'd0;
    parameter [319:0] INITVAL_06 = 320'd0;
    parameter [319:0] INITVAL_07 = 320'd0;
    parameter [319:0] INITVAL_08 = 320'd0;
    parameter [319:0] INITVAL_09 = 320'd0;
    parameter [319:0] INITVAL_0A = 320'd0;
    parameter [319:0] INITVAL_0B = 320'd0;
    parameter [319:0] INITVAL_0C = 320'd0;
    parameter [319:0] INITVAL_0D = 320'd0;
    parameter [319:0] INITVAL_0E = 320'd0;
    parameter [319:0] INITVAL_0F = 320'd0;
    parameter [319:0] INITVAL_10 = 320'd0;
    parameter [319:0] INITVAL_11 = 320'd0;
    parameter [319:0] INITVAL_12 = 320'd0;
    parameter [319:0] INITVAL_13 = 320'd0;
    parameter [319:0] INITVAL_14 = 320'd0;
    parameter [319:0] INITVAL_15 = 320'd0;
    parameter [319:0] INITVAL_16 = 320'd0;
    parameter [319:0] INITVAL_17 = 320'd0;
    parameter [319:0] INITVAL_18 = 320'd0;
    parameter [319:0] INITVAL_19 = 320'd0;
    parameter [319:0] INITVAL_1A = 320'd0;
    parameter [319:0] INITVAL_1B = 320'd0;
    parameter [319:0] INITVAL_1C = 320'd0;
    parameter [319:0] INITVAL_1D = 320'd0;
    parameter [319:0] INITVAL_1E = 320'd0;
    parameter [319:0] INITVAL_1F = 320'd0;
    parameter [319:0] INITVAL_20 = 320'd0;
    parameter [319:0] INITVAL_21 = 320'd0;
    parameter [319:0] INITVAL_22 = 320'd0;
    parameter [319:0] INITVAL_23 = 320'd0;
    parameter [319:0] INITVAL_24 = 320'd0;
    parameter [319:0] INITVAL_25 = 320'd0;
    parameter [319:0] INITVAL_26 = 320'd0;
    parameter [319:0] INITVAL_27 = 320'd0;
    parameter [319:0] INITVAL_28 = 320'd0;
    parameter [319:0] INITVAL_29 = 320'd0;
    parameter [319:0] INITVAL_2A = 320'd0;
    parameter [319:0] INITVAL_2B = 320'd0;
    parameter [319:0] INITVAL_2C = 320'd0;
    parameter [319:0] INITVAL_2D = 320'd0;
    parameter [319:0] INITVAL_2E = 320'd0;
    parameter [319:0] INITVAL_2F = 320'd0;
    parameter [319:0] INITVAL_30 = 320'd0;
    parameter [319:0] INITVAL_31 = 320'd0;
    parameter [319:0] INITVAL_32 = 320'd0;
    parameter [319:0] INITVAL_33 = 320'd0;
    parameter [319:0] INITVAL_34 = 320'd0;
    parameter [319:0] INITVAL_35 = 320'd0;
    parameter [319:0] INITVAL_36 = 320'd0;
    parameter [319:0] INITVAL_37 = 320'd0;
    parameter [319:0] INITVAL_38 = 320'd0;
    parameter [319:0] INITVAL_39 = 320'd0;
    parameter [319:0] INITVAL_3A = 320'd0;
    parameter [319:0] INITVAL_3B = 320'd0;
    parameter [319:0] INITVAL_3C = 320'd0;
    parameter [319:0] INITVAL_3D = 320'd0;
    parameter [319:0] INITVAL_3E = 320'd0;
    parameter [319:0] INITVAL_3F = 320'd0;

    reg [8:0] memory [0:2047];
    reg [35:0] qa, qb;

    wire [13:0] ada = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3,
        ADA2, ADA1, ADA0};
    wire [13:0] adb = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3,
        ADB2, ADB1, ADB0};
    wire [17:0] dia = {DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7,
        DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0};
    wire [17:0] dib = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7,
        DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0};
    wire [35:0] data = {dib, dia};
    wire writes = CEA & WEA & ~RSTA;

    assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6,
        DOA5, DOA4, DOA3, DOA2, DOA1, DOA0} = DATA_WIDTH_B == 36 ? qb[17:0] : qa[17:0];
    assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6,
        DOB5, DOB4, DOB3, DOB2, DOB1, DOB0} = DATA_WIDTH_B == 36 ? qb[35:18] : qb[17:0];

    // First byte of the word at an address.
    function [10:0] first(input integer width, input [13:0] address);
        first = width == 36 ? {address[13:5], 2'b00} :
                width == 18 ? {address[13:4], 1'b0} : address[13:3];
    endfunction

    // Bytes of a word.
    function integer bytes(input integer width);
        bytes = width == 36 ? 4 : width == 18 ? 2 : 1;
    endfunction

    // Bits of byte `i` that a write of a word changes.
    function [8:0] mask(input integer width, input [13:0] address, input integer i);
        mask = width == 1 ? 9'h001 << address[2:0] :
               width == 2 ? 9'h003 << {address[2:1], 1'b0} :
               width == 4 ? 9'h00f << {address[2], 2'b00} :
               width == 9 || address[i] ? 9'h1ff : 9'h000;
    endfunction

    // Byte `i` of the data of a write, each bit in its place.
    function [8:0] placed(input integer width, input [35:0] word, input integer i);
        placed = width == 1 ? {9{word[0]}} : width == 2 ? {1'b0, {4{word[1:0]}}} :
                 width == 4 ? {1'b0, {2{word[3:0]}}} : word[9 * i +: 9];
    endfunction

    // A word as its pins show it.
    function [35:0] shown(input integer width, input [13:0] address, input [35:0] word);
        shown = width == 1 ? {35'b0, word[address[2:0]]} :
                width == 2 ? {34'b0, word[{address[2:1], 1'b0} +: 2]} :
                width == 4 ? {32'b0, word[{address[2], 2'b00} +: 4]} : word;
    endfunction

    // Bits of a byte of the memory that a write changes.
    function [8:0] hit(input [10:0] start, input [13:0] address, input [10:0] at);
        hit = at >= start && at < start + bytes(DATA_WIDTH_A) ?
            mask(DATA_WIDTH_A, address, at - start) : 9'h000;
    endfunction

    always @(posedge CLKA) begin : port_a
        integer i;
        reg [35:0] held, written;
        for (i = 0; i < 4; i = i + 1) begin
            held[9 * i +: 9] = memory[first(DATA_WIDTH_A, ada) + i];
            written[9 * i +: 9] = (held[9 * i +: 9] & ~mask(DATA_WIDTH_A, ada, i))
                | (placed(DATA_WIDTH_A, data, i) & mask(DATA_WIDTH_A, ada, i));
            if (writes && i < bytes(DATA_WIDTH_A))
                memory[first(DATA_WIDTH_A, ada) + i] <= written[9 * i +: 9];
        end
        if (RSTA)
            qa <= 0;
        else if (CEA && WEA && WRITEMODE_A == "WRITETHROUGH")
            qa <= shown(DATA_WIDTH_A, ada, written);
        else if (CEA && (!WEA || WRITEMODE_A == "READBEFOREWRITE"))
            qa <= shown(DATA_WIDTH_A, ada, held);
    end

    always @(posedge CLKB) begin : port_b
        integer i;
        reg [35:0] held;
        reg [8:0] lost;
        for (i = 0; i < 4; i = i + 1) begin
            held[9 * i +: 9] = memory[first(DATA_WIDTH_B, adb) + i];
            lost = writes ? hit(first(DATA_WIDTH_A, ada), ada, first(DATA_WIDTH_B, adb) + i) : 9'h0;
            held[9 * i +: 9] = (held[9 * i +: 9] & ~lost) | (lost & 9'bx);
        end
        if (RSTB)
            qb <= 0;
        else if (CEB)
            qb <= shown(DATA_WIDTH_B, adb, held);
    end

    // Rows of 20 bits, of which 18 are there.
    wire [20479:0] initial_rows = {INITVAL_3F, INITVAL_3E, INITVAL_3D, INITVAL_3C, INITVAL_3B,
        INITVAL_3A, INITVAL_39, INITVAL_38, INITVAL_37, INITVAL_36, INITVAL_35, INITVAL_34,
        INITVAL_33, INITVAL_32, INITVAL_31, INITVAL_30, INITVAL_2F, INITVAL_2E, INITVAL_2D,
        INITVAL_2C, INITVAL_2B, INITVAL_2A, INITVAL_29, INITVAL_28, INITVAL_27, INITVAL_26,
        INITVAL_25, INITVAL_24, INITVAL_23, INITVAL_22, INITVAL_21, INITVAL_20, INITVAL_1F,
        INITVAL_1E, INITVAL_1D, INITVAL_1C, INITVAL_1B, INITVAL_1A, INITVAL_19, INITVAL_18,
        INITVAL_17, INITVAL_16, INITVAL_15, INITVAL_14, INITVAL_13, INITVAL_12, INITVAL_11,
        INITVAL_10, INITVAL_0F, INITVAL_0E, INITVAL_0D, INITVAL_0C, INITVAL_0B, INITVAL_0A,
        INITVAL_09, INITVAL_08, INITVAL_07, INITVAL_06, INITVAL_05, INITVAL_04, INITVAL_03,
        INITVAL_02, INITVAL_01, INITVAL_00};
    integer row;
    initial begin
        for (row = 0; row < 1024; row = row + 1) begin
            memory[2 * row] = initial_rows[20 * row +: 9];
            memory[2 * row + 1] = initial_rows[20 * row + 9 +: 9];
        end
        qa = 0;
        qb = 0;
        if (REGMODE_A != "NOREG" || REGMODE_B != "NOREG" || CSDECODE_A != "0b000" ||
            CSDECODE_B != "0b000" || CLKAMUX != "CLKA" || CLKBMUX != "CLKB") begin
            $display("DP16KD: output registers, chip select and falling edges are not modelled");
            $finish;
        end
    end
    always @(posedge CLKA)
        if (RESETMODE != "SYNC" && (RSTA === 1'b1 || RSTB === 1'b1) || CEB && WEB === 1'b1) begin
            $display("DP16KD: asynchronous reset and writes of port B are not modelled");
            $finish;
        end
endmodule
