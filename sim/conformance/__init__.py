"""Do plan, emulator and RTL do the same things on the same cycles, and nothing else?

`check` compares all that there is of a run and gives the line that the project is about; `compare`
compares the events of two sides.
"""

from sim.conformance.check import Report, check
from sim.conformance.compare import BITS, CYCLES, Comparison, compare
from sim.conformance.matching import ConformanceError, Match, match
from sim.conformance.naming import Difference, Names

__all__ = ["BITS", "CYCLES", "Comparison", "ConformanceError", "Difference", "Match", "Names",
           "Report", "check", "compare", "match"]
