"""Everything that runs the machine: emulator, Verilator builds, conformance, command line."""
