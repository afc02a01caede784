"""Verilator builds and cocotb runs.

:func:`build_model` turns Verilog text into a simulator (cached by content), :func:`run_cocotb`
runs one cocotb module on it and checks that every expected test ran and passed.
"""

from sim.build.errors import (
    BuildFailed,
    SimError,
    SimulationFailed,
    VerilatorNotFound,
)
from sim.build.model import Model, build_model
from sim.build.run import Run, TestResult, run_cocotb
from sim.build.verilator import Verilator, find_verilator

__all__ = [
    "BuildFailed",
    "Model",
    "Run",
    "SimError",
    "SimulationFailed",
    "TestResult",
    "Verilator",
    "VerilatorNotFound",
    "build_model",
    "find_verilator",
    "run_cocotb",
]
