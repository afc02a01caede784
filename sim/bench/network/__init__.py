"""``oncycle bench network``: planned links beside a conventional network around the same tiles."""

from sim.bench.network.main import BARS, main, misses

__all__ = ["BARS", "main", "misses"]
