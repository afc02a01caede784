"""Subcommands of `sim.cli`, one module each."""
