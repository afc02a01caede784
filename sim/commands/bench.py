"""``oncycle bench``: the figures that the project publishes, each against its bar."""

import importlib

__all__ = ["BENCHES", "HELP", "add_arguments", "run"]

HELP = "measure what is published: each bench prints a table and one line"

#: Bench to module; each has ``main(arguments)``, which returns the exit code.
BENCHES = {
    "quality": "sim.bench.quality",
    "configs": "sim.bench.configs",
    "mutation": "sim.bench.mutation",
    "speed": "sim.bench.speed",
    "bound": "sim.bench.bound",
    "speedup": "sim.bench.speedup",
    "batch": "sim.bench.sequences",
    "context": "sim.bench.context",
    "prefill": "sim.bench.prefill",
    "optimum": "sim.bench.optimum",
    "collectives": "sim.bench.collectives",
    "hops": "sim.bench.hops",
    "network": "sim.bench.network",
    "export": "sim.bench.export",
    "full": "sim.bench.full",
}


def add_arguments(parser):
    """See `sim.cli`."""
    parser.add_argument("name", choices=BENCHES, metavar="NAME",
                        help=f"one of {', '.join(BENCHES)}")
    parser.add_argument("arguments", nargs="...", help="options of the bench; --help lists them")


def run(options):
    """See `sim.cli`."""
    return importlib.import_module(BENCHES[options.name]).main(options.arguments)
