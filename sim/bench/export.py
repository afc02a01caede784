"""``oncycle bench export``: what the Verilog of every preset weighs, and how long it takes."""

import argparse
import time

from hdl.arch.config import single
from hdl.arch.presets import PRESETS
from hdl.export import ExportOptions, export_files
from sim.bench.report import finish
from sim.report.table import table

__all__ = ["BARS", "main", "measure", "misses"]

#: What the export of every preset's tile must keep below, the largest as well.
BARS = {
    "megabytes": 4,     # at most: all Verilog
    "seconds": 240,     # at most: from the configuration to the text, on two shared cores
}


def measure(name):
    """Figures of the export of a preset's tile: a dict."""
    began = time.monotonic()
    files = export_files(single(PRESETS[name]), ExportOptions())
    seconds = time.monotonic() - began
    modules = [text for file, text in files.items() if file.endswith(".v")]
    return {"preset": name, "modules": len(modules),
            "lines": sum(text.count("\n") for text in modules),
            "bytes": sum(map(len, modules)), "largest_module": max(map(len, modules)),
            "seconds": round(seconds, 1)}


def misses(rows):
    """One line for every bar that ``rows`` miss."""
    found = []
    for row in rows:
        size = row["bytes"] / 1e6
        if size > BARS["megabytes"]:
            found.append(f"{row['preset']}: {size:.1f} MB, at most {BARS['megabytes']}")
        if row["seconds"] > BARS["seconds"]:
            found.append(f"{row['preset']}: {row['seconds']} s, at most {BARS['seconds']}")
    return found


def main(arguments):
    """Run the bench; returns 0, or 1 where a figure misses its bar."""
    parser = argparse.ArgumentParser(prog="oncycle bench export", description=__doc__)
    parser.add_argument("--presets", nargs="+", choices=PRESETS, default=list(PRESETS),
                        metavar="NAME", help="presets (default: all)")
    options = parser.parse_args(arguments)
    rows = [measure(name) for name in options.presets]
    print("\n".join(table(("tile of", "modules", "lines", "bytes", "largest module", "seconds"), [
        tuple(row.values()) for row in rows])))
    return finish("export", {"bars": BARS, "rows": rows}, misses(rows), f"{len(rows)} presets")
