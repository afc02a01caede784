"""Builds that a bench alone uses: the newest of each name is kept, for the next time."""

import fcntl
import re
import shutil

__all__ = ["drop_older"]


def drop_older(model):
    """Remove all other builds of the name of ``model`` (`sim.build.Model`) that nobody is making.

    Its sources have changed since: they would never be used again.
    """
    directory = model.directory
    pattern = re.compile(re.escape(model.name) + "-[0-9a-f]{16}")
    for other in directory.parent.iterdir():
        if not pattern.fullmatch(other.name) or other == directory or not other.is_dir():
            continue
        lock = other.with_suffix(".lock")
        with open(lock, "w") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(other)
            lock.unlink()
