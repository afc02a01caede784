"""fp32 and int32 arithmetic of one lane: pipelined units that take new operands every cycle.

IEEE binary32, round to nearest even, gradual underflow; every NaN result is 0x7FC00000.
"""
