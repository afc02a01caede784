"""The ground floor: configuration, instruction set, timing and coefficient tables.

Everything that two parts of the project must agree on is declared here, once.  This package imports
no other part of the project, and the RTL decoder, the assembler, the emulator, the scheduler, the
wave decoders and the documentation all derive from it.
"""
