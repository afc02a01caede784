"""The plain model: the quantised network in NumPy, in its documented order of operations."""

from compiler.reference.network import PlainModel

__all__ = ["PlainModel"]
