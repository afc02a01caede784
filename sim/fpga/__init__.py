"""From a tile to a bitstream: synthesis, place and route, and what they say.

``tools``     running Yosys and nextpnr
``parts``     the FPGAs, and the pins of the board
``synthesis`` Verilog to cells
``cells``     models of the cells that Yosys has no model of, in Verilog
``netlist``   the cells of a design by unit, and what must be among them
``route``     cells to a configuration, its clock and its critical path
``tokens``    a model that fits: cycles of a token
``report``    tables, and what misses a bar
"""
