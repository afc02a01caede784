"""The player: Verilog that reads host commands from files, one a cycle for each tile.

A batch is one file of commands for each tile, ``batch<n>_tile<i>.bin``; what its READs return goes
to ``batch<n>_rows<i>.bin``.  A command is a record of `sim.rtl.loader.command_record` with its
bytes in reverse, because ``$fread`` fills a register from the top.
"""

import numpy as np

from hdl.arch.host import READ_LATENCY, HostOp, command_layout, row_bits
from sim.rtl.loader import command_record

__all__ = ["command_file", "player_verilog", "read_rows", "rows_file", "write_batch"]


def command_file(batch, tile):
    """Name of the file of commands of a tile."""
    return f"batch{batch}_tile{tile}.bin"


def rows_file(batch, tile):
    """Name of the file of what a tile returned."""
    return f"batch{batch}_rows{tile}.bin"


def write_batch(directory, number, tables):
    """Write the files of a batch; tiles beyond ``tables`` have none."""
    for tile, table in enumerate(tables):
        raw = np.ascontiguousarray(table).view(np.uint8).reshape(len(table), table.itemsize)
        (directory / command_file(number, tile)).write_bytes(raw[:, ::-1].tobytes())


def read_rows(directory, cfg, number, tiles):
    """What the READs of a batch returned, by tile: uint8 of shape (commands, bytes of a row)."""
    size = row_bits(cfg) // 8
    return [np.frombuffer((directory / rows_file(number, tile)).read_bytes(), np.uint8)
            .reshape(-1, size) for tile in range(tiles)]


def player_verilog(cfg):
    """Module ``oncycle_player``: one for each tile, with the number of the tile as parameter.

    ``play`` for one cycle starts batch number ``batch``; ``playing`` until its last command has
    been executed and its last row written.  ``cut`` stays set once a file ended within a command.
    """
    record = command_record(cfg)
    size = record.itemsize
    fields = []
    for name, field in command_layout(cfg):
        low = 8 * record.fields[name][1]
        fields.append(f"record[{low} +: {field.width}]")
    return f"""module oncycle_player #(parameter TILE = 0) (
  input clk,
  input rst,
  input play,
  input [31:0] batch,
  output playing,
  output reg cut,
  output [{command_layout(cfg).size - 1}:0] command,
  input [{row_bits(cfg) - 1}:0] read_data
);
  string directory;
  int commands = 0;
  int rows = 0;
  int got;
  reg open;
  reg rows_open;
  reg valid;
  reg [{8 * size - 1}:0] buffer;
  reg [{8 * size - 1}:0] record;
  reg [{READ_LATENCY}:0] reading;
  wire busy = open | valid | (|reading);
  initial if ($value$plusargs("exchange=%s", directory) == 0) directory = ".";
  assign command = valid ? {{{", ".join(reversed(fields))}}} : {command_layout(cfg).size}'d0;
  assign playing = busy | rows_open;
  always @(posedge clk) begin
    valid <= 0;
    reading <= {{reading[{READ_LATENCY - 1}:0],
                valid && record[7:0] == 8'd{HostOp.READ.value}}};
    if (reading[{READ_LATENCY - 1}]) $fwrite(rows, "%u", read_data);
    if (rst) begin
      open <= 0;
      rows_open <= 0;
      cut <= 0;
      reading <= 0;
    end else if (play) begin
      commands = $fopen($sformatf("%s/batch%0d_tile%0d.bin", directory, batch, TILE), "rb");
      if (commands != 0) begin
        rows = $fopen($sformatf("%s/batch%0d_rows%0d.bin", directory, batch, TILE), "wb");
        open <= 1;
        rows_open <= 1;
      end
    end else if (open) begin
      got = $fread(buffer, commands);
      record <= buffer;
      if (got == {size}) valid <= 1;
      else begin
        if (got != 0) cut <= 1;
        $fclose(commands);
        open <= 0;
      end
    end else if (rows_open && !busy) begin
      $fclose(rows);
      rows_open <= 0;
    end
  end
endmodule
"""
