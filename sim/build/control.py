"""The Verilator control file (``.vlt``): what is visible, what is built once, what is waived.

The stock cocotb runner makes every signal of the design readable and writable, which costs about
five times in speed.  Here the top level's ports are visible and nothing else, unless asked for.
"""

import re

from sim.build.errors import BuildFailed

__all__ = ["WAIVERS", "control_file", "module_ports"]

#: Verilator warnings that Amaranth's Verilog causes by design: (rule, first version, reason).
#: Everything else stays an error.  ALWNEVER above all: Verilator never runs an ``always @*`` that
#: reads nothing, so without initial values the constant it drives would be random.
WAIVERS = (
    ("WIDTHEXPAND", (5, 0), "Amaranth sizes operands by value and relies on Verilog's extension"),
    ("WIDTHTRUNC", (5, 0), "an assignment of Amaranth drops high bits without a slice"),
    ("CMPCONST", (5, 0), "a loop over all values of an index compares it with the largest, too"),
    ("CASEINCOMPLETE", (5, 0), "a number beyond the last part of a vector selects nothing"),
)

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")


def module_ports(text, module):
    """Ports of one module.

    Parameters
    ----------
    text : str
        Verilog, with the ports declared in the header or in the body.
    module : str
        Name of the module.

    Returns
    -------
    dict of str to str
        Port name to ``input``, ``output`` or ``inout``, in order of declaration.

    Raises
    ------
    BuildFailed
        If the module is not there or a port cannot be read.
    """
    text = re.sub(r"//[^\n]*|/\*.*?\*/|\(\*.*?\*\)", " ", text, flags=re.DOTALL)
    found = re.search(
        rf"\bmodule\s+{re.escape(module)}\s*(?:#\s*\(.*?\)\s*)?(?:\((.*?)\)\s*)?;(.*?)\bendmodule\b",
        text,
        flags=re.DOTALL,
    )
    if found is None:
        raise BuildFailed(f"no module {module!r} in the Verilog: name the top-level module")
    header, body = found[1] or "", found[2]
    declared = {}
    for statement in re.findall(r"\b(?:input|output|inout)\b[^;]*", f"{header};{body}"):
        direction = None
        for item in re.sub(r"\[[^\]]*\]", " ", statement).split(","):
            words = _IDENTIFIER.findall(item.split("=")[0])
            if words and words[0] in ("input", "output", "inout"):
                direction = words[0]
            if words and direction is not None:
                declared[words[-1]] = direction
    names = [
        (_IDENTIFIER.findall(item.split("=")[0]) or [item.strip()])[-1]
        for item in re.sub(r"\[[^\]]*\]", " ", header).split(",")
        if item.strip()
    ]
    unread = [name for name in names if name not in declared]
    if unread:
        raise BuildFailed(f"port {unread[0]!r} of module {module!r} has no plain declaration")
    return {name: declared[name] for name in names}


def control_file(*, top, ports, hier_blocks=(), expose=(), version):
    """Text of the control file.

    Parameters
    ----------
    top : str
        Top-level module.
    ports : mapping of str to str
        Its ports and directions (:func:`module_ports`): inputs become writable, outputs readable.
    hier_blocks : iterable of str
        Modules compiled once, whatever the number of instances.  Nothing inside is visible.
    expose : iterable of (str, str)
        Further (module, variable) pairs to make readable.
    version : tuple of int
        Verilator's (major, minor): rules that it does not know are left out.
    """
    lines = ["`verilator_config"]
    for rule, since, reason in WAIVERS:
        if version >= since:
            lines += [f"// {reason}", f"lint_off -rule {rule}"]
    lines += [f'hier_block -module "{module}"' for module in hier_blocks]
    for name, direction in ports.items():
        access = "public_flat_rd" if direction == "output" else "public_flat_rw"
        lines.append(f'{access} -module "{top}" -var "{name}"')
    lines += [f'public_flat_rd -module "{module}" -var "{name}"' for module, name in expose]
    return "\n".join(lines) + "\n"
