"""The machine: one file or folder per unit, the tile, the system and the Verilog export."""
