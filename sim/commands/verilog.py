"""``oncycle verilog``: Verilog of a tile or of a system for other tools."""

from argparse import ArgumentTypeError, BooleanOptionalAction
from pathlib import Path
from tempfile import TemporaryDirectory

from hdl.arch.config import all_to_all, single
from hdl.arch.presets import preset
from hdl.export import RESETS, TOPS, ExportOptions, export_files
from sim.build.model import BUILD_ROOT
from sim.commands.options import add_preset, positive
from sim.errors import UsageError

__all__ = ["HELP", "add_arguments", "run"]

HELP = "write a tile or a system of tiles as Verilog for other tools"


def add_arguments(parser):
    """See `sim.cli`."""
    add_preset(parser)
    parser.add_argument("--top", choices=TOPS,
                        help="one tile, or tiles and the links between them (default: tile; with "
                        "--tiles system)")
    parser.add_argument("--tiles", type=positive,
                        help="tiles of a system, each linked with every other (default: 2)")
    parser.add_argument("--reset", choices=RESETS, default="sync",
                        help="whether reset waits for the clock (default: %(default)s)")
    parser.add_argument("--reset-active", choices=("high", "low"), default="high",
                        help="level that resets; the port of low is rst_n (default: %(default)s)")
    _add_switch(parser, "trace", False, "ports that show every event")
    _add_switch(parser, "errors", True, "ports of the error register")
    _add_switch(parser, "initial", True, "initial values of registers")
    parser.add_argument("--prefix", type=_prefix, default=ExportOptions.prefix,
                        help="first part of all module names (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR",
                        help="directory (default: build/verilog/...)")


def _prefix(text):
    try:
        return ExportOptions(prefix=text).prefix
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _add_switch(parser, name, default, what):
    parser.add_argument(f"--{name}", action=BooleanOptionalAction, default=default,
                        help=f"{what} (default: {'with' if default else 'without'})")


def run(options):
    """See `sim.cli`."""
    system, top = _system(options)
    wanted = ExportOptions(top=top, reset=options.reset, active_low=options.reset_active == "low",
                           trace=options.trace, errors=options.errors, initial=options.initial,
                           prefix=options.prefix)
    name = f"{options.preset}-{top}" + (f"-{system.tiles}" if top == "system" else "")
    output = options.output or BUILD_ROOT / "verilog" / name
    try:
        output.mkdir(parents=True, exist_ok=True)
        files = export_files(system, wanted)
        _write(output, files)
    except OSError as error:
        raise UsageError(f"{output} cannot be written ({error.strerror}): name another directory "
                         "with --output") from None
    modules = [text for file, text in files.items() if file.endswith(".v")]
    lines = sum(text.count("\n") for text in modules)
    print(f"{output}: {len(modules)} modules, {lines:,} lines, top module {wanted.module}")
    return 0


def _system(options):
    """What to export: its `SystemConfig` and the kind of its top."""
    cfg = preset(options.preset)
    top = options.top or ("system" if options.tiles else "tile")
    if top == "tile":
        if options.tiles not in (None, 1):
            raise UsageError(f"A tile is one tile, not {options.tiles}: use --top system")
        return single(cfg), top
    most = len(cfg.ports) + 1
    tiles = options.tiles or min(2, most)
    if tiles > most:
        raise UsageError(f"A tile of {options.preset} has {len(cfg.ports)} link ports: at most "
                         f"{most} tiles can be linked with each other, not {tiles}")
    return all_to_all(cfg, tiles) if tiles > 1 else single(cfg), top


def _write(output, files):
    """Put files into ``output``: all of them or, when it fails, none."""
    with TemporaryDirectory(dir=output, prefix=".new-") as place:
        for file, text in files.items():
            (Path(place) / file).write_text(text)
        for file in files:
            (Path(place) / file).replace(output / file)
