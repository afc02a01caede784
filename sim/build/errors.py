"""Errors of building and running simulators.  Each message is one line that says what to do."""

__all__ = ["BuildFailed", "SimError", "SimulationFailed", "VerilatorNotFound"]


class SimError(Exception):
    """Base of every error that a user can cause here; the command line shows its one line."""


class VerilatorNotFound(SimError):
    """No usable Verilator, or a program that Verilator needs is missing."""


class BuildFailed(SimError):
    """Verilator or the C++ compiler refused the design; the message names the log."""


class SimulationFailed(SimError):
    """A simulation crashed, a cocotb test failed, or fewer tests ran than were expected."""
