"""Verilog that leaves the project: modules, file list, manifest, lint waivers."""

from .files import export_files
from .top import RESETS, TOPS, ExportOptions

__all__ = ["RESETS", "TOPS", "ExportOptions", "export_files"]
