"""The full register trace of a tile, one record a cycle: hashes of all that its registers hold.

The hashes are sums of products with odd constants, modulo 2**64, over 32 bits at a time:
``registers`` of every register of the netlist, ``reads`` of every stream value that is read in this
cycle, without what is beyond the count of a read.  Contents of memories are not in it; what is read
of them is, and SRAM is compared in the end.
"""

import re
from dataclasses import dataclass

import numpy as np

__all__ = ["PLUSARG", "RECORD", "SUFFIX", "TraceDifference", "compare_traces", "read_traces",
           "recorded"]

#: One cycle of a tile; ``cycle`` is its counter.
RECORD = np.dtype([("cycle", "<u4"), ("reads", "<u8"), ("registers", "<u8")])

#: Ending of the files, which are named after the instance of the tile.
SUFFIX = ".registers"

#: Simulations write them into the directory that this plusarg names.
PLUSARG = "registers"

_CHUNK = 32
_REGISTER = re.compile(r"^  cell \$dff \S+\n(?:    .*\n)*?    connect \\Q (.*)\n", re.M)
_WIRE = re.compile(r"^  wire (?:width (\d+) )?.*?([\\$]\S+)$", re.M)
_TAP = re.compile(r"\\(stream_\w+\.tap\d+)__en$")


def recorded(cfg, rtlil, verilog):
    """The Verilog of a flattened tile, extended so that it writes its trace.

    Parameters
    ----------
    cfg : hdl.arch.config.TileConfig
    rtlil, verilog : str
        The tile, in both forms.

    Raises
    ------
    ValueError
        If there are no registers or taps to record.
    """
    widths = {name: int(width or 1) for width, name in _WIRE.findall(rtlil)}
    names = sorted({name for output in _REGISTER.findall(rtlil)
                    for name in re.findall(r"[\\$][^\s\[\]{}]+", output)})
    taps = sorted(match[1] for name in widths if (match := _TAP.match(name)))
    if not names or not taps:
        raise ValueError("RTLIL must hold a flattened tile with registers and taps")
    rng = np.random.default_rng(0)
    held = [term for name in names for term in _terms(rng, _escaped(name), 0, widths[name])]
    read = [term for tap in taps for term in _tap_terms(rng, cfg, widths, tap)]
    body = "\n".join(["  int trace_file = 0;", "  string trace_directory;",
                      "  reg [63:0] trace_registers, trace_reads;",
                      f'  initial if ($value$plusargs("{PLUSARG}=%s", trace_directory) != 0)',
                      f'    trace_file = $fopen($sformatf("%s/%m{SUFFIX}", trace_directory), '
                      '"wb");',
                      "  always @(posedge clk) if (trace_file != 0) begin",
                      "    trace_registers = 0;",
                      *(f"    trace_registers = trace_registers + {term};" for term in held),
                      "    trace_reads = 0;",
                      *(f"    if ({condition}) trace_reads = trace_reads + {term};"
                        for condition, term in read),
                      '    $fwrite(trace_file, "%u", {trace_registers, trace_reads, cycle});',
                      "  end", "endmodule", ""])
    head, end, rest = verilog.rpartition("endmodule")
    if not end or rest.strip():
        raise ValueError("Verilog must end with the tile's module")
    return head + body


def _escaped(name):
    """A name of RTLIL in Verilog."""
    return f"\\{name.removeprefix(chr(92))} "


def _terms(rng, signal, low, width):
    """Terms of the hash of ``width`` bits of a signal from ``low`` on."""
    terms = []
    for begin in range(0, width, _CHUNK):
        size = min(_CHUNK, width - begin)
        part = signal if width == 1 and not low else f"{signal}[{low + begin} +: {size}]"
        constant = int(rng.integers(1 << 63)) << 1 | 1
        terms.append(f"64'({part}) * 64'h{constant:x}")
    return terms


def _tap_terms(rng, cfg, widths, tap):
    """(condition, term) of what a tap reads."""
    def signal(member):
        return _escaped(f"\\{tap}__{member}")

    size = 8 * cfg.lanes
    count = widths[f"\\{tap}__data"] // size
    found = []
    for vector in range(count):
        condition = signal("en")
        if vector:
            condition += f"&& {signal('count_log2')} >= {vector.bit_length()}"
        terms = _terms(rng, signal("data"), size * vector, size)
        valid = f"{signal('valid')}[{vector}]" if count > 1 else signal("valid")
        terms.append(f"(64'({valid}) + 64'd1) * 64'h{int(rng.integers(1 << 63)) << 1 | 1:x}")
        found += [(condition, term) for term in terms]
    return found


@dataclass(frozen=True)
class TraceDifference:
    """First cycle (of the tile's counter) in which a tile's registers, or what it reads from
    streams, differ; None: never."""

    registers: int | None
    reads: int | None


def read_traces(directory):
    """Traces in a directory: arrays of RECORD, by tile."""
    return [np.frombuffer(path.read_bytes(), RECORD)
            for path in sorted(directory.glob(f"*{SUFFIX}"))]


def compare_traces(expected, observed, *, starts=None):
    """Compare the traces of two simulations of one build.

    Parameters
    ----------
    expected, observed : list of array of RECORD
        By tile.
    starts : (list of int, list of int), optional
        Start times by tile: compare from there on, because loading differs.

    Returns
    -------
    TraceDifference
    """
    first = {"registers": [], "reads": []}
    for tile, pair in enumerate(zip(expected, observed, strict=True)):
        if starts is not None:
            pair = [trace[np.flatnonzero(trace["cycle"] == times[tile])[0]:]
                    for trace, times in zip(pair, starts, strict=True)]
        left, right = pair
        length = min(len(left), len(right))
        for name, cycles in first.items():
            differs = np.flatnonzero(left[name][:length] != right[name][:length])
            if len(differs):
                cycles.append(int(left["cycle"][differs[0]]))
            elif len(left) != len(right):
                cycles.append(int((left if len(left) > length else right)["cycle"][length]))
    return TraceDifference(*(min(cycles, default=None) for cycles in first.values()))
