"""What all benches print and write."""

import json
import sys
from pathlib import Path

from sim.build.model import BUILD_ROOT

__all__ = ["OUTPUT", "finish", "write_json"]

#: Where the figures go.
OUTPUT = BUILD_ROOT / "bench"


def write_json(path, record):
    """Write the figures of a bench to ``path``."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2) + "\n")


def finish(name, record, missed, summary):
    """End a bench: write its figures, name every bar that is missed, print one line.

    Parameters
    ----------
    name : str
        Of the bench and of its file in `OUTPUT`.
    record : dict
    missed : list of str
        One line for each missed bar.
    summary : str
        What there was, for the last line.

    Returns
    -------
    int
        Exit code: 0, or 1 where a bar is missed.
    """
    write_json(OUTPUT / f"{name}.json", record)
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    print(f"{name}: {summary}, {len(missed)} bars missed")
    return 1 if missed else 0
