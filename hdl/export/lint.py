"""Waivers of an export: what Verilator's linter says of it that is meant to be so."""

__all__ = ["WAIVERS", "waivers"]

#: (rule, text of the message or ``*``, reason); for the files of the export alone.  All else is to
#: be clean under ``-Wall``.
WAIVERS = (
    ("WIDTHEXPAND", "*", "operands of an operator may be narrower than its result: Verilog extends "
                         "them by their sign, which is what is meant"),
    ("WIDTHTRUNC", "Logical operator LOGNOT expects 1 bit*",
     "`! vector` says that no bit of it is set"),
    ("WIDTHTRUNC", "Operator ASSIGNW expects * bits on the Assign RHS, but Assign RHS's SHIFTR *",
     "a part that an index selects is the low end of the whole, shifted"),
    ("UNUSEDSIGNAL", "*", "units of one kind share one port list, and none reads every bit of "
                          "every instruction word"),
    ("CASEOVERLAP", "*", "the selects of a parallel multiplexer come from comparisons of one "
                         "number: one of them is set at most"),
    ("VARHIDDEN", "Declaration of signal hides declaration in upper scope: '?'*",
     "the functions of parallel multiplexers call their arguments a, b and s"),
    ("VARHIDDEN", "Declaration of signal hides declaration in upper scope: '_*_'*",
     "such a function may be called like a wire of the module that holds the instance"),
    ("UNOPTFLAT", "Signal unoptimizable: Circular combinational logic: '*.c2c.*",
     "links are granted one after the other, a bit from lower ones: Verilator 5.38 takes all bits "
     "of a vector as one and sees a circle"),
    ("CMPCONST", "*", "a loop over all values of an index compares it with the largest, too"),
)


def waivers(prefix):
    """Text of the control file for the files whose names begin with ``prefix``."""
    lines = ["`verilator_config"]
    for rule, message, reason in WAIVERS:
        match = "" if message == "*" else f' -match "{message}"'
        lines += [f"// {reason}", f'lint_off -rule {rule} -file "*{prefix}*.v"{match}']
    return "\n".join(lines) + "\n"
