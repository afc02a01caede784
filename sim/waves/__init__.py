"""Waves: a GTKWave view of a VCD that a run wrote, and reading a VCD back."""
