"""Errors of the compiler; each is one line that says what does not fit and what to do."""

__all__ = ["AllocationError", "AssemblyError", "CompileError", "ProgramError", "ScheduleError",
           "VerifyError"]


class CompileError(ValueError):
    """Something the compiler was given cannot become a program."""


class ScheduleError(CompileError):
    """No legal cycle exists for an operation."""


class AllocationError(CompileError):
    """Something does not fit the memories of the machine."""


class AssemblyError(CompileError):
    """A schedule cannot be written as instruction words."""


class VerifyError(CompileError):
    """A finished program breaks a rule of the machine."""


class ProgramError(CompileError):
    """A program file is damaged or was made for another machine."""
