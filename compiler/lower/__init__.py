"""Lowering: tensor operations to clusters of instructions, and where their data lies."""
