"""The recorder: Verilog that writes what happens in every tile into binary files, and its reader.

One file for each kind of event, one for the flits that reach the host, one for faults; records of
one size, in the order in which things happen::

    bits 0..15 unit | 16..31 tile | 32..63 cycle counter of the tile | payload

A file ends with a record whose unit and tile are all ones and whose cycle is the number of records
before it: a file without it was cut off.
"""

import numpy as np
from amaranth.hdl import unsigned
from amaranth.lib import data

from hdl.arch import trace
from hdl.arch.queues import link_names, queues
from sim.build import SimError
from sim.events import Events

__all__ = ["FAULT", "FILES", "TraceError", "copy_records", "end_of_file", "read_events",
           "read_faults", "read_host", "recorder_verilog", "trace_bits"]

#: File by what it holds: a kind of event, the flits to the host, or faults.
FILES = {kind: f"{kind}.bin" for kind in ("issues", "writes", "arrivals", "host", "faults")}
#: Faults that a place raises first: ``unit`` is its number in `hdl.arch.trace.fault_places`.
FAULT = [("cycle", "<i8"), ("tile", "<u2"), ("unit", "<u2"), ("bits", "<u4")]

_END = 0xFFFF


class TraceError(SimError):
    """A recorded file that is missing or was cut off."""


def _host_layout(cfg):
    return data.StructLayout({"valid": unsigned(1), "data": unsigned(8 * cfg.host.bytes)})


def _units(cfg):
    """By file: number of units, and the layout of what each shows."""
    return {"issues": (len(queues(cfg)), trace.issue_layout(cfg)),
            "writes": (len(cfg.slices("mem")), trace.write_layout(cfg)),
            "arrivals": (len(link_names(cfg)), trace.arrival_layout(cfg)),
            "host": (1, _host_layout(cfg)),
            "faults": (len(trace.fault_places(cfg)), trace.fault_layout(cfg))}


def _records(cfg):
    """Record format by file, in whole 32-bit words as ``%u`` writes them."""
    head = [("unit", "<u2"), ("tile", "<u2"), ("cycle", "<u4")]
    row = ("data", "u1", (cfg.lanes,))
    flit = ("data", "u1", (-(-cfg.host.bytes // 4) * 4,))
    return {"issues": np.dtype([*head, ("crc", "<u2"), ("unused", "<u2"), ("index", "<u4")]),
            "writes": np.dtype([*head, ("address", "<u4"), row]),
            "arrivals": np.dtype([*head, row]),
            "host": np.dtype([*head, flit]), "faults": np.dtype([*head, ("bits", "<u4")])}


def trace_bits(cfg):
    """Width in bits of the recorder's inputs of a tile, by file: the units side by side."""
    return {kind: count * layout.size for kind, (count, layout) in _units(cfg).items()}


def _record(cfg, kind, unit, layout):
    """Verilog of the record of ``unit`` as a concatenation, and of its valid bit."""
    def bits(name):
        field = layout[name]
        return f"{kind}[{unit * layout.size + field.offset} +: {field.width}]"

    record = _records(cfg)[kind]
    terms = [f"16'd{unit}", "16'(TILE)", "cycle"]
    for name in record.names[3:]:
        width = 8 * record[name].itemsize
        known = layout[name].width if name in layout.members else 0
        terms.append(bits(name) if known == width else f"{width}'({bits(name) if known else 0})")
    return f"{{{', '.join(reversed(terms))}}}", bits("valid")


def recorder_verilog(cfg):
    """Module ``oncycle_recorder``: one for each tile, with the number of the tile as parameter.

    Every file must be open while ``recording``; ``count_<kind>`` are the records written so far.
    """
    ports, body = [], []
    for kind, (count, layout) in _units(cfg).items():
        ports += [f"  input [{count * layout.size - 1}:0] {kind}", f"  input int file_{kind}",
                  f"  output int count_{kind}"]
        body.append(f"    if (|{kind}) begin" if kind == "faults" else "    begin")     # rare
        for unit in range(count):
            record, valid = _record(cfg, kind, unit, layout)
            body += [f"    if ({valid}) begin",
                     f'      $fwrite(file_{kind}, "%u", {record});',
                     f"      count_{kind} = count_{kind} + 1;",
                     "    end"]
        body.append("    end")
    lines = ["module oncycle_recorder #(parameter TILE = 0) (",
             ",\n".join(["  input clk", "  input recording", "  input [31:0] cycle", *ports]),
             ");",
             *(f"  initial count_{kind} = 0;" for kind in FILES),
             "  always @(posedge clk) if (recording) begin", *body, "  end", "endmodule", ""]
    return "\n".join(lines)


def end_of_file(cfg, kind, count):
    """Verilog expression of the last record of a file: ``count`` is an expression."""
    size = 8 * _records(cfg)[kind].itemsize
    return f"{{{size - 64}'d0, 32'({count}), 32'hFFFFFFFF}}"


def copy_records(source, target, cfg, begins):
    """Copy what files hold from the byte offsets ``begins`` (by file) on, as whole files.

    Parameters
    ----------
    source, target : pathlib.Path
        Directories; the files of ``source`` may still be growing.
    cfg : hdl.arch.config.TileConfig
    begins : dict of str to int

    Returns
    -------
    dict of str to int
        Offsets behind what was copied.
    """
    ends = {}
    for kind, file in FILES.items():
        with open(source / file, "rb") as whole:
            whole.seek(begins[kind])
            part = whole.read()
        size = _records(cfg)[kind].itemsize
        end = b"\xff" * 4 + (len(part) // size).to_bytes(4, "little") + bytes(size - 8)
        (target / file).write_bytes(part + end)
        ends[kind] = begins[kind] + len(part)
    return ends


def _read(directory, kind, record):
    path = directory / FILES[kind]
    if not path.is_file():
        raise TraceError(f"{path} was not recorded: see sim.log beside it")
    raw = path.read_bytes()
    table = np.frombuffer(raw[:len(raw) - len(raw) % record.itemsize], record)
    whole = len(table) and not len(raw) % record.itemsize \
        and table[-1]["unit"] == table[-1]["tile"] == _END and table[-1]["cycle"] == len(table) - 1
    if not whole:
        raise TraceError(f"{path} was cut off: see sim.log beside it")
    return table[:-1]


def _convert(raw, record):
    table = np.zeros(len(raw), record)
    for name in table.dtype.names:
        table[name] = raw[name]
    return table


def read_events(directory, cfg):
    """Recorded events, in the order of time; cycles are those of the tile's counter.

    Parameters
    ----------
    directory : pathlib.Path
        Where the files are.
    cfg : hdl.arch.config.TileConfig

    Returns
    -------
    sim.events.Events

    Raises
    ------
    TraceError
        If a file is missing or was cut off.
    """
    formats = {"issues": trace.ISSUE, "writes": trace.write_record(cfg),
               "arrivals": trace.arrival_record(cfg)}
    records = _records(cfg)
    return Events(**{kind: _convert(_read(directory, kind, records[kind]), record)
                     for kind, record in formats.items()})


def read_host(directory, cfg):
    """Vectors that reached the host, as `hdl.arch.trace.arrival_record`: ``cycle`` is that of the
    last flit; sorted by cycle and tile.  Raises as `read_events`.
    """
    raw = _read(directory, "host", _records(cfg)["host"])
    flits = cfg.host.flits(cfg.lanes)
    parts = []
    for tile in np.unique(raw["tile"]):
        mine = raw[raw["tile"] == tile]
        if len(mine) % flits:
            raise TraceError(f"{directory / FILES['host']}: the last vector of tile {tile} is "
                             "incomplete")
        rows = mine["data"][:, :cfg.host.bytes].reshape(-1, flits * cfg.host.bytes)
        table = np.zeros(len(rows), trace.arrival_record(cfg))
        table["cycle"] = mine["cycle"][flits - 1::flits]
        table["tile"], table["unit"] = tile, len(cfg.ports)
        table["data"] = rows[:, :cfg.lanes]
        parts.append(table)
    table = np.concatenate(parts) if parts else np.zeros(0, trace.arrival_record(cfg))
    return table[np.lexsort((table["tile"], table["cycle"]))]


def read_faults(directory, cfg):
    """Recorded faults (`FAULT`), in the order of time.  Raises as `read_events`."""
    return _convert(_read(directory, "faults", _records(cfg)["faults"]), FAULT)
