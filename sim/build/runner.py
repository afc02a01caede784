"""The cocotb runner for Verilator without ``--public-flat-rw``.

Everything that depends on the private parts of cocotb 2.1's runner is in this file.
"""

import contextlib
import os
import subprocess
import threading

import cocotb_tools.config
from cocotb_tools import runner

__all__ = ["VerilatorRunner"]

#: Variables by which the caller's shell could change what a run does: ``make sim WAVES=...``
#: exports WAVES, pytest exports its own, and a left-over filter would drop tests.
_FOREIGN = (
    "COCOTB_TESTCASE",
    "COCOTB_TEST_FILTER",
    "COCOTB_RESULTS_FILE",
    "COCOTB_RANDOM_SEED",
    "COCOTB_PLUSARGS",
    "GUI",
    "PYTEST_CURRENT_TEST",
    "SIM_CMD_PREFIX",
    "SIM_CMD_SUFFIX",
    "WAVES",
)

#: The C++ main that cocotb brings.
_COCOTB_MAIN = cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp"

_environment_lock = threading.Lock()


@contextlib.contextmanager
def _own_environment():
    """Hide :data:`_FOREIGN` from the runner, which reads ``os.environ`` while it prepares."""
    with _environment_lock:
        hidden = {name: os.environ.pop(name) for name in _FOREIGN if name in os.environ}
        try:
            yield
        finally:
            os.environ.update(hidden)


class VerilatorRunner(runner.Verilator):
    """Runner that exposes what the control file names and nothing else.

    Parameters
    ----------
    tool : sim.build.verilator.Verilator
        The Verilator to use; its environment reaches child processes only.

    Attributes
    ----------
    returncode : int
        Exit code of the last command that ran; a failed command stops the sequence.
    timeout : float or None
        Seconds after which a command is killed (``subprocess.TimeoutExpired``).
    prebuilt : list of str
        Object files in the build directory that make shall take as they are.
    main : path or None
        C++ main instead of cocotb's, which traces from start to end or not at all.
    """

    def __init__(self, tool):
        self._tool = tool
        self.returncode = 0
        self.timeout = None
        self.prebuilt = []
        self.main = None
        self._preparing = contextlib.ExitStack()
        super().__init__()
        self.log.disabled = True

    def build(self, **options):
        """As the stock runner's, whatever WAVES and GUI say."""
        with self._preparing as stack:
            stack.enter_context(_own_environment())
            super().build(**options)

    def test(self, **options):
        """As the stock runner's outside pytest: the caller reads the results file."""
        with self._preparing as stack:
            stack.enter_context(_own_environment())
            return super().test(**options)

    def _simulator_in_path_build_only(self):
        self.executable = str(self._tool.executable)

    def _set_env_common(self):
        given = dict(self.env)
        super()._set_env_common()
        self.env.update(given)
        self.env = self._tool.environment(self.env)

    def _build_command(self):
        verilate, make = super()._build_command()
        verilate.remove("--public-flat-rw")
        if self.main is not None:
            verilate[verilate.index(str(_COCOTB_MAIN))] = str(self.main)
        return [verilate, [*make, *(f"--old-file={name}" for name in self.prebuilt)]]

    def _execute(self, cmds, cwd):
        self._preparing.close()  # prepared: other threads may start theirs while this one runs
        super()._execute(cmds, cwd)

    def _execute_cmds(self, cmds, cwd, stdout=None):
        for cmd in cmds:
            if stdout is not None:
                stdout.write(runner._shlex_join(cmd) + "\n")
                stdout.flush()
            self.returncode = subprocess.run(
                cmd,
                cwd=cwd,
                env=self.env,
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=None if stdout is None else subprocess.STDOUT,
                timeout=self.timeout,
            ).returncode
            if self.returncode != 0:
                return
