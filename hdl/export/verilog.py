"""Verilog-2005 of a component: what any simulator and any synthesis takes.

Differences to `hdl.emit.emit`, which writes for our own simulation:

- Combinational logic is continuous assignments.  An ``always @*`` waits for its inputs to change:
  in an event-driven simulator one whose inputs are constant never runs.
- Module names are plain identifiers with a prefix, so that they do not meet those of a design
  around.
- Wires that nothing reads are gone; so are Amaranth's private names.
"""

import re

from hdl.emit import modules_of, units_of

__all__ = ["verilog_2005"]

_PASSES = ["proc -norom", "memory_collect", "opt_expr", "opt_clean -purge",
           "write_verilog -noattr"]
#: Names of modules in RTLIL, as declared and as instantiated.
_MODULE = re.compile(r"^(module|  cell) \\(\S+)", re.M)
#: A register with its initial value in the declaration, which assigns it twice in the eyes of a
#: linter.
_INITIALISED = re.compile(r"^(  reg (?:signed )?(?:\[[^\]]*\] )?(\\\S+ |\w+)) ?= (.*;)$", re.M)


def verilog_2005(component, name, *, prefix, initial=True):
    """Convert a component to Verilog-2005.

    Parameters
    ----------
    component : Component
    name : str
        Its module is ``prefix`` and this.
    prefix : str
        First part of all module names.
    initial : bool
        Whether registers have initial values.

    Returns
    -------
    dict of str to str
        Text of each module by name, modules before those that use them, ``component`` last.
    """
    units = units_of(component, name, initial=initial)
    names, order = {}, []
    for text in units.values():
        modules = [found[2] for found in _MODULE.finditer(text) if found[1] == "module"]
        order += sorted(modules, key=lambda module: (-module.count("."), module))
    for module in order:
        names[module] = prefix + re.sub(r"\W", "_", module)
    assert len(set(names.values())) == len(names), "two modules under one name"
    units = {unit: _MODULE.sub(lambda found: f"{found[1]} \\{names[found[2]]}", text)
             for unit, text in units.items()}
    texts = modules_of(units, _PASSES)
    return {names[module]: _INITIALISED.sub(r"\1;\n  initial \2 = \3", texts[names[module]])
            for module in order}
