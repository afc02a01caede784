"""Two copies of a unit that get the same control and different data."""

from fnmatch import fnmatch

from amaranth.hdl import Mux, Value
from amaranth.lib import wiring

__all__ = ["twins", "when"]


def twins(bench, make, *, data, partly=None, mutation=None):
    """Place two copies of a unit; everything that is not data must be equal in both at all times.

    Inputs that are no data are equal.  Outputs, and registers too, are checked to be: the registers
    make the proof inductive.  Contents of memories may differ.

    Parameters
    ----------
    bench : Bench
    make : function
        Gives the unit.
    data : tuple of str
        Patterns of names (of ports: ``tap0__data``, of registers: as `Bench.place` has them) of
        what may differ.
    partly : dict of str to function, optional
        For names that are data in part, or at times: what must be equal, from the port or register
        and all registers by name.
    mutation : function, optional
        Of both copies, see `Bench.place`.

    Returns
    -------
    (tuple of Component, list of dict of str to Signal)
        The two copies, and the registers of each.
    """
    copies = make(), make()
    registers = [bench.place(f"copy_{side}", copy, mutation)[0]
                 for side, copy in zip("ab", copies, strict=True)]
    partly, used = partly or {}, set()

    def control(name, values):
        """Of both copies, what must be equal of their ``values``; None if it is data."""
        fitting = {pattern for pattern in data if fnmatch(name, pattern)}
        used.update(fitting, {name} & partly.keys())
        if fitting:
            return None
        part = partly.get(name, lambda value, _: value)
        return [Value.cast(part(*pair)) for pair in zip(values, registers, strict=True)]

    for one, other in zip(*(copy.signature.flatten(copy) for copy in copies), strict=True):
        name, values = "__".join(map(str, one[0])), (one[2], other[2])
        compared = control(name, values)
        if one[1].flow == wiring.In:
            for side, value in zip("ab", values, strict=True):
                value = Value.cast(value)
                bench.m.d.comb += value.eq(bench.free(len(value), f"{name}_{side}"))
            if compared:
                bench.assume(compared[0] == compared[1])
        elif compared:
            bench.check(f"port_{name}", compared[0] == compared[1])
    for name, register in registers[0].items():
        compared = control(name, (register, registers[1][name]))
        if compared:
            bench.check(f"register_{name.replace('.', '_')}", compared[0] == compared[1])
    unused = {*data, *partly} - used
    if unused:
        raise ValueError(f"Nothing is named {', '.join(sorted(unused))}")
    return copies, registers



def when(register):
    """For ``partly``: the whole value, but only while that register is 1."""
    return lambda value, registers: Mux(registers[register], value, 0)
