"""The command line.  Every subcommand is a module of `sim.commands` with

``HELP``
    one line,
``add_arguments(parser)``
    what it takes,
``run(options)``
    does it and returns the exit code: 0, or 1 where a result is not what it should be.

Errors that a user can cause (`sim.errors.USER_ERRORS`) end in one line and exit code 2.
"""

import argparse
import importlib
import os
import sys

from sim.errors import USER_ERRORS, one_line

__all__ = ["COMMANDS", "main"]

#: Subcommand to module, in the order of the help text.
COMMANDS = {
    "hello": "sim.commands.hello",
    "compile": "sim.commands.compile",
    "run": "sim.commands.run",
    "check": "sim.commands.check",
    "report": "sim.commands.report",
    "disasm": "sim.commands.disasm",
    "verilog": "sim.commands.verilog",
    "board": "sim.commands.board",
    "formal": "sim.commands.formal",
    "fpga": "sim.commands.fpga",
    "bench": "sim.commands.bench",
}


class _Parser(argparse.ArgumentParser):
    """Wrong arguments end in one line, like every other error of a user."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")


def _parser(commands):
    parser = _Parser(
        prog="oncycle", description="An open LPU: compile, run and check programs cycle by cycle.")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in commands.items():
        command = importlib.import_module(module)
        command.add_arguments(subparsers.add_parser(name, help=command.HELP,
                                                    description=command.HELP))
    return parser


def main(arguments=None, commands=None):
    """Run one command.

    Parameters
    ----------
    arguments : list of str, optional
        Instead of those of the process.
    commands : dict of str to str, optional
        Instead of `COMMANDS`.

    Returns
    -------
    int
        Exit code.
    """
    commands = COMMANDS if commands is None else commands
    options = _parser(commands).parse_args(arguments)
    try:
        return importlib.import_module(commands[options.command]).run(options)
    except USER_ERRORS as error:
        if isinstance(error, BrokenPipeError):      # the reader of our output has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        print(f"oncycle {options.command}: {one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"oncycle {options.command}: interrupted", file=sys.stderr)
        return 130
