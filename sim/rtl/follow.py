"""Showing the progress of a simulation that runs in another process."""

import contextlib
import threading

__all__ = ["PROGRESS", "follow"]

#: File in the run's directory to which the testbench writes progress lines.
PROGRESS = "progress"

_INTERVAL = 0.5     #: seconds between two looks


@contextlib.contextmanager
def follow(path, report):
    """While the block runs, call ``report`` with every whole line that is added to file ``path``.

    Parameters
    ----------
    path : pathlib.Path
        Emptied first.
    report : callable or None
        None: nothing is shown.
    """
    path.write_text("")
    if report is None:
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_tail, args=(path, report, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _tail(path, report, done):
    with open(path) as file:
        line = ""
        while True:
            last = done.wait(_INTERVAL)     # what was written before it is set is still read
            for part in file:
                line += part
                if line.endswith("\n"):
                    report(line.rstrip("\n"))
                    line = ""
            if last:
                return
