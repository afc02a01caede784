"""Quantisation: weights and a calibration text to the network that programs compute."""

from compiler.quantise.build import quantise
from compiler.quantise.calibrate import calibration_sequences
from compiler.quantise.graph import QuantisedLayer, QuantisedModel, Rope

__all__ = ["QuantisedLayer", "QuantisedModel", "Rope", "calibration_sequences", "quantise"]
