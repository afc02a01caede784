"""What all benches print and write."""

import json
from pathlib import Path

from sim.build.model import BUILD_ROOT

__all__ = ["OUTPUT", "write_json"]

#: Where the figures go.
OUTPUT = BUILD_ROOT / "bench"


def write_json(path, record):
    """Write the figures of a bench to ``path``."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2) + "\n")
