"""Reading a VCD: the value of a signal in every cycle of a clock.

Values are strings of ``0``, ``1``, ``x`` and ``z``, the highest bit first, as wide as the signal.
"""

from bisect import bisect_right
from pathlib import Path

from vcdvcd import VCDVCD

from sim.build import SimError

__all__ = ["VcdError", "Waves", "extend", "number"]

_DIGITS = frozenset("01xz")


class VcdError(SimError):
    """A VCD that cannot be read, or a signal that it does not have."""


def extend(value, width):
    """``value`` of a VCD in full: what it leaves out at the left is ``x`` or ``z`` if its highest
    bit is, otherwise ``0`` (IEEE 1364-2005, 18.2.1).

    Raises
    ------
    VcdError
        If it is wider than the signal, or not made of ``01xz`` in either case.
    """
    value = value.lower()
    if not value or not _DIGITS.issuperset(value):
        raise VcdError(f"Value in a VCD must be made of 0, 1, x and z, not {value!r}")
    if len(value) > width:
        raise VcdError(f"Value in a VCD has {len(value)} bits, its signal {width}")
    return value.rjust(width, value[0] if value[0] in "xz" else "0")


def number(value):
    """``value`` as an unsigned integer; None if a bit of it is ``x`` or ``z``."""
    return None if "x" in value or "z" in value else int(value, 2)


class Waves:
    """Some signals of a VCD.

    Parameters
    ----------
    path : path
    names : iterable of str
        Paths of signals, ``top.tile0.valid``; a bit range may be left out.

    Raises
    ------
    VcdError
        If the file is no VCD or lacks a signal.
    OSError
        If there is no file.
    """

    def __init__(self, path, names):
        text = _read(path)
        known = {}
        for reference in _parse(path, text, only_sigs=True).references_to_ids:
            known[reference] = reference
            if reference.endswith("]"):         # a name may have brackets of its own
                known.setdefault(reference.rpartition("[")[0], reference)
        self._references = {}
        for name in names:
            if name not in known:
                raise VcdError(f"{path} has no signal {name}")
            self._references[name] = known[name]
        self._vcd = _parse(path, text, signals=sorted(set(self._references.values()))
                           or sorted(known)[:1])
        self._times = {}

    def width(self, name):
        """Bits of a signal."""
        return int(self._signal(name).size)

    def _signal(self, name):
        return self._vcd[self._references[name]]

    def value(self, name, time):
        """Value of a signal at the end of time ``time``; all ``x`` before its first one."""
        changes = self._signal(name).tv
        if name not in self._times:
            self._times[name] = [at for at, _ in changes]
        index = bisect_right(self._times[name], time) - 1
        return extend(changes[index][1] if index >= 0 else "x", self.width(name))

    def cycles(self, clock):
        """Times at which cycles of ``clock`` begin: where it gets 1, or is when the file begins."""
        times, before = [], "0"
        for time, value in self._signal(clock).tv:
            if value == "1" and before != "1":
                times.append(time)
            before = value
        return times

    def sample(self, clock, *names):
        """Values in every cycle of ``clock``: at its end, just before the next cycle begins.

        Yields
        ------
        tuple of str
            In the order of ``names``.
        """
        begins = self.cycles(clock)
        ends = [time - 1 for time in begins[1:]] + ([self._vcd.endtime] if begins else [])
        for time in ends:
            yield tuple(self.value(name, time) for name in names)


def _read(path):
    try:
        return Path(path).read_text()
    except UnicodeDecodeError as error:
        raise VcdError(f"{path} is no VCD ({error})") from None


def _parse(path, text, **options):
    try:
        return VCDVCD(vcd_string=text, **options)
    except (ValueError, IndexError, KeyError) as error:
        raise VcdError(f"{path} is no VCD, or was cut off ({error})") from None
