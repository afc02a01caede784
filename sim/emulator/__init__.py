"""Executes encoded programs in NumPy, cycle-exact and bit-exact; never sees a plan."""

from .faults import FaultPlace
from .machine import Machine
from .result import Result

__all__ = ["FaultPlace", "Machine", "Result"]
