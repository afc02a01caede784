"""The manifest of an export: what it is, what it was made of and with, what its ports are."""

import hashlib
import importlib.metadata
import json
import tomllib
from dataclasses import asdict
from pathlib import Path

from amaranth.back.verilog import find_yosys

from hdl.arch.config import values_of
from hdl.arch.identity import isa_digest
from hdl.arch.presets import PRESETS
from hdl.arch.queues import queues

from .ports import ports

__all__ = ["manifest"]

_PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def manifest(system, options, component, modules):
    """Text of the manifest, JSON.

    Parameters
    ----------
    system : SystemConfig
    options : ExportOptions
    component : ExportTop
    modules : dict of str to str
        Text of the Verilog files by name, in order.
    """
    cfg = system.tile
    names = [name for name, known in PRESETS.items() if known == cfg]
    config = cfg if options.top == "tile" else system
    described = {
        "format": 1,
        "top": options.module,
        "options": asdict(options),
        "versions": _versions(),
        "preset": names[0] if names else None,
        "configuration": values_of(config),
        "digest": config.digest,
        "tile_digest": cfg.digest,
        "isa_digest": isa_digest(cfg),
        "queues": [queue.name for queue in queues(cfg)],
        "clock": {"port": "clk", "edge": "rising"},
        "reset": {"port": options.reset_port, "kind": options.reset,
                  "active": "low" if options.active_low else "high"},
        "ports": [port.described() for port in ports(component, cfg)],
        "files": [{"name": name, "sha256": hashlib.sha256(text.encode()).hexdigest()}
                  for name, text in modules.items()],
    }
    return json.dumps(described, indent=1) + "\n"


def _versions():
    yosys = find_yosys(lambda version: True)
    return {"oncycle": tomllib.loads(_PROJECT.read_text())["project"]["version"],
            "amaranth": importlib.metadata.version("amaranth"),
            "yosys": ".".join(map(str, yosys.version()))}
