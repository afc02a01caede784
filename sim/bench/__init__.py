"""Benches: each prints a table and one line, and writes build/bench/NAME.json."""
