"""Verilog of a component whose repeated units are emitted once, under fixed names.

Amaranth emits one module for every instance.  A unit that occurs often is placed with `once`::

    def elaborate(self, platform):
        m = Module()
        m.submodules.icu = icu = once(platform, "icu_mem_read", Icu, cfg, "mem_read")

Without a platform (pysim) that is the unit itself.  Under `emit` it is an instance of the Verilog
module of that name, which is converted once, whatever the number of instances.  A unit with too
many port bits for a module of its own becomes part of each module that it is placed in.
"""

import gc
import re
from contextlib import contextmanager

from amaranth.back import rtlil
from amaranth.back.verilog import find_yosys
from amaranth.hdl import ClockSignal, Elaboratable, Instance, ResetSignal, Value
from amaranth.lib import wiring

__all__ = ["Emitter", "emit", "modules_of", "once", "units_of"]

#: A memory without contents of its own: Amaranth writes out its zeros, one for each bit.
_ZERO_CONTENTS = re.compile(r"^  cell \$meminit_v2 \S+\n(?:(?!  end\n).*\n)*?"
                            r"    connect \\DATA \d+'0+\n(?:(?!  end\n).*\n)*?  end\n", re.M)
#: The initial value of a register.
_INITIAL_VALUE = re.compile(r"^ *attribute \\init .*\n", re.M)


#: A line that Verilator may refuse: it takes at most 40,000 tokens in one.
_LONG_LINE = re.compile(r"^.{20000,}$", re.M)
#: Bits that the inputs or the outputs of a module can have, with clock and reset: Amaranth numbers
#: them in 16 bits.
_MOST_PORT_BITS = (1 << 16) - 2


class Emitter:
    """The platform of an emission: keeps every unit that `once` met, converted, by module name.

    Attributes
    ----------
    rtlil : dict of str to str
        RTLIL text of each unit, units before those that use them.
    """

    def __init__(self):
        self.rtlil = {}
        self._made = {}

    def convert(self, name, component):
        """Convert ``component`` as module ``name`` and everything below it."""
        text = rtlil.convert(component, name=name, platform=self, emit_src=False)
        text = _ZERO_CONTENTS.sub("", text)
        self.rtlil[name] = text

    def place(self, name, cls, args, kwargs):
        """`Elaboratable` that stands for one instance of a unit; see `once`."""
        key = (cls, args, kwargs)
        if name not in self._made:
            unit = cls(*args, **kwargs)
            if _port_bits(unit.signature) > _MOST_PORT_BITS:
                return unit
            self._made[name] = (key, unit.signature)
            self.convert(name, unit)
        made, signature = self._made[name]
        if made != key:
            raise ValueError(f"Module name {name} must stand for one unit, but {cls.__name__} "
                             "differs from the unit that has it")
        ports = self.rtlil[name].partition(f"module \\{name}\n")[2].partition("\nmodule ")[0]
        controls = set(re.findall(r"^ *wire width 1 input \d+ +\\(clk|rst)$", ports, re.M))
        return _Placed(name, signature, controls)


class _Placed(wiring.PureInterface, Elaboratable):
    """An instance by name of a unit that is emitted elsewhere."""

    def __init__(self, name, signature, controls):
        self._module = name
        self._controls = controls
        super().__init__(signature)

    def elaborate(self, platform):
        ports = {}
        for path, member, value in self.signature.flatten(self):
            direction = "i" if member.flow == wiring.In else "o"
            ports[f"{direction}_{'__'.join(map(str, path))}"] = Value.cast(value)
        if "clk" in self._controls:
            ports["i_clk"] = ClockSignal()
        if "rst" in self._controls:
            ports["i_rst"] = ResetSignal()
        return Instance(self._module, **ports)


def _port_bits(signature):
    """Bits of the inputs, or of the outputs if these are more."""
    bits = {wiring.In: 0, wiring.Out: 0}
    for _, member, value in signature.flatten(signature.create()):
        bits[member.flow] += len(Value.cast(value))
    return max(bits.values())


def once(platform, name, cls, *args, **kwargs):
    """Unit ``cls(*args, **kwargs)``, to be added to the submodules of the caller.

    Parameters
    ----------
    platform : None or Emitter
        What `elaborate` got.
    name : str
        Verilog module name, the same for units of equal class and arguments and for no others.

    Raises
    ------
    ValueError
        If ``name`` stands for another unit already.
    """
    if isinstance(platform, Emitter):
        return platform.place(name, cls, args, kwargs)
    return cls(*args, **kwargs)


def emit(component, name, *, simulation=False):
    """Convert a component to Verilog.

    Parameters
    ----------
    component : Component
    name : str
        Module name of ``component`` itself.
    simulation : bool
        Drop the initial values of registers, so that a simulator starts from what its seed gives
        and only reset and loading bring the design up.

    Memories never have initial contents, unless some word was given another value than 0: that is a
    table, and it keeps them.

    Returns
    -------
    dict of str to str
        Verilog text by unit name, units before those that use them, ``component`` last.  A unit's
        text holds the unit's module and the modules below it that only it uses.
    """
    units = units_of(component, name, initial=not simulation)
    passes = ["proc -nomux -norom", "memory_collect", "write_verilog -sv -norename -noattr"]
    found = {unit: [] for unit in units}
    for module, text in modules_of(units, passes).items():
        found[module.partition(".")[0]].append(text)
    return {unit: "\n".join(texts) for unit, texts in found.items()}


def units_of(component, name, *, initial=True):
    """RTLIL text of a component and its units by name, see `emit`.

    Parameters
    ----------
    initial : bool
        Whether registers keep their initial values.
    """
    emitter = Emitter()
    with _without_collector():
        emitter.convert(name, component)
    if initial:
        return emitter.rtlil
    return {name: _INITIAL_VALUE.sub("", text) for name, text in emitter.rtlil.items()}


def modules_of(units, passes):
    """Verilog text by module name of RTLIL texts.

    Parameters
    ----------
    units : dict of str to str
        As of `units_of`.
    passes : list of str
        Commands of Yosys, the last of which writes Verilog to the standard output.
    """
    script = ["read_rtlil <<end_of_rtlil", *units.values(), "end_of_rtlil", *passes]
    # Yosys warns about processes that it may not be able to write; those of Amaranth it can.
    yosys = find_yosys(lambda version: version >= (0, 40))
    text = yosys.run(["-q", "-"], "\n".join(script), ignore_warnings=True)
    text = _LONG_LINE.sub(lambda line: line[0].replace(", ", ",\n    "), text)
    return {re.match(r"module \\?([^ (]+)", module)[1]: module
            for module in re.findall(r"^module .*?^endmodule\n", text, re.M | re.S)}


@contextmanager
def _without_collector():
    """No garbage collection: it takes half the time of a conversion and finds nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
